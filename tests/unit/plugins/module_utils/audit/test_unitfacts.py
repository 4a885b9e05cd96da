"""Units, timers and services, as systemd 252 shows them."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit import unitfacts
from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery import units

CLEAN = """\
Restart=on-failure
RestartUSec=5s
RuntimeMaxUSec=infinity
WatchdogUSec=0
Id=vllm.service
Names=vllm.service
Requires=sysinit.target system.slice -.mount
BindsTo=
PartOf=
Conflicts=shutdown.target
ConflictedBy=
StopPropagatedFrom=
OnFailureOf=
TriggeredBy=
StartLimitIntervalUSec=10s
StartLimitBurst=5
StartLimitAction=none
FragmentPath=/etc/systemd/system/vllm.service
DropInPaths=/etc/systemd/system/vllm.service.d/override.conf
"""
HOSTILE = (
    CLEAN.replace("PartOf=\n", "PartOf=llm.target\n")
    .replace("Requires=", "Requires=gpu-prep.service ")
    .replace("StopPropagatedFrom=\n", "StopPropagatedFrom=llm.target\n")
    .replace("ConflictedBy=\n", "ConflictedBy=maintenance.target\n")
    .replace("OnFailureOf=\n", "OnFailureOf=gpu-prep.service\n")
    .replace("WatchdogUSec=0", "WatchdogUSec=10min")
    .replace("RuntimeMaxUSec=infinity", "RuntimeMaxUSec=1d")
)
FILES = {
    "/etc/systemd/system/vllm.service": (
        "[Unit]\nPartOf=llm.target\nRequires=gpu-prep.service\n[Service]\nExecStart=/x\nRuntimeMaxSec=1d\n"
    ),
    "/etc/systemd/system/vllm.service.d/override.conf": "[Service]\nWatchdogSec=10min\n",
    "/etc/systemd/system/llm.target": "[Unit]\nPropagatesStopTo=vllm.service\n",
    "/etc/systemd/system/gpu-prep.service": "[Unit]\nDescription=x\nOnFailure=vllm.service\n",
    "/etc/systemd/system/maintenance.target": "[Unit]\nConflicts=other.service vllm.service\n",
}
OTHERS = {name.rsplit("/", 1)[-1]: {"FragmentPath": [name]} for name in FILES}


def properties(text):
    return units.split_units(text)[0]


def test_a_plain_unit_hangs_on_nothing():
    plain = properties(CLEAN)
    assert unitfacts.dependencies(plain, FILES, OTHERS) == []
    assert unitfacts.own_parties(plain, {}) == []
    assert unitfacts.takes_along(plain) == ()


def test_what_the_unit_says_of_itself():
    assert unitfacts.own_settings(properties(CLEAN)) == {
        "restart": "on-failure",
        "restart_delay": 5,
        "watchdog": None,
        "lifetime": None,
        "start_limit_burst": 5,
        "start_limit_interval": 10,
        "start_limit_action": "none",
    }


def test_watchdog_and_lifetime_end_a_server_that_runs():
    watchdog, lifetime = unitfacts.own_parties(properties(HOSTILE), FILES)
    assert (watchdog.kind, watchdog.every, watchdog.action) == ("watchdog", 600, "restart")
    assert [str(place) for place in watchdog.places] == ["/etc/systemd/system/vllm.service.d/override.conf:2"]
    assert (lifetime.kind, lifetime.every) == ("lifetime", 86400)
    assert [str(place) for place in lifetime.places] == ["/etc/systemd/system/vllm.service:6"]


@pytest.mark.parametrize(("written", "seconds"), [("10min", 600), ("1h 30m", 5400), ("21600", 21600), ("0", None)])
def test_a_watchdog_that_was_written_after_the_start_holds_from_the_next_start_on(written, seconds):
    path = "/etc/systemd/system/vllm.service.d/override.conf"
    files = {**FILES, path: f"[Service]\nWatchdogSec=5min\nWatchdogSec={written}\n"}
    shown = properties(HOSTILE.replace("WatchdogUSec=10min", "WatchdogUSec=0"))
    found = [party for party in unitfacts.own_parties(shown, files) if party.kind == "watchdog"]
    expected = [(seconds, False, "holds from its next start on")] if seconds else []
    assert [(party.every, party.active, party.remark) for party in found] == expected


def test_without_restart_a_watchdog_only_kills():
    found = unitfacts.own_parties(properties(HOSTILE.replace("Restart=on-failure", "Restart=no")), FILES)
    assert [party.action for party in found] == ["kill", "stop"]


def test_units_that_take_it_along_with_where_that_is_written():
    found = {party.name: party for party in unitfacts.dependencies(properties(HOSTILE), FILES, OTHERS)}
    places = {name: [str(place) for place in party.places] for name, party in found.items()}
    assert places == {
        "llm.target": ["/etc/systemd/system/vllm.service:2", "/etc/systemd/system/llm.target:2"],
        "gpu-prep.service": ["/etc/systemd/system/vllm.service:3", "/etc/systemd/system/gpu-prep.service:3"],
        "maintenance.target": ["/etc/systemd/system/maintenance.target:2"],
    }
    assert found["maintenance.target"].action == "stop"


def test_restarts_of_those_units_are_restarts_of_this_one():
    assert dict(unitfacts.takes_along(properties(HOSTILE))) == {
        "gpu-prep.service": "Requires",
        "llm.target": "StopPropagatedFrom",
    }


TRIGGERS = """\
Unit=w5.service
TimersMonotonic={ OnUnitActiveUSec=5min ; next_elapse=0 }
TimersMonotonic={ OnBootUSec=1min ; next_elapse=28min 41.461255s }
Id=w5.timer
ActiveState=active
FragmentPath=/etc/systemd/system/w5.timer

