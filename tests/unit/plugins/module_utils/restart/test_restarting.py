"""One restart: every guard can say no, and a no changes nothing; the restart comes once, after the evidence."""

import dataclasses
import os

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import systemd, vllm_api
from ansible_collections.fleetcheck.vllm.plugins.module_utils.reading import Endpoint
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart import (
    evidence,
    gpu,
    last_look,
    locking,
    ownership,
    pause,
    restarting,
)
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart.budget import Budget, JournalError
from ansible_collections.fleetcheck.vllm.plugins.module_utils.systemd import SystemctlError, UnitFacts

UP = UnitFacts("loaded", "active", "running", "before", 4711, 0, 100.0)
NEW = UnitFacts("loaded", "active", "running", "after", 4712, 0, 9000.0)
FAILED = UnitFacts("loaded", "failed", "failed", "before", 0, 0, 100.0)
NOW = 1_795_991_942.5
GUARDS = ["lock", "unit", "owner", "pause", "budget", "gpu", "look", "unit"]
AGAIN = ["look", "pause", "unit"]


def order(**fields):
    server = vllm_api.Server(Endpoint("http://127.0.0.1:8000"), unit="vllm")
    whole = {
        "server": server,
        "verdict": "stuck",
        "invocation_id": "before",
        "last_sample": {"frozen_engines": ["0"]},
        "budget": Budget(),
        "state_dir": "unset",
        **fields,
    }
    return restarting.Order(**whole)


class Host:
    """A host on which nothing speaks against a restart. What happens is written down; each part can be changed.

    A list is used up one by one, and its last entry stays; an exception is raised.
    """

    def __init__(self, state_dir):
        self.state_dir = state_dir
        self.happened = []
        self.facts = [UP, UP, UP, NEW]
        self.owner = [None]
        self.elsewhere = [None]
        self.pause = [None]
        self.starts = [[]]
        self.gpu = [None]
        self.look = [None]
        self.restart = [""]
        self.commands = []

    def next(self, name):
        values = getattr(self, name)
        value = values.pop(0) if len(values) > 1 else values[0]
        if isinstance(value, Exception):
            raise value
        return value

    def say(self, word, name):
        def answer(*_args, **_more):
            self.happened.append(word)
            return self.next(name)

        return answer

    def systemctl(self, scope, arguments, timeout):
        self.happened.append("restart")
        self.commands.append((scope, list(arguments), timeout))
        return self.next("restart")

    def collect(self, folder, *_):
        self.happened.append("evidence")
        os.makedirs(folder)
        return ["py-spy.txt: no answer in time"]

    def run(self, dry_run=False, **fields):
        return restarting.restart(order(state_dir=self.state_dir, **fields), dry_run)


@pytest.fixture
def host(monkeypatch, tmp_path):
    host = Host(str(tmp_path / "state"))
    real_lock = locking.lock

    def lock(path):
        host.happened.append("lock")
        return real_lock(path)

    monkeypatch.setattr(locking, "lock", lock)
    monkeypatch.setattr(systemd, "full_name", lambda unit, _scope: unit.partition(".")[0] + ".service")
    monkeypatch.setattr(systemd, "show", host.say("unit", "facts"))
    monkeypatch.setattr(systemd, "systemctl", host.systemctl)
    monkeypatch.setattr(ownership, "objection", host.say("owner", "owner"))
    monkeypatch.setattr(ownership, "elsewhere", host.say("elsewhere", "elsewhere"))
    monkeypatch.setattr(pause, "current", host.say("pause", "pause"))
    monkeypatch.setattr(restarting, "starts", host.say("budget", "starts"))
    monkeypatch.setattr(gpu, "objection", host.say("gpu", "gpu"))
    monkeypatch.setattr(last_look, "objection", host.say("look", "look"))
    monkeypatch.setattr(evidence, "collect", host.collect)
    monkeypatch.setattr(restarting.time, "time", lambda: NOW)
    monkeypatch.setattr(restarting.time, "monotonic", lambda: 9000.0)
    return host


# All is well


