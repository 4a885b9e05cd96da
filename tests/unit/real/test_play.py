"""Scenarios share a server, a failed state costs only itself, and every server is ended."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.real import check, lab, witness
from tests.real.play import Player
from tests.real.scenarios import Group, Scenario
from tests.real.truth import Right

IDLE = Right(("idle/answered",), probes=(1, 1))
SAID = {
    "verdict": "idle",
    "reason": "answered",
    "probes": 1,
    "elapsed": 0.4,
    "message": "answered",
    "restarted_meanwhile": False,
}


@dataclass
class FakeServer:
    """Remembers that it was started and ended."""

    url: str = "http://127.0.0.1:1"
    life: list[str] = field(default_factory=list)

    def start(self):
        self.life.append("started")

    def wait_ready(self):
        return 0.0

    def stop(self):
        self.life.append("ended")

    def answered(self, path):
        return 0


@dataclass(frozen=True)
class FakePlayer(Player):
    """Makes servers that are none."""

    made: list[FakeServer] = field(default_factory=list)

    def _server(self, group, role):
        self.made.append(FakeServer())
        return self.made[-1]


@contextlib.contextmanager
def impossible(stage):
    raise lab.LabError("there is no engine 7")
    yield


def interrupt(url, manner):
    raise KeyboardInterrupt


@pytest.fixture
def player(tmp_path, monkeypatch):
    monkeypatch.setattr(witness, "read", lambda url: "vllm:num_requests_running 0.0\n")
    monkeypatch.setattr(check, "ask", lambda url, manner: SAID)
    return FakePlayer(Path("vllm"), Path("model"), patience=20, evidence=tmp_path)


def play(player, *scenarios):
    told = []
    player.group(Group("group", lab.Spec(), scenarios), list(scenarios), told.append)
    return [one.row for one in told]


def scenario(name, **changes):
    return Scenario(name, "a state", "idle", IDLE, **changes)


def test_the_scenarios_of_a_group_share_one_server(player):
    rows = play(player, scenario("one"), scenario("two"))
    assert [(row.name, row.right) for row in rows] == [("one", True), ("two", True)]
    assert [server.life for server in player.made] == [["started", "ended"]]


def test_a_state_that_cannot_be_reached_costs_only_itself(player):
    rows = play(player, scenario("one"), scenario("two", enter=impossible), scenario("three"))
    assert [row.right for row in rows] == [True, False, True]
    assert rows[1].wrong == ("there is no engine 7",)
    assert [server.life for server in player.made] == [["started", "ended"]] * 2


def test_an_interrupted_run_ends_its_server(player, monkeypatch):
    monkeypatch.setattr(check, "ask", interrupt)
    with pytest.raises(KeyboardInterrupt):
        play(player, scenario("one"))
    assert [server.life for server in player.made] == [["started", "ended"]]


def test_what_was_said_and_read_is_kept(player, tmp_path):
    play(player, scenario("one"))
    assert {path.name for path in (tmp_path / "one").iterdir()} == {"said.json", "first.prom", "last.prom"}
