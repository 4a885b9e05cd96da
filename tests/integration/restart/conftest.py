"""Real hosts for this folder's tests, which are played side by side: most of each is waiting for a silent server."""

from __future__ import annotations

import typing as t
from contextlib import ExitStack

import pytest

from tests.fleet.fleet import fleet
from tests.integration.ansible.running import CORES, environment_of
from tests.integration.restart import bare_modules
from tests.integration.restart.side_by_side import Players
from tests.integration.restart.stage import Stage

HOSTS = 9
SPARE = 2  # for tests that leave a host in a state that the next test cannot use


@pytest.fixture(scope="session")
def players(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Players]:
    """Hosts, and a thread for each of those that are used at the same time."""
    core = CORES[-1]
    if not (environment_of(core) / "bin" / "ansible").exists():
        pytest.skip(f"ansible-core {core} is not installed in .venvs (make envs)")
    with ExitStack() as up:
        names = [f"h{number}" for number in range(1, HOSTS + SPARE + 1)]
        hosts = up.enter_context(fleet(tmp_path_factory.mktemp("fleet"), names))
        for host in hosts.values():
            bare_modules.provide(host, core)
        stages = [Stage(host) for host in hosts.values()]
        yield up.enter_context(Players(stages, HOSTS, up.close))


@pytest.fixture
def stage(players: Players) -> Players:
    """A host of its own with a simulated server; which one it is, is decided when the test is played."""
    return players
