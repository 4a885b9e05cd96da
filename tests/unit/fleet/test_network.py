"""Two hosts never get the same address, whoever else uses the range."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from tests.fleet import network
from tests.fleet.commands import Done


@pytest.fixture(autouse=True)
def routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that already has a way to one network of the range."""
    shown = [{"dst": "default"}, {"dst": "10.77.0.4/30"}, {"dst": "127.0.0.0/8"}, {"dst": "10.77.0.5"}]
    monkeypatch.setattr(network, "run", lambda _: Done([], 0, json.dumps(shown), ""))


def test_addresses_in_use_on_this_machine_are_left_out() -> None:
    assert list(islice(network.free_pairs([]), 2)) == [("10.77.0.1", "10.77.0.2"), ("10.77.0.9", "10.77.0.10")]


def test_addresses_of_other_runs_are_left_out() -> None:
    assert next(network.free_pairs(["10.77.0.2", "10.77.0.10"])) == ("10.77.0.13", "10.77.0.14")