Unit=w30-x.service
TimersCalendar={ OnCalendar=*-*-* *:00/30:00 ; next_elapse=Sun 2026-11-29 22:30:00 UTC }
Id=w30.timer
ActiveState=inactive
FragmentPath=/etc/systemd/system/w30.timer

Unit=p.service
Paths=/run/vllm-dead (PathExists)
Id=p.path
ActiveState=active
FragmentPath=/etc/systemd/system/p.path

Unit=
Id=masked.timer
ActiveState=inactive
"""


def test_timers_and_paths():
    five, thirty, path = unitfacts.triggers(unitfacts.blocks(TRIGGERS))
    assert (five.service, five.every, five.active, five.kind) == ("w5.service", 300, True, "timer")
    assert (thirty.every, thirty.active) == (1800, False)
    assert (path.kind, path.when, path.every) == ("path", "PathExists=/run/vllm-dead", None)


SERVICES = """\
Id=w5.service
ActiveState=inactive
UnitFileState=static
ExecStart={ path=/bin/sh ; argv[]=/bin/sh -c curl x || systemctl restart $UNIT ; ignore_errors=no ; start_time=[n/a] }
ExecStartPost={ path=/bin/true ; argv[]=/bin/true ; ignore_errors=no ; start_time=[n/a] }
Environment=UNIT=vllm
OnFailureOf=vllm.service
FragmentPath=/etc/systemd/system/w5.service

Id=no-command.service
ActiveState=active
"""


def test_services():
    (found,) = unitfacts.runners(unitfacts.blocks(SERVICES))
    assert sorted(found.commands) == ["/bin/sh -c curl x || systemctl restart $UNIT", "/bin/true"]
    assert found.environment == (("UNIT", "vllm"),)
    assert found.started_when == "when vllm.service fails"
    assert not found.active and not found.enabled


@pytest.mark.parametrize("text", ["", "garbage", "Id=\n\n", "Failed to connect to bus: No such file\n"])
def test_text_that_makes_no_sense(text):
    found = unitfacts.blocks(text)
    assert unitfacts.triggers(found) == [] and unitfacts.runners(found) == []


def test_units_that_are_not_loaded_reach_it_by_their_own_settings():
    others = {"backup.service": {"Conflicts": ["vllm.service x.service"], "FragmentPath": ["/etc/backup.service"]}}
    files = {"/etc/backup.service": "[Unit]\nConflicts=vllm.service x.service\n"}
    plain = properties(CLEAN)
    assert unitfacts.linked(plain, others) == ["backup.service"]
    (found,) = unitfacts.dependencies(plain, files, others)
    assert (found.name, found.action, str(found.places[0])) == ("backup.service", "stop", "/etc/backup.service:2")


def test_unit_files_that_can_be_asked_for():
    text = "a.service enabled enabled\nb@.service static -\nc.timer masked enabled\nd.timer disabled enabled\n\n"
    assert unitfacts.listed(text) == ["a.service", "d.timer"]
