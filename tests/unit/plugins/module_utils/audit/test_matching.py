"""From what is written on a host to the parties that can restart a unit."""

from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit import crontabs, matching, unitfacts
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit.matching import Context, Source
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit.parties import Party, Target

VLLM = Target("vllm.service", through=(("llm.target", "PartOf"),), ports=(8000,))
FILES = {
    "/usr/local/bin/check.sh": '#!/bin/sh\nTOKEN=geheim\ncurl -H "Authorization: Bearer geheim" x || systemctl restart vllm\n',
    "/usr/local/bin/clean.sh": "#!/bin/sh\nsystemctl restart nginx\n",
    "/opt/fleet.sh": "#!/bin/sh\nfor h in gpu-1 gpu-2; do ssh $h systemctl restart vllm; done\n",
    "/etc/systemd/system/w.service": "[Service]\nType=oneshot\nExecStart=/usr/local/bin/check.sh\n",
    "/etc/systemd/system/d.service": "[Service]\nExecStart=/bin/systemctl restart vllm\n",
    "/etc/systemd/system/w.timer": "[Timer]\nOnBootSec=1min\nOnUnitActiveSec=5min\n",
}


def context():
    return Context(VLLM, FILES.get)


def read_unit(path):
    return FILES.get(path, "")


def runner(name, command, active=False, **more):
    files = (f"/etc/systemd/system/{name}",)
    return unitfacts.Runner(name, None, active, False, files, (command,), (), (), **more)


TIMER = unitfacts.Trigger("w.timer", "w.service", True, ("/etc/systemd/system/w.timer",), 300, "OnUnitActiveSec=5min")


def test_a_timer_whose_script_restarts_the_unit():
    (found,) = matching.from_services(context(), [runner("w.service", "/usr/local/bin/check.sh")], [TIMER], read_unit)
    assert (found.kind, found.name, found.action, found.every, found.active) == ("timer", "w.timer", "restart", 300, True)
    assert [str(place) for place in found.places] == ["/usr/local/bin/check.sh:3"]
    assert [str(place) for place in found.via] == ["/etc/systemd/system/w.timer:3"]
    assert "geheim" not in repr(found.places)


def test_a_service_that_restarts_it_in_its_own_command_line():
    (found,) = matching.from_services(context(), [runner("d.service", "/bin/systemctl restart vllm", active=True)], [], read_unit)
    assert (found.kind, found.name, found.active) == ("service", "d.service", True)
    assert [str(place) for place in found.places] == ["/etc/systemd/system/d.service:2"]


def test_a_service_that_nothing_starts_is_switched_off():
    (found,) = matching.from_services(context(), [runner("d.service", "systemctl stop vllm")], [], read_unit)
    assert found.active is False


def test_a_service_that_another_ones_failure_starts_is_not():
    services = [runner("d.service", "systemctl restart vllm", started_when="when x.service fails")]
    (found,) = matching.from_services(context(), services, [], read_unit)
    assert (found.active, found.when) == (True, "when x.service fails")


def test_a_timer_that_does_not_run_is_switched_off():
    timer = unitfacts.Trigger("w.timer", "w.service", False, (), 300)
    (found,) = matching.from_services(context(), [runner("w.service", "/usr/local/bin/check.sh")], [timer], read_unit)
    assert found.active is False


def test_the_unit_is_no_party_to_itself_and_others_are_none_at_all():
    services = [runner("vllm.service", "pkill -f vllm"), runner("x.service", "/usr/local/bin/clean.sh")]
    assert list(matching.from_services(context(), services, [], read_unit)) == []


def test_a_timer_that_starts_the_unit_itself():
    timer = unitfacts.Trigger("vllm.timer", "vllm.service", True, (), 86400)
    (found,) = matching.from_triggers_of_the_unit(VLLM, [timer], read_unit)
    assert (found.kind, found.name, found.action) == ("timer", "vllm.timer", "start")


def test_lines_of_a_crontab():
    text = (
        "SHELL=/bin/sh\n"
        "*/15 * * * * root /usr/local/bin/check.sh >/dev/null\n"
        "0 4 * * * root systemctl restart vllm\n"
        "@daily root /usr/local/bin/clean.sh\n"
    )
    source = Source("/etc/cron.d/vllm", text)
    script, direct = matching.from_crontab(context(), source, crontabs.entries(text, with_user=True))
    assert (script.name, script.every, str(script.places[0])) == ("cron of root", 900, "/usr/local/bin/check.sh:3")
    assert [str(place) for place in script.via] == ["/etc/cron.d/vllm:2"]
    assert (direct.every, str(direct.places[0])) == (86400, "/etc/cron.d/vllm:3")


def test_a_crontab_while_cron_does_not_run():
    source = Source("/etc/crontab", "", active=False, remark="cron does not run")
    (found,) = matching.from_crontab(context(), source, crontabs.entries("0 4 * * * root systemctl stop vllm", True))
    assert (found.active, found.remark, found.action) == (False, "cron does not run", "stop")


def test_a_unit_that_takes_it_along_is_a_way_too():
    source = Source("/etc/cron.d/x", "")
    (found,) = matching.from_crontab(context(), source, crontabs.entries("0 4 * * * root systemctl restart llm.target", True))
    assert found.remark == "through llm.target (PartOf)"


def test_restarts_of_other_hosts_are_noted_but_no_party_here():
    here = context()
    source = Source("/etc/cron.d/x", "")
    assert list(matching.from_crontab(here, source, crontabs.entries("0 4 * * * root /opt/fleet.sh", True))) == []
    assert here.elsewhere == ["/opt/fleet.sh:2 does that to another host: systemctl restart vllm"]


def test_a_file_of_cron_daily_and_a_job_of_at():
    source = Source("/etc/cron.daily/vllm", "#!/bin/sh\nservice vllm restart\n")
    (found,) = matching.from_script(context(), source, Party("cron", "cron.daily", "", every=86400))
    assert str(found.places[0]) == "/etc/cron.daily/vllm:2"


def test_a_check_of_monit_that_stops_and_starts_is_a_restart():
    text = (
        'check process vllm matching "vllm serve"\n'
        '  start program = "/usr/bin/systemctl start vllm"\n'
        '  stop program = "/usr/bin/systemctl stop vllm"\n'
        "  if failed port 8000 then restart\n"
    )
    (found,) = matching.from_monit(context(), Source("/etc/monit/monitrc", text))
    assert (found.name, found.action, found.active) == ("vllm", "restart", True)
    assert [str(place) for place in found.places] == ["/etc/monit/monitrc:3", "/etc/monit/monitrc:2"]


def test_a_check_of_monit_that_only_alerts_is_none():
    text = "check host api with address 127.0.0.1\n  if failed port 8000 then alert\n"
    assert list(matching.from_monit(context(), Source("/etc/monitrc", text))) == []


def test_programs_of_supervisord():
    text = "[program:watch]\ncommand=/usr/local/bin/check.sh\n[program:llm]\ncommand=vllm serve m\n"
    source = Source("/etc/supervisor/conf.d/x.conf", text)
    (watch,) = matching.from_supervisord(context(), source, is_the_unit=False)
    assert (watch.name, str(watch.places[0])) == ("watch", "/usr/local/bin/check.sh:3")
    names = [party.name for party in matching.from_supervisord(context(), source, is_the_unit=True)]
    assert names == ["watch", "llm"]
