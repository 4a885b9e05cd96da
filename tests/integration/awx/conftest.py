"""A clone of the repository as a project of AWX, each supported ansible-core, and a few simulated servers."""

from __future__ import annotations

import typing as t
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.ansible.conftest import core, edge, installed
from tests.integration.ansible.running import ROOT, environment_of
from tests.integration.awx import private_data
from tests.integration.awx.jobs import RUNNER, Job, run
from tests.simulator.running import Simulator
from tests.tools.checkout import copy_to


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "awx: jobs as AWX runs them, and what playbooks/awx_configure.yml makes")


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as AWX fetches it."""
    return copy_to(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="session")
def usual() -> str:
    """The newest ansible-core that our own execution environment may have."""
    return installed("2.18")


class Servers(t.NamedTuple):
    """Simulated servers by what is true of them."""

    busy: Simulator
    idle: Simulator
    frozen: Simulator
    keyed: Simulator


KEY = "sk-a-key-that-must-not-be-seen"


@pytest.fixture(scope="session")
def servers() -> t.Iterator[Servers]:
    """One of each kind; many hosts of an inventory may be the same server."""
    with ExitStack() as stack:
        states: list[dict[str, t.Any]] = [
            {"state": "busy"}, {"state": "idle"}, {"state": "frozen-busy"}, {"state": "idle", "api_key": KEY},
        ]
        yield Servers(*(stack.enter_context(Simulator(**options)) for options in states))


Launched = t.Callable[..., Job]


@pytest.fixture
def launched(tmp_path: Path, project: Path) -> Launched:
    """Runs a job of this project: launched(core, inventory, playbook, limit=…)."""
    if not (RUNNER / "ansible-runner").exists():
        pytest.skip("ansible-runner is not installed in .venvs/awx (make envs)")
    number = iter(range(1000))

    def launch(core: str, inventory: private_data.Inventory, playbook: str, **said: t.Any) -> Job:
        return run(core, tmp_path / str(next(number)), project, inventory, private_data.Launch(playbook, **said))

    return launch


def fleet_of(hosts: t.Mapping[str, private_data.Variables], core: str, **everywhere: t.Any) -> private_data.Inventory:
    """What AWX has of an inventory whose hosts are this machine."""
    here = {
        "ansible_connection": "local",
        "ansible_python_interpreter": str(environment_of(core) / "bin" / "python"),
        "vllm_check_startup_grace": 0,
    }
    return {
        "_meta": {"hostvars": dict(hosts)},
        "all": {"children": ["vllm"]},
        "vllm": {"hosts": list(hosts), "vars": {**here, **everywhere}},
    }


def at(*servers: Simulator, **options: t.Any) -> private_data.Variables:
    """The variables of a host that has these servers."""
    return {"vllm_servers": [{"url": server.url, **options} for server in servers]}


__all__ = ["ROOT", "at", "core", "edge", "fleet_of"]