def test_every_guard_is_asked_then_evidence_is_kept_then_it_is_asked_again_then_it_goes(host):
    host.run()
    assert host.happened == [*GUARDS, "evidence", *AGAIN, "restart", "unit"]


def test_it_is_restarted_once_and_says_so(host):
    outcome = host.run()
    assert host.commands == [("system", ["restart", "--", "vllm.service"], restarting.RESTART_TIMEOUT)]
    assert outcome == restarting.Outcome(
        changed=True,
        message="vllm.service was restarted",
        evidence=os.path.join(host.state_dir, "evidence", evidence.folder_name("vllm.service", NOW)),
        missing_evidence=("py-spy.txt: no answer in time",),
        invocation_id="after",
        active_state="active",
        down_since=NOW,
        seconds=0.0,
    )


def test_a_unit_of_a_user_is_restarted_by_the_users_manager(host):
    host.run(server=vllm_api.Server(Endpoint("http://127.0.0.1:8000"), unit="vllm.service", scope="user"))
    assert [scope for scope, _arguments, _timeout in host.commands] == ["user"]


def test_the_budget_is_asked_for_all_that_it_must_know(host, monkeypatch):
    asked = []
    monkeypatch.setattr(restarting, "starts", lambda *arguments: asked.append(arguments) or [])
    host.run(budget=Budget(min_interval=7200.0, window=3600.0))
    assert asked == [("vllm.service", "system", NOW - 7200.0, "before", NOW - 8900.0)]


def test_the_lock_is_one_for_all_names_of_a_unit(host):
    host.run()
    assert sorted(os.listdir(host.state_dir)) == ["evidence", "vllm.service.lock"]


def test_whoever_checks_may_see_the_pause_mark(host):
    umask = os.umask(0o022)
    try:
        host.run()
    finally:
        os.umask(umask)
    assert os.stat(host.state_dir).st_mode & 0o777 == 0o755


def test_where_else_a_unit_serves_is_asked_of_one_that_is_up_but_seems_dead(host):
    host.elsewhere = ["vllm.service serves vLLM on port 8001"]
    assert host.run(verdict="dead").skipped_because == "wrong_unit"
    assert host.happened == ["lock", "unit", "owner", "elsewhere"]


@pytest.mark.parametrize(("verdict", "facts"), [("stuck", UP), ("dead", FAILED)])
def test_where_else_a_unit_serves_is_not_asked_otherwise(host, verdict, facts):
    host.facts = [facts]
    host.run(verdict=verdict)
    assert "elsewhere" not in host.happened


# Somebody or something says no


def changing(state):
    return [dataclasses.replace(UP, active_state=state)]


NOES = {
    "somebody restarted it": ("restarted_already", {"facts": [NEW]}, 2),
    "it is starting": ("unit_changing", {"facts": changing("activating")}, 2),
    "it is stopping": ("unit_changing", {"facts": changing("deactivating")}, 2),
    "it reloads": ("unit_changing", {"facts": changing("reloading")}, 2),
    "it is in maintenance": ("unit_changing", {"facts": changing("maintenance")}, 2),
    "it has no state": ("unit_changing", {"facts": changing("")}, 2),
    "it is down, so another process was judged": ("recovered", {"facts": [FAILED]}, 2),
    "systemd does not know it": ("unit_unreadable", {"facts": [dataclasses.replace(UP, load_state="not-found")]}, 2),
    "somebody masked it": ("unit_unreadable", {"facts": [dataclasses.replace(UP, load_state="masked")]}, 2),
    "its file is broken": ("unit_unreadable", {"facts": [dataclasses.replace(UP, load_state="bad-setting")]}, 2),
    "systemd says nothing": ("unit_unreadable", {"facts": [dataclasses.replace(UP, load_state="")]}, 2),
    "systemctl hangs": ("unit_unreadable", {"facts": [SystemctlError("systemctl did not answer within 5 s")]}, 2),
    "the port is another unit's": ("wrong_unit", {"owner": ["port 8000 of this host belongs to b.service"]}, 3),
    "a pause": ("paused", {"pause": [pause.Pause("ann", "new driver", None)]}, 4),
    "started twice of late": ("quarantined", {"starts": [[NOW - 7200, NOW - 3600]]}, 5),
    "started a moment ago": ("too_soon", {"starts": [[NOW - 600]]}, 5),
    "no journal": ("quarantined", {"starts": [JournalError("the journal cannot be read (not permitted)")]}, 5),
    "a lost GPU": ("gpu_lost", {"gpu": ["the kernel reports Xid 79 since the last boot"]}, 6),
    "it works again": ("recovered", {"look": ["engine 0 moved meanwhile (prompt_tokens_total)"]}, 7),
    "restarted while it was looked at": ("restarted_already", {"facts": [UP, NEW]}, 8),
    "stopping since it was looked at": ("unit_changing", {"facts": [UP, *changing("deactivating")]}, 8),
}


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("name", NOES)
def test_a_no_ends_it_and_changes_nothing(host, name, dry_run):
    word, parts, asked = NOES[name]
    for part, values in parts.items():
        setattr(host, part, list(values))
    outcome = host.run(dry_run)
    assert (outcome.changed, outcome.skipped_because) == (False, word)
    assert outcome.message.startswith("vllm.service was left alone: ")
    assert host.happened == GUARDS[dry_run:asked]
    assert host.commands == []
    assert (outcome.evidence, outcome.invocation_id, outcome.down_since) == (None, None, None)
    assert not os.path.exists(os.path.join(host.state_dir, "evidence"))


