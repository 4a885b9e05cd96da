"""Hosts with vLLM servers, some of them watched by far too many."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.fleet import fleet
from tests.fleet.hosts import Host
from tests.fleet.simulator import SIMULATOR

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
Module = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit-fleet")


@pytest.fixture(scope="session")
def hosts(state: Path) -> Iterator[dict[str, Host]]:
    """`watched` with every watchdog there is, `clean` with none, `mixed` with servers of all kinds."""
    with fleet(state, ["watched", "clean", "mixed"]) as booted:
        for host in booted.values():
            host.copy_folder(SIMULATOR, "/opt/vllm-simulator")
            host.copy_folder(HERE / "server", "/")
            host.run("systemctl", "daemon-reload")
        for name in ("watched", "clean"):
            booted[name].copy_folder(HERE / "decoys", "/")
        plant(booted["watched"])
        start(booted["clean"], "metrics.timer", "vllm-exporter.service", "vllm.service")
        yield booted


def plant(host: Host) -> None:
    """Put every kind of watchdog on a host. None of them acts by itself within the time of the tests."""
    host.copy_folder(HERE / "watched", "/")
    host.run("chown", "-R", "ops:", "/home/ops", "/var/spool/cron/crontabs/ops")
    host.run("chmod", "600", "/var/spool/cron/crontabs/ops")
    host.run("chmod", "1730", "/var/spool/cron/crontabs")
    host.run("sh", "-c", "cd /; echo 'systemctl restart vllm' | at now + 3 hours")
    host.run("systemctl", "daemon-reload")
    timers = [f"vllm-check-{minutes}.timer" for minutes in (5, 10, 15, 30)]
    start(host, "llm.target", "gpu-prep.service", "monit.service", "metrics.timer", "llm-docker.service", *timers)
    start(host, "vllm-bounce.path", "vllm-watch.service", "vllm.service")
    host.keep_user_units("ops")
    host.run_as("ops", "systemctl", "--user", "enable", "--now", "mine.timer")


def start(host: Host, *units: str) -> None:
    """Start units, those that can be also at boot."""
    host.run("systemctl", "daemon-reload")
    for unit in units:
        host.run("systemctl", "enable", unit, check=False)
        host.run("systemctl", "start", unit)
    await_true(lambda: host.run("systemctl", "is-active", *units, check=False).returncode == 0)


def await_true(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Return when the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "that did not come true"
        time.sleep(0.1)


def ansible(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the Ansible beside this Python, from the repository."""
    command = [str(Path(sys.executable).with_name(program)), *arguments]
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1", **environment}
    return subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="session")
def run_module(hosts: dict[str, Host], state: Path) -> Module:
    """Runs a module of the collection on a host over SSH and returns what it returned."""

    def run(name: str, host: str, become: bool = True, **options: Any) -> dict[str, Any]:
        result = state / "result.json"
        result.unlink(missing_ok=True)
        tasks = [
            {"name": "Run", f"fleetcheck.vllm.{name}": options, "register": "result", "become": become},
            {
                "name": "Keep",
                "ansible.builtin.copy": {"content": "{{ result | to_json }}", "dest": str(result), "mode": "0600"},
                "delegate_to": "localhost",
                "vars": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable},
            },
        ]
        play = state / "play.yml"
        play.write_text(json.dumps([{"name": "Run", "hosts": host, "gather_facts": False, "tasks": tasks}]))
        done = ansible(
            "ansible-playbook", "-i", str(state / "inventory"), str(play),
            ANSIBLE_COLLECTIONS_PATH=str(REPOSITORY / "playbooks" / "collections"),
        )  # fmt: skip
        assert result.exists(), done.stdout + done.stderr
        answer: dict[str, Any] = json.loads(result.read_text())
        return answer

    return run
