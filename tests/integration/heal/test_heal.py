"""heal.yml restarts what hangs and nothing else, once, and says what it did."""

import json

import pytest

from tests.integration.ansible.running import CORES
from tests.integration.heal.stage import NAMES, STATE, Stage

pytestmark = pytest.mark.systemd


@pytest.mark.parametrize(
    ("core", "dry_run"), [(CORES[0], "--check"), (CORES[-1], "--extra-vars=vllm_restart_dry_run=yes")], ids=["oldest", "newest"]
)
def test_two_of_four_hang_and_are_restarted_one_after_another(stage: Stage, core: str, dry_run: str) -> None:
    stage.use(core)
    stage.start("idle", "frozen-busy", "idle", "frozen-idle")
    stage.servers[0].send_load(3)
    before = [server.invocation() for server in stage.servers]

    assert stage.heal(dry_run).actions() == ["none", "would_restart", "none", "would_restart"]
    assert [server.invocation() for server in stage.servers] == before
    assert stage.hosts["two"].run("ls", STATE, check=False).stdout == ""

    done = stage.heal()
    assert done.code == 0, done.output
    assert done.actions() == ["none", "restarted", "none", "restarted"]
    assert stage.starts() == [1, 2, 1, 2]
    for place, server in enumerate(stage.servers[1::2]):
        row = done.row("two", place)
        assert (row["verdict_before"], row["verdict"], row["healthy"]) == ("stuck", "idle", True)
        assert 0 < row["seconds_down"] < 120
        assert "verdict.json" in server.host.run("ls", row["evidence"]).stdout
        assert row["systemd"]["invocation_id"] == server.invocation() not in before
    assert done.report is not None and done.report["restarts"]["restarted"] == 2
    assert done.published() == done.report
    assert stage.servers[0].counts()["failed_in_flight"] == 0
    assert {result["outcome"] for result in stage.servers[0].load_results()} == {"ok"}

    again = stage.heal()
    assert again.code == 0, again.output
    assert again.actions() == ["none"] * 4
    assert stage.starts() == [1, 2, 1, 2]
    assert "changed=1" not in again.output


def test_from_the_controller_only_the_host_that_is_acted_on_is_connected_to(stage: Stage) -> None:
    stage.start("frozen-busy", "idle")
    stage.hosts["two"].run("systemctl", "stop", "ssh")
    try:
        done = stage.heal("-e", "vllm_check_from=controller")
    finally:
        stage.hosts["two"].run("systemctl", "start", "ssh")
    assert done.code == 0, done.output
    assert done.actions() == ["restarted", "none"]
    assert stage.starts() == [2, 1]
    assert (done.row("one")["verdict_before"], done.row("one")["verdict"]) == ("stuck", "idle")
    assert done.row("two")["verdict"] == "idle"


def test_three_of_four_hang_and_none_is_restarted(stage: Stage) -> None:
    stage.start("frozen-busy", "frozen-idle", "idle", "frozen-busy")
    done = stage.heal()
    assert done.code != 0
    assert done.actions() == ["common_cause", "common_cause", "none", "common_cause"]
    assert "3 of 4 servers are stuck at once: look for one cause" in done.output
    assert stage.starts() == [1, 1, 1, 1]


def test_a_dry_run_that_is_not_understood_is_refused(stage: Stage) -> None:
    stage.start("frozen-busy", "idle")
    refused = stage.heal("-e", "vllm_restart_dry_run=perhaps")
    assert refused.code != 0 and "vllm_restart_dry_run" in refused.output
    assert stage.starts() == [1, 1]


def test_a_run_has_a_limit(stage: Stage) -> None:
    stage.start("frozen-busy", "frozen-busy")
    done = stage.heal("-e", "vllm_restart_max_per_run=1")
    assert done.code != 0, "one still hangs"
    assert done.actions() == ["restarted", "over_run_limit"]
    assert stage.starts() == [2, 1]


def test_two_runs_at_once_make_one_restart(stage: Stage) -> None:
    stage.start("frozen-busy", "idle")
    with stage.healing() as first, stage.healing() as second:
        both = [first.end(), second.end()]
    assert stage.starts() == [2, 1]
    actions = sorted(done.row("one")["action"] for done in both)
    assert actions in ([other, "restarted"] for other in ("locked", "recovered", "restarted_already")), actions


def test_a_pause_is_set_shown_respected_and_removed(stage: Stage) -> None:
    stage.start("frozen-busy", "idle")
    why = ["-e", '{"vllm_pause_reason": "new driver", "vllm_pause_by": "ann", "vllm_pause_hours": 2}']
    paused = stage.play("pause.yml", "--limit", "one", *why)
    assert paused.code == 0, paused.output
    mark = json.loads(stage.hosts["one"].read(f"{STATE}/pause.json"))
    assert (mark["who"], mark["why"]) == ("ann", "new driver")
    assert stage.hosts["two"].run("ls", STATE, check=False).stdout == ""
    shown = stage.play("check.yml")
    assert "paused by ann until" in shown.output and "new driver" in shown.output

    done = stage.heal()
    assert done.code != 0
    assert done.actions() == ["paused", "none"]
    assert stage.starts() == [1, 1]

    assert stage.play("resume.yml", "--limit", "one").code == 0
    assert "paused by ann" not in stage.play("check.yml").output
    assert stage.heal().actions() == ["restarted", "none"]
    assert stage.starts() == [2, 1]


def test_a_pause_without_a_reason_is_refused(stage: Stage) -> None:
    stage.start("idle", "idle")
    refused = stage.play("pause.yml")
    assert refused.code != 0 and "vllm_pause_reason is empty" in refused.output
    assert all(stage.hosts[name].run("ls", STATE, check=False).stdout == "" for name in NAMES)
