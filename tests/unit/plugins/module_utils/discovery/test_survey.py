"""The readers on this very machine, whatever it is: a process that looks like vLLM is found by its process and socket."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import bounded
from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery import finding, results, survey

SERVER = """\
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server(tmp_path):
    """A script named vllm that listens on a port of its own and ends with its standard input."""
    (tmp_path / "vllm").write_text(SERVER)
    (tmp_path / "config.yaml").write_text("model: org/configured\n")
    command = [sys.executable, str(tmp_path / "vllm"), "serve", "--config", str(tmp_path / "config.yaml")]
    environment = {**os.environ, "VLLM_API_KEY": "geheim"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        port = int(process.stdout.readline())
        yield process.pid, port
        process.stdin.close()


def test_a_server_is_found_by_its_process_and_its_socket(server):
    pid, port = server
    look = survey.Survey()
    host = look.host()
    answer = results.result(finding.find(host), host, look.notes)
    (found,) = [one for one in answer["found"] if one["pid"] == pid]
    assert (found["model"], found["api_key"], found["interpreter"]) == ("org/configured", True, sys.executable)
    assert found["unit"] is None and found["listening"] is False
    assert [listener.port for listener in host.evidence[pid].listeners] == [port]
    assert "geheim" not in repr(answer)


def test_only_addresses_of_this_machine_are_its_own():
    assert survey.local_address("127.0.0.1") == "127.0.0.1"
    assert survey.local_address("localhost") == "127.0.0.1"
    assert survey.local_address("0.0.0.0") == "0.0.0.0"
    assert survey.local_address("198.51.100.7") is None
    assert survey.local_address(None) is None
    assert survey.local_address("x/@evil.example") is None


def test_what_cannot_be_asked_is_noted(monkeypatch):
    monkeypatch.setattr(bounded, "run", lambda *_arguments, **_more: bounded.Unreadable("systemctl show", "no bus"))
    look = survey.Survey()
    look.host()
    assert "the services of the system could not be listed: no bus" in look.notes
