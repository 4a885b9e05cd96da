"""Small fleets of real hosts for this folder's tests, which are played side by side."""

from __future__ import annotations

import typing as t
from contextlib import ExitStack

import pytest

from tests.fleet.fleet import fleet
from tests.integration.ansible.running import CORES, Ansible, environment_of
from tests.integration.heal.stage import NAMES, Stage
from tests.integration.restart.side_by_side import Players

FLEETS = 6


@pytest.fixture(scope="session")
def players(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Players]:
    """Fleets of two hosts each, and a thread for each fleet."""
    core = CORES[-1]
    for needed in (CORES[0], core):
        if not (environment_of(needed) / "bin" / "ansible-playbook").exists():
            pytest.skip(f"ansible-core {needed} is not installed in .venvs (make envs)")
    folder = tmp_path_factory.mktemp("fleet")
    ansible = Ansible(core, tmp_path_factory.mktemp("elsewhere"), tmp_path_factory.mktemp("home"))
    names = [f"h{number}" for number in range(1, FLEETS * len(NAMES) + 1)]
    with ExitStack() as up:
        hosts = up.enter_context(fleet(folder, names))
        stages = []
        for number in range(FLEETS):
            both = names[number * len(NAMES) :][: len(NAMES)]
            variables = {name: folder / "inventory" / "host_vars" / f"{host}.yml" for name, host in zip(NAMES, both, strict=True)}
            stages.append(Stage([hosts[host] for host in both], variables, tmp_path_factory.mktemp("stage"), ansible))
        yield up.enter_context(Players(stages, FLEETS, up.close))


@pytest.fixture
def stage(players: Players) -> Players:
    """A fleet of its own; which one it is, is decided when the test is played."""
    return players
