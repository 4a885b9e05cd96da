"""The life of a unit as systemd 252 writes it, and who asked for each restart."""

import json
from pathlib import Path

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit import journal
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit.journal import (
    EXITED,
    FAILED,
    SCHEDULED,
    STARTED,
    STARTING,
    STOPPED,
    STOPPING,
    SUCCEEDED,
    Asker,
    Restart,
)
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit.parties import Party, Place, Target

VLLM = Target("vllm.service", through=(("llm.target", "PartOf"),))

# One restart by somebody and one by systemd after a kill, as read from a host with Debian 12.
REAL = (Path(__file__).parent / "journal-debian12.jsonl").read_text()


def entry(at, message_id="", message="", unit="vllm.service", **more):
    more.setdefault("boot", "b1")
    return journal.Entry(at=at, message=message, message_id=message_id, unit=unit, **more)


def test_a_real_journal():
    asked, failed = journal.restarts(journal.entries(REAL))
    assert (round(asked.after), asked.result, asked.by_systemd) == (6, "success", False)
    assert (round(failed.after), failed.result, failed.by_systemd) == (3, "signal", True)


def test_the_order_of_the_lines_does_not_matter():
    backwards = "\n".join(reversed(REAL.splitlines()))
    assert journal.entries(backwards) == journal.entries(REAL)


def test_lines_that_are_no_entries_are_left_out():
    odd = [{"MESSAGE": "no time"}, {"__REALTIME_TIMESTAMP": "1000000", "MESSAGE": [104, 105], "UNIT": None}, 7]
    text = "garbage\n" + "\n".join(map(json.dumps, odd))
    assert journal.entries(text) == [journal.Entry(at=1.0, message="")]


def test_the_first_start_after_a_boot_is_no_restart():
    life = [entry(0, STARTED, invocation="a"), entry(100, STARTED, invocation="b", boot="b2")]
    assert journal.restarts(life) == []


def test_a_start_after_a_stop_whose_start_is_not_in_the_journal_any_more_is_one():
    life = [entry(0, STOPPING), entry(1, STOPPED), entry(2, STARTED, invocation="a")]
    assert journal.restarts(life) == [Restart(2, 0, None, "", False)]


def test_starting_and_started_of_one_process_are_one_start():
    life = [
        entry(0, STARTING, invocation="a"),
        entry(5, STARTED, invocation="a"),
        entry(50, STOPPING),
        entry(52, STARTING, invocation="b"),
        entry(60, STARTED, invocation="b"),
    ]
    assert journal.restarts(life) == [Restart(52, 50, 52, "", False)]


RESTART = Restart(at=1003, began=1000, after=300, result="success", by_systemd=False)
TIMER = Party("timer", "w.timer", "restart", (Place("/opt/w.sh", 3, ""),), service="w.service")
CRON = Party("cron", "cron of root", "restart", (Place("/etc/cron.d/w", 1, ""),), command="/opt/c.sh --token geheim")


def sudo(at, command, user="alice"):
    message = f"   {user} : TTY=pts/0 ; PWD=/home/alice ; USER=root ; COMMAND={command}"
    return entry(at, message=message, unit="", identifier="sudo")


def ask(*around, restart=RESTART, parties=()):
    return journal.asker(restart, around, VLLM, parties)


def test_nobody_is_named_without_a_sign():
    assert ask() == Asker() and str(ask()) == "not known"


def test_sudo():
    assert ask(sudo(999, "/usr/bin/systemctl restart vllm")) == Asker("user", "alice (sudo)", True)


@pytest.mark.parametrize("command", ["/usr/bin/systemctl restart nginx", "/usr/bin/systemctl status vllm", "/bin/ls"])
def test_sudo_for_something_else(command):
    assert ask(sudo(999, command)) == Asker()


def test_a_command_long_before_or_after_is_not_the_cause():
    assert ask(sudo(900, "systemctl restart vllm")) == Asker()
    assert ask(sudo(1002, "systemctl restart vllm")) == Asker()


def test_a_timer_whose_service_was_running_then():
    began = entry(940, STARTING, unit="w.service", invocation="x")
    ended = entry(1003.5, SUCCEEDED, unit="w.service", invocation="x")
    assert ask(began, ended, parties=[TIMER]) == Asker("timer", "w.timer", True)


def test_what_came_before_the_start_before_was_the_cause_of_that_one():
    soon = Restart(at=1003, began=1000, after=8, result="success", by_systemd=False)
    assert ask(sudo(994, "systemctl restart vllm"), restart=soon) == Asker()
    assert ask(sudo(996, "systemctl restart vllm"), restart=soon).name == "alice (sudo)"


def test_a_timer_whose_service_had_ended_before():
    began = entry(940, STARTING, unit="w.service", invocation="x")
    ended = entry(960, SUCCEEDED, unit="w.service", invocation="x")
    finished = entry(960, STARTED, unit="w.service", invocation="x")
    assert ask(began, ended, finished, parties=[TIMER]) == Asker()


def test_a_service_that_is_done_is_no_cause_however_shortly_before():
    began = entry(998, STARTING, unit="w.service", invocation="x")
    done = entry(999.9, STARTED, unit="w.service", invocation="x")
    soon = Restart(at=1003, began=1000, after=4, result="success", by_systemd=False)
    assert ask(began, done, parties=[TIMER], restart=soon) == Asker()


