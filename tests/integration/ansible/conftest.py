"""A clone of the repository, every supported ansible-core, and a few simulated servers for all tests of this folder."""

from __future__ import annotations

import typing as t
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.ansible.running import CORES, Ansible, environment_of
from tests.simulator.running import Simulator
from tests.tools.checkout import copy_to

KEY = "sk-a-key-that-must-not-be-seen"
HOSTILE = "m-{{ lookup('ansible.builtin.pipe', 'touch MARK') }}\u202e"


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as a clone has it."""
    return copy_to(tmp_path_factory.mktemp("clone"))


@pytest.fixture(scope="session", params=CORES)
def core(request: pytest.FixtureRequest) -> str:
    """Each supported ansible-core."""
    return installed(request.param)


@pytest.fixture(scope="session", params=[CORES[0], CORES[-1]], ids=["oldest", "newest"])
def edge(request: pytest.FixtureRequest) -> str:
    """The oldest and the newest supported ansible-core, for what the releases between them cannot have of their own."""
    return installed(request.param)


@pytest.fixture(scope="session")
def newest() -> str:
    """The newest supported ansible-core, for what does not depend on it."""
    return installed(CORES[-1])


def installed(core: str) -> str:
    """The release, or a test that is skipped and says how to get it."""
    if not (environment_of(core) / "bin" / "ansible-playbook").exists():
        pytest.skip(f"ansible-core {core} is not installed in .venvs (make envs)")
    return core


Anywhere = t.Callable[[str], Ansible]


@pytest.fixture(scope="session")
def anywhere(tmp_path_factory: pytest.TempPathFactory) -> Anywhere:
    """Makes a release of Ansible that is run from a folder which is not the repository."""

    def make(release: str) -> Ansible:
        return Ansible(release, tmp_path_factory.mktemp("elsewhere"), tmp_path_factory.mktemp("home"))

    return make


class Servers(t.NamedTuple):
    """Simulated servers by what is true of them."""

    busy: Simulator
    queued: Simulator
    idle: Simulator
    frozen: Simulator
    keyed: Simulator
    hostile: Simulator
    proxy: Simulator
    mark: Path


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Servers]:
    """One server of each kind."""
    mark = tmp_path_factory.mktemp("mark") / "rendered"
    with ExitStack() as stack:

        def simulated(**options: t.Any) -> Simulator:
            return stack.enter_context(Simulator(**options))

        busy, idle = simulated(state="busy"), simulated(state="idle")
        yield Servers(
            busy,
            simulated(state="queued"),
            idle,
            simulated(state="frozen-busy"),
            simulated(state="idle", api_key=KEY),
            simulated(state="idle", served_model_name=HOSTILE.replace("MARK", str(mark))),
            simulated(proxy=[busy.url, idle.url]),
            mark,
        )
