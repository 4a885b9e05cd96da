"""The stop takes long or the start fails: there is one try, and the module says what it saw."""

import pytest

from tests.integration.restart.stage import Stage

pytestmark = pytest.mark.systemd


def test_a_server_that_does_not_hear_sigterm_is_killed_by_systemd(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy", "--ignore-sigterm")
    stage.configure("[Service]\nTimeoutStopSec=4\n")
    stage.server.set_options("--state", "idle")
    done = stage.restart(stage.judge())
    assert done["changed"] and done["invocation_id"] == stage.server.invocation()
    assert done["seconds"] >= 4
    assert stage.starts() == 2


def test_a_process_that_ends_at_once_is_not_tried_again_by_us(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    stage.configure("[Service]\nRestart=no\n")
    stage.server.set_options("--fail-start")
    judged = stage.judge()
    done = stage.restart(judged)
    assert (done["changed"], done["skipped_because"]) == (True, "")
    assert done["invocation_id"] != judged["systemd"]["invocation_id"]
    assert stage.starts() == 2


def test_a_port_that_is_taken_is_not_tried_again_by_us(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    stage.configure("[Service]\nRestart=no\n")
    stage.host.run("systemd-run", "--quiet", "--unit=squatter", "python3", "-m", "http.server", "8001")
    stage.server.set_options("--port", "8001")
    try:
        done = stage.restart(stage.judge())
    finally:
        stage.host.run("systemctl", "stop", "squatter")
    assert done["changed"]
    assert stage.starts() == 2


def test_a_start_that_systemd_refuses_leaves_a_unit_that_is_down_and_says_why(stage: Stage) -> None:
    stage.configure("[Unit]\nStartLimitIntervalSec=600\nStartLimitBurst=1\n")
    stage.server.start("--state", "frozen-busy")
    done = stage.restart(stage.judge())
    assert (done["changed"], done["active_state"]) == (True, "failed")
    assert "was restarted, but:" in done["message"]
    assert stage.starts() == 1


def test_a_start_that_systemd_waits_for_and_that_fails(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    stage.configure("[Service]\nExecStartPre=/bin/false\nRestart=no\n")
    done = stage.restart(stage.judge())
    assert (done["changed"], done["active_state"]) == (True, "failed")
    assert "was restarted, but:" in done["message"]


def test_the_server_that_comes_back_frozen_is_not_restarted_a_second_time(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    first = stage.restart(stage.judge())
    assert first["changed"]
    stage.server.await_models()
    second = stage.restart(stage.judge(), min_interval=1800, max_starts=9)
    assert (second["changed"], second["skipped_because"]) == (False, "too_soon")
    assert stage.starts() == 2