def test_a_lock_that_another_run_holds_ends_it_before_anything(host):
    os.makedirs(host.state_dir)
    with locking.lock(os.path.join(host.state_dir, "vllm.service.lock")):
        host.happened.clear()
        outcome = host.run()
    assert (outcome.changed, outcome.skipped_because, host.happened) == (False, "locked", ["lock"])


def test_a_name_that_systemd_cannot_look_up_ends_it(host, monkeypatch):
    def fail(*_):
        raise SystemctlError("systemctl could not be run: No such file or directory")

    monkeypatch.setattr(systemd, "full_name", fail)
    outcome = host.run()
    assert (outcome.skipped_because, host.happened) == ("unit_unreadable", [])


LATE_NOES = {
    "it works again": ("recovered", {"look": [None, "engine 0 is not silent any more (answered: HTTP 200)"]}),
    "a pause": ("paused", {"pause": [None, pause.Pause("ann", "I am looking at it", None)]}),
    "somebody restarted it": ("restarted_already", {"facts": [UP, UP, NEW]}),
    "it is stopping": ("unit_changing", {"facts": [UP, UP, *changing("deactivating")]}),
    "it crashed": ("recovered", {"facts": [UP, UP, FAILED]}),
    "systemctl hangs": ("unit_unreadable", {"facts": [UP, UP, SystemctlError("no answer")]}),
}


@pytest.mark.parametrize("name", LATE_NOES)
def test_what_changes_while_the_evidence_is_kept_ends_it_too(host, name):
    word, parts = LATE_NOES[name]
    for part, values in parts.items():
        setattr(host, part, list(values))
    outcome = host.run()
    assert (outcome.changed, outcome.skipped_because, host.commands) == (False, word, [])
    assert outcome.evidence and outcome.missing_evidence


@pytest.mark.parametrize("name", ["lock", "folder"])
def test_a_state_that_cannot_be_kept_ends_it_before_anything(host, name, monkeypatch):
    def fail(*_args, **_more):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(*((restarting.os, "makedirs") if name == "folder" else (locking, "lock")), fail)
    outcome = host.run()
    assert (outcome.skipped_because, host.happened) == ("not_permitted", [])
    assert "Permission denied" in outcome.message


# Dead and unresponsive


@pytest.mark.parametrize("state", ["active", "inactive", "failed"])
def test_a_dead_server_may_be_of_a_unit_that_is_up_or_down(host, state):
    host.facts = [dataclasses.replace(UP, active_state=state)] * 3 + [NEW]
    assert host.run(verdict="dead").changed


