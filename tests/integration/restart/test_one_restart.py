"""A server that hangs is restarted once; what it was is kept, and a second run leaves the new one alone."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.restart.stage import STATE, Stage

pytestmark = pytest.mark.systemd


@pytest.mark.parametrize("state", ["frozen-busy", "frozen-idle", "not-admitted"])
def test_a_frozen_server_is_restarted_once_and_serves_again(stage: Stage, state: str) -> None:
    stage.server.start("--state", state)
    stage.server.set_options("--state", "idle")
    judged = stage.judge()
    done = stage.restart(judged)
    assert (done["changed"], done["skipped_because"]) == (True, ""), done["message"]
    stage.server.await_models()
    assert stage.starts() == 2
    assert done["invocation_id"] == stage.server.invocation() != judged["systemd"]["invocation_id"]
    assert done["seconds"] < 60 and done["active_state"] == "active"
    again = stage.restart(judged)
    assert (again["changed"], again["skipped_because"]) == (False, "restarted_already")
    assert stage.starts() == 2


def test_what_the_server_was_is_kept_before_it_goes(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy", "--served-model-name", "tiny")
    stage.configure("[Service]\nEnvironment=VLLM_API_KEY=hunter2 HF_TOKEN=hf_hunter2hunter2\n")
    judged = stage.judge()
    done = stage.restart(judged)
    files = stage.evidence()
    assert done["evidence"].startswith(f"{STATE}/evidence/{stage.unit}-20")
    # The test hosts have neither py-spy nor a GPU; that is no gap.
    assert done["missing_evidence"] == []
    assert sorted(files) == [
        "connections.txt",
        "journal.txt",
        "metrics.prom",
        "processes.txt",
        "systemctl-show.txt",
        "verdict.json",
    ]
    assert json.loads(files["verdict.json"])["last_sample"] == judged["last_sample"]
    assert 'vllm:num_requests_running{engine="0",model_name="tiny"} 3.0' in files["metrics.prom"]
    assert f"InvocationID={judged['systemd']['invocation_id']}" in files["systemctl-show.txt"]
    assert "hunter2" not in files["systemctl-show.txt"]
    assert "vllm serve" in files["processes.txt"]
    assert f"Started {stage.unit}" in files["journal.txt"]
    assert ":8000" in files["connections.txt"]
    modes = stage.host.run("stat", "--format=%a", STATE, f"{STATE}/evidence", done["evidence"]).stdout.split()
    assert modes == ["755", "700", "700"]


def test_what_is_installed_for_looking_into_it_is_used(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    stage.host.write("/usr/local/bin/py-spy", '#!/bin/sh\necho "py-spy $*"\n', "0755")
    pid = stage.host.unit(stage.unit, "MainPID")["MainPID"]
    stage.restart(stage.judge())
    assert stage.evidence()["py-spy.txt"] == f"py-spy dump --nonblocking --pid {pid} --subprocesses\n"


def test_check_mode_says_what_it_would_do_and_does_nothing(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    judged = stage.judge()
    would = stage.restart(judged, check=True)
    assert (would["changed"], would["message"]) == (True, f"{stage.unit} would be restarted")
    assert f"{stage.unit}: invocation {judged['systemd']['invocation_id']}, stuck" in would["diff"]["before"]
    assert f"{stage.unit}: invocation (a new one), restarted" in would["diff"]["after"]
    assert (stage.server.invocation(), stage.starts()) == (judged["systemd"]["invocation_id"], 1)
    assert stage.kept() == []
    assert stage.restart(judged)["changed"]


def test_two_at_once_make_one_restart(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    judged = stage.judge()
    with ThreadPoolExecutor(2) as both:
        done = list(both.map(lambda _: stage.restart(judged), range(2)))
    assert sorted(one["changed"] for one in done) == [False, True]
    (left,) = [one for one in done if not one["changed"]]
    assert left["skipped_because"] in ("locked", "restarted_already")
    assert stage.starts() == 2


def test_a_lock_is_respected_while_its_holder_lives_and_not_after(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    judged = stage.judge()
    lock = f"{STATE}/{stage.unit}.lock"
    stage.host.run("mkdir", "-p", STATE)
    stage.host.run("systemd-run", "--quiet", "--unit=holder", "flock", lock, "sleep", "600")
    held = stage.restart(judged)
    assert (held["changed"], held["skipped_because"]) == (False, "locked")
    stage.host.run("systemctl", "kill", "--signal=KILL", "holder")
    stage.host.run("sh", "-c", "while systemctl --quiet is-active holder; do sleep 0.1; done; systemctl reset-failed holder")
    assert lock in stage.kept()
    assert stage.restart(judged)["changed"]
    assert stage.starts() == 2


@pytest.mark.parametrize("name", ["without its suffix", "an alias"])
def test_a_unit_may_be_called_by_another_of_its_names(stage: Stage, name: str) -> None:
    stage.server.start("--state", "frozen-busy")
    called = stage.unit.removesuffix(".service")
    if name == "an alias":
        called = f"alias-of-{stage.unit}"
        stage.host.run("ln", "-s", stage.unit, f"/etc/systemd/system/{called}")
        stage.host.run("systemctl", "daemon-reload")
    done = stage.restart(stage.judge(server={"unit": called}), server={"unit": called})
    assert done["changed"], done["message"]
    assert stage.starts() == 2
    assert f"{STATE}/{stage.unit}.lock" in stage.kept()
