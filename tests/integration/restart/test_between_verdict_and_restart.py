"""A verdict is old the moment it is given: what happens after it keeps the server from being restarted."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fleet.commands import FleetError
from tests.integration.restart.stage import STATE, Result, Stage

pytestmark = pytest.mark.systemd


def left_alone(stage: Stage, done: Result, *words: str) -> None:
    """The module has done nothing, for one of these reasons, and the unit has been started once."""
    assert done["changed"] is False and done["skipped_because"] in words, done
    assert (done["invocation_id"], done["down_since"]) == (None, None)


def test_somebody_else_restarts_the_unit(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    judged = stage.judge()
    stage.host.ssh(f"sudo systemctl restart {stage.unit}")
    stage.server.await_models()
    left_alone(stage, stage.restart(judged), "restarted_already")
    assert stage.starts() == 2


def test_somebody_else_restarts_the_unit_and_it_hangs_again_with_the_same_numbers(stage: Stage) -> None:
    stage.server.start("--state", "frozen-idle")
    judged = stage.judge()
    stage.host.run("systemctl", "restart", stage.unit)
    stage.server.await_models()
    left_alone(stage, stage.restart(judged), "restarted_already")


@pytest.mark.parametrize("seconds", [3, 14])
def test_somebody_else_restarts_the_unit_while_it_is_looked_at_for_the_last_time(stage: Stage, seconds: int) -> None:
    """Twice the server is given ten seconds to answer: before its evidence is kept, and after."""
    stage.server.start("--state", "frozen-busy")
    judged = stage.judge()
    with ThreadPoolExecutor(1) as aside:
        doing = aside.submit(stage.restart, judged)
        _await_lock(stage)
        time.sleep(seconds)
        stage.host.run("systemctl", "restart", stage.unit)
        left_alone(stage, doing.result(), "restarted_already", "recovered")
    assert stage.starts() == 2


def _await_lock(stage: Stage, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while f"{STATE}/{stage.unit}.lock" not in stage.kept():
        if time.monotonic() > deadline:
            raise FleetError("the module did not take its lock")
        time.sleep(0.1)


def test_a_busy_server_works_again(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    judged = stage.judge()
    stage.server.control("thaw")
    left_alone(stage, stage.restart(judged), "recovered")
    assert stage.starts() == 1
    assert stage.server.counts()["failed_in_flight"] == 0


def test_an_idle_server_works_again_with_the_same_zeros(stage: Stage) -> None:
    stage.server.start("--state", "frozen-idle")
    judged = stage.judge()
    assert judged["reason"] == "no_answer"
    stage.server.control("thaw")
    left_alone(stage, stage.restart(judged), "recovered")
    assert stage.starts() == 1


def test_a_server_works_again_whose_gauges_still_count_clients_that_have_left(stage: Stage) -> None:
    stage.server.start("--state", "frozen-idle")
    stage.server.control("stale", running=2)
    judged = stage.judge()
    assert judged["reason"] == "no_progress"
    stage.server.control("thaw")
    done = stage.restart(judged)
    left_alone(stage, done, "recovered")
    assert "not silent any more" in done["message"]


def test_a_server_works_again_while_its_evidence_is_kept(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    stage.host.write("/usr/local/bin/py-spy", "#!/bin/sh\nsleep 5\necho dumped\n", "0755")
    judged = stage.judge()
    with ThreadPoolExecutor(1) as aside:
        doing = aside.submit(stage.restart, judged)
        _await_evidence(stage)
        stage.server.control("thaw")
        done = doing.result()
    left_alone(stage, done, "recovered")
    assert stage.starts() == 1
    assert done["evidence"] and "verdict.json" in stage.evidence()


def _await_evidence(stage: Stage, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not any(path.endswith("verdict.json") for path in stage.kept()):
        if time.monotonic() > deadline:
            raise FleetError("no evidence was kept")
        time.sleep(0.1)


def test_the_server_dies_and_systemd_starts_it_again(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    judged = stage.judge()
    stage.host.run("systemctl", "kill", "--signal=KILL", stage.unit)
    left_alone(stage, stage.restart(judged), "unit_changing", "restarted_already")


def test_the_unit_was_stopped_by_a_person(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    judged = stage.judge()
    stage.host.run("systemctl", "stop", stage.unit)
    left_alone(stage, stage.restart(judged), "recovered")
    assert stage.host.unit(stage.unit, "ActiveState")["ActiveState"] == "inactive"


def test_a_dead_server_was_started_by_a_person(stage: Stage) -> None:
    stage.server.start("--state", "idle")
    stage.server.control("kill", exit_after=0.1)
    judged = stage.judge("dead")
    assert judged["reason"] == "unit_inactive"
    stage.host.run("systemctl", "start", stage.unit)
    left_alone(stage, stage.restart(judged), "restarted_already")
    assert stage.starts() == 2


def test_a_dead_server_is_started_if_the_operator_says_so(stage: Stage) -> None:
    stage.server.start("--state", "idle")
    stage.server.control("kill", exit_after=0.1)
    done = stage.restart(stage.judge("dead"))
    assert done["changed"], done["message"]
    stage.server.await_models()
    assert stage.starts() == 2