def test_cron_by_the_command_of_a_known_job():
    line = entry(995, message="(root) CMD (/opt/c.sh --token geheim)", unit="", identifier="CRON")
    found = ask(line, parties=[CRON])
    assert found == Asker("cron", "cron of root", True)
    other = entry(995, message="(root) CMD (/opt/other.sh)", unit="", identifier="CRON")
    assert ask(other, parties=[CRON]) == Asker()


def test_a_job_of_cron_that_had_ended_before_is_no_cause():
    def cron(at, message, pid):
        return entry(at, message=message, unit="", identifier="CRON", pid=pid)

    opened = cron(961, "pam_unix(cron:session): session opened for user root(uid=0) by (uid=0)", "70")
    command = cron(961.01, "(root) CMD (/opt/c.sh --token geheim)", "71")
    assert ask(opened, command, parties=[CRON]).name == "cron of root"
    closed = cron(1003, "pam_unix(cron:session): session closed for user root", "70")
    assert ask(opened, command, closed, parties=[CRON]).name == "cron of root"
    closed = cron(962, "pam_unix(cron:session): session closed for user root", "70")
    assert ask(opened, command, closed, parties=[CRON]) == Asker()


def test_a_job_of_cron_without_sessions_in_the_journal_counts_for_seconds():
    def command(at):
        return entry(at, message="(root) CMD (/opt/c.sh --token geheim)", unit="", identifier="crond")

    assert ask(command(995), parties=[CRON]).name == "cron of root"
    assert ask(command(961), parties=[CRON]) == Asker()


def test_ansible_and_for_whom():
    invoked = entry(999, message="Invoked with name=vllm state=restarted", unit="", identifier="ansible-ansible.legacy.systemd")
    become = sudo(998, "/bin/sh -c 'echo BECOME-SUCCESS-x ; /usr/bin/python3'", "ops")
    assert ask(invoked, become) == Asker("ansible", "Ansible (systemd for ops)", True)
    status = entry(999, message="Invoked with name=vllm state=None", unit="", identifier="ansible-systemd")
    assert ask(status, become) == Asker()


def test_a_unit_that_took_it_along():
    assert ask(entry(1000.01, STOPPED, unit="llm.target")) == Asker("dependency", "llm.target (PartOf)", True)


def test_a_unit_that_takes_it_along_only_after_it_was_started_belongs_to_the_next_restart():
    assert ask(entry(RESTART.at, STOPPED, unit="llm.target")).kind == "dependency"
    assert ask(entry(RESTART.at + 0.01, STOPPED, unit="llm.target")) == Asker()


def test_a_unit_that_took_it_along_while_a_job_of_cron_ran_as_well():
    job = entry(999, message="(root) CMD (/opt/c.sh --token geheim)", unit="", identifier="CRON")
    assert ask(job, parties=[CRON]).kind == "cron"
    assert ask(job, entry(1000.01, STOPPED, unit="llm.target"), parties=[CRON]).name == "llm.target (PartOf)"


def test_monit():
    monit = entry(999, message="'vllm' trying to restart", unit="", identifier="monit")
    assert ask(monit) == Asker("monit", "monit", True)


def test_a_job_of_at_that_was_running_is_only_likely():
    opened = entry(
        995, message="pam_unix(atd:session): session opened for user root(uid=0) by (uid=1)", unit="", identifier="atd"
    )
    closed = entry(1003, message="pam_unix(atd:session): session closed for user root", unit="", identifier="atd")
    assert ask(opened, closed) == Asker("at", "a job of at of root", False)
    over = entry(996, message="pam_unix(atd:session): session closed for user root", unit="", identifier="atd")
    assert ask(opened, over) == Asker()


def test_a_daemon_that_said_something_just_then_is_only_likely():
    watcher = Party("service", "watch.service", "restart", service="watch.service")
    line = entry(998, message="not healthy", unit="", identifier="watch.sh", sender="watch.service")
    assert ask(line, parties=[watcher]) == Asker("service", "watch.service", False)


def test_systemd_itself_after_a_failure():
    failed = Restart(1003, 1000, 300, "exit-code", True)
    assert ask(restart=failed) == Asker("systemd", "systemd, since it ended with an error", True)
    watchdog = Restart(1003, 1000, 300, "watchdog", True)
    assert str(ask(restart=watchdog)) == "systemd, since its watchdog ran out"


def test_who_killed_it_counts_more_than_that_systemd_started_it_again():
    killed = Restart(1003, 1000, 300, "signal", True)
    assert ask(sudo(999, "/usr/bin/pkill -9 -f vllm"), restart=killed) == Asker("user", "alice (sudo)", True)
    assert str(ask(restart=killed)) == "systemd, since it was killed"


def test_names_from_the_journal_are_shown_as_plain_text():
    found = ask(sudo(999, "systemctl restart vllm", user="a\x1b[2J"))
    assert "\x1b" not in str(found)


def test_the_messages_are_those_of_systemd():
    assert {EXITED, FAILED, SCHEDULED, STOPPED} <= set(journal.MESSAGES) and len(set(journal.MESSAGES)) == 8
