"""The controller or the connection is lost in the middle: nothing is restarted a second time, nothing else is touched."""

import time

import pytest

from tests.integration.heal.stage import STATE, Stage

pytestmark = pytest.mark.systemd


def test_the_controller_is_killed_between_verdict_and_restart(stage: Stage) -> None:
    stage.start("frozen-busy", "idle")
    with stage.healing() as run:
        run.await_output("to be restarted: 1 of 2 servers")
        run.kill()
    assert stage.starts() == [1, 1]
    done = stage.heal()
    assert done.code == 0, done.output
    assert done.actions() == ["restarted", "none"]
    assert stage.starts() == [2, 1]


def test_the_controller_is_killed_while_the_host_is_at_it(stage: Stage) -> None:
    """What has begun on the host goes on there or does not; a second run does not add to it."""
    stage.start("frozen-busy", "idle")
    with stage.healing() as run:
        run.await_output(f"restart {stage.servers[0].unit}")
        time.sleep(5)
        run.kill()
    second = stage.heal()
    assert second.row("one")["action"] in ("locked", "restarted", "restarted_already", "recovered", "none")
    await_served(stage)
    assert stage.heal().actions() == ["none", "none"]
    assert stage.starts() == [2, 1]


def test_the_controller_is_killed_between_restart_and_ready(stage: Stage) -> None:
    stage.start("frozen-busy", "idle")
    stage.servers[0].set_options("--state", "idle", "--start-delay", "40")
    with stage.healing() as run:
        run.await_output("Wait for the port")
        run.kill()
    assert stage.starts() == [2, 1]
    # Now it is young, and its port is closed.
    stage.set_variables(vllm_check_startup_grace=900)
    second = stage.heal()
    assert (second.row("one")["verdict"], second.row("one")["action"]) == ("starting", "none")
    await_served(stage)
    third = stage.heal()
    assert (third.code, third.actions()) == (0, ["none", "none"])
    assert stage.starts() == [2, 1]


def await_served(stage: Stage) -> None:
    """Until the first server answers and no run of ours is at work on its host any more."""
    server = stage.servers[0]
    lock = f"{STATE}/{server.unit}.lock"
    server.host.run("sh", "-c", f"test ! -e {lock} || flock --wait 60 {lock} true", timeout=90)
    server.await_models(90)


def test_the_connection_is_lost_during_the_wait(stage: Stage) -> None:
    stage.start("frozen-busy", "frozen-busy")
    stage.servers[0].set_options("--state", "idle", "--start-delay", "600")
    with stage.healing() as run:
        run.await_output("Wait for the port")
        stage.hosts["one"].cut_network()
        done = run.end()
    stage.hosts["one"].restore_network()
    assert done.code != 0
    assert done.actions() == ["restart_failed", "run_stopped"]
    assert stage.starts() == [2, 1]
    assert "connection" in done.row("one")["action_message"]
    assert "another server did not come back" in done.row("two")["action_message"]