@pytest.mark.parametrize("verdict", ["stuck", "unresponsive"])
def test_only_a_unit_that_is_up_can_hang(host, verdict):
    host.facts = [FAILED]
    assert host.run(verdict=verdict).skipped_because == "recovered"


def test_a_unit_that_never_started_has_no_last_start(host, monkeypatch):
    asked = []
    monkeypatch.setattr(restarting, "starts", lambda *arguments: asked.append(arguments[-2:]) or [])
    host.facts = [UnitFacts("loaded", "inactive", "dead", "", 0, 0, None)] * 3 + [NEW]
    assert host.run(verdict="dead", invocation_id="").changed
    assert asked == [("", None)]


# Dry run


def test_a_dry_run_asks_all_guards_and_writes_nothing(host):
    outcome = host.run(dry_run=True)
    assert outcome == restarting.Outcome(True, "vllm.service would be restarted")
    assert host.happened == GUARDS[1:]
    assert not os.path.exists(host.state_dir)


# The restart itself


def test_evidence_that_could_not_be_kept_does_not_keep_it_down(host, monkeypatch):
    monkeypatch.setattr(evidence, "collect", lambda *_: ["no evidence could be kept: No space left on device"])
    outcome = host.run()
    assert outcome.changed and len(host.commands) == 1
    assert (outcome.evidence, len(outcome.missing_evidence)) == (None, 1)


def test_only_the_newest_evidence_stays(host):
    base = os.path.join(host.state_dir, "evidence")
    for number in range(12):
        os.makedirs(os.path.join(base, evidence.folder_name("vllm.service", NOW - 1000 + number)))
    outcome = host.run()
    assert len(os.listdir(base)) == evidence.KEPT
    assert os.path.isdir(outcome.evidence)


@pytest.mark.parametrize(
    ("after", "error"),
    [
        (NEW, "systemctl did not answer within 900 s"),
        (dataclasses.replace(NEW, active_state="failed"), "Job for vllm.service failed."),
        (dataclasses.replace(UP, active_state="deactivating"), "systemctl did not answer within 900 s"),
        (FAILED, "Job for vllm.service failed: start request repeated too quickly"),
        (SystemctlError("systemctl did not answer within 5 s"), "Job for vllm.service failed."),
    ],
)
def test_a_restart_that_went_wrong_is_a_change_that_says_so(host, after, error):
    host.restart = [SystemctlError(error)]
    host.facts = [UP, UP, UP, after]
    outcome = host.run()
    assert (outcome.changed, outcome.skipped_because) == (True, "")
    assert outcome.message == "vllm.service was restarted, but: " + error
    assert outcome.down_since == NOW and outcome.evidence
    assert len(host.commands) == 1, "there is no second try"


def test_a_restart_after_which_systemd_does_not_answer_is_a_change(host):
    host.facts = [UP, UP, UP, SystemctlError("systemctl did not answer within 5 s")]
    outcome = host.run()
    assert outcome.changed and outcome.message.endswith("systemctl did not answer within 5 s")


@pytest.mark.parametrize("verdict", ["stuck", "dead"])
def test_a_restart_that_systemd_refused_is_none(host, verdict):
    host.restart = [SystemctlError("Failed to restart vllm.service: Access denied")]
    host.facts = [FAILED if verdict == "dead" else UP]
    outcome = host.run(verdict=verdict)
    assert (outcome.changed, outcome.skipped_because) == (False, "not_permitted")
    assert outcome.down_since is None


def test_a_dead_unit_that_did_not_come_up_was_restarted_all_the_same(host):
    """Or the run would go on to the next server."""
    host.restart = [SystemctlError("Job for vllm.service failed: start request repeated too quickly")]
    host.facts = [FAILED]
    assert host.run(verdict="dead").changed


def test_the_lock_is_held_until_the_end_and_free_after_it(host, monkeypatch):
    path = os.path.join(host.state_dir, "vllm.service.lock")

    def restart(*_):
        with pytest.raises(locking.Held), locking.lock(path):
            pass
        return ""

    monkeypatch.setattr(systemd, "systemctl", restart)
    assert host.run().changed
    with locking.lock(path):
        pass
