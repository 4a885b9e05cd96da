"""Hosts with vLLM servers, some of them watched by far too many."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.fleet import fleet
from tests.fleet.hosts import Host
from tests.fleet.simulator import install_program
from tests.fleet.watchdogs import plant, plant_decoys, start

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
            install_program(host)
            host.install_unit("vllm.service", (HERE / "vllm.service").read_text())
        plant(booted["watched"])  # before its server is started, as some of it holds for the next process only
        for name in ("watched", "clean"):
            plant_decoys(booted[name])
        for name in ("watched", "clean"):
            start(booted[name], "vllm.service")
        yield booted


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
