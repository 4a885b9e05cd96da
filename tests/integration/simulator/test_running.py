"""Simulators as processes: how they start, how they end, and that none is left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.integration.simulator.waiting import refuses, wait_until
from tests.simulator.running import PROGRAM, Simulator, SimulatorError


def test_a_simulator_runs_inside_the_block_and_no_longer():
    with Simulator(state="busy") as simulator:
        assert simulator.get("/health")[0] == 200
        assert simulator.control("freeze", engine=0)["engines"][0]["frozen"] is True
        assert simulator.counts()["probes"] == 0
        assert simulator.state()["engines"][0]["running"] == 3
    with pytest.raises(ProcessLookupError):
        os.kill(simulator.pid, 0)


def test_a_frozen_one_ends_promptly_with_code_zero():
    simulator = Simulator(state="frozen-busy").start()
    assert simulator.stop() == 0


def test_one_that_ignores_sigterm_is_ended_all_the_same():
    simulator = Simulator(ignore_sigterm=True).start()
    assert simulator.stop() == -signal.SIGKILL


def test_none_is_left_behind_by_a_test_run_that_is_killed():
    script = ("import time; from tests.simulator.running import Simulator;"
              "print(Simulator(ignore_sigterm=True).start().pid, flush=True); time.sleep(60)")
    run = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=PROGRAM.parents[2])
    pid = int(run.stdout.readline())
    run.kill()
    run.communicate()
    wait_until(lambda: not exists(pid))


def exists(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_slow_start_refuses_until_the_port_opens():
    with Simulator(start_delay=0.3) as simulator:
        assert refuses(simulator.port)
        wait_until(lambda: not refuses(simulator.port))
        assert simulator.get("/health")[0] == 200


def test_a_failing_start_ends_with_code_one():
    with Simulator(fail_start=True) as simulator:
        assert simulator.wait(5) == 1


def test_a_killed_engine_ends_the_process_with_code_zero(tmp_path):
    log = tmp_path / "log.jsonl"
    with Simulator(log=log) as simulator:
        simulator.control("kill", exit_after=0.05)
        assert simulator.get("/health")[0] == 503
        assert simulator.wait(5) == 0


def test_an_old_release_ends_with_the_next_request_after_its_engine_died():
    with Simulator(release="0.8.5-v0") as simulator:
        simulator.control("kill", exit_after=None, with_next_request=True)
        assert simulator.get("/health")[0] == 500
        with pytest.raises(OSError):
            simulator.post("/v1/completions", {"max_tokens": 1})
        assert simulator.wait(5) == 0


def test_a_request_open_at_the_end_is_logged_as_failed(tmp_path):
    log = tmp_path / "log.jsonl"
    with Simulator(state="frozen-idle", log=log) as simulator:
        client = socket.create_connection(("127.0.0.1", simulator.port))
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        simulator.until(lambda running: running.counts()["open"] == 1)
        simulator.stop()
        client.close()
    assert [json.loads(line).get("outcome") for line in log.read_text().splitlines()] == [None, "failed"]


def test_a_port_that_is_taken_is_named():
    with Simulator() as first, pytest.raises(SimulatorError, match=f"cannot listen on 127.0.0.1 port {first.port}"):
        Simulator(port=first.port).start()


def test_a_wrong_option_is_reported():
    with pytest.raises(SimulatorError, match="--state"):
        Simulator(state="nonsense").start()


def test_it_runs_as_a_module_too():
    process = subprocess.run([sys.executable, "-m", "vllm_sim", "--help"], cwd=PROGRAM.parent,
                             capture_output=True, text=True, check=True)
    assert "--release" in process.stdout


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", "/CN=localhost", "-days", "1", "-keyout", folder / "key.pem", "-out",
                    folder / "cert.pem"], check=True, capture_output=True)
    return folder


def test_tls_answers_https_and_closes_on_plain_http(certificate):
    with Simulator(certfile=certificate / "cert.pem", keyfile=certificate / "key.pem") as simulator:
        assert simulator.url.startswith("https://")
        assert simulator.get("/metrics")[0] == 200
        with socket.create_connection(("127.0.0.1", simulator.port), timeout=5) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.recv(100) == b""


def test_a_client_that_leaves_is_noticed_over_tls(certificate):
    with Simulator(certfile=certificate / "cert.pem", keyfile=certificate / "key.pem") as simulator:
        with pytest.raises(OSError):
            simulator.post("/v1/completions", {"max_tokens": 1000000}, timeout=0.3)
        simulator.until(lambda running: running.counts()["client_gone"] == 1)
        simulator.until(lambda running: running.state()["engines"][0]["running"] == 0)
