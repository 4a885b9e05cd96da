"""The laws of restarts, over fleets that live through several runs.

Never two of a pool down by us, never a restart without a verdict that the operator named, never a unit that runs a
healthy server, never more than the budget of a unit or the limit of a run, and none at all where one cause is likely or
too little is known. Then planner and budget are broken on purpose, once for each clause, to see that the laws find it.
"""

from __future__ import annotations

import dataclasses
import typing as t
from random import Random

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import planning
from ansible_collections.fleetcheck.vllm.plugins.module_utils.planning import Guards
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart.budget import Budget
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.plugins.module_utils.simulated_fleet import DAY, Event, Fleet, Round, Server

# Most servers are well; what hangs is what this is about.
STATES = ("busy", "busy", "idle", "idle", "stuck", "stuck", "dead", "unresponsive", "starting", "stalled", "unknown")
EVENTS = ("stuck", "stuck", "stuck", "dead", "unresponsive", "busy", "idle", "idle", "restarted", "unreachable", "starting")
OUTCOMES = ("serves", "serves", "serves", "starting", "stalled", "killed")
MINUTES = (1.0, 5.0, 20.0, 29.0, 31.0, 90.0, 400.0, 1500.0)
VERDICTS = (("stuck",), ("stuck",), ("stuck", "dead"), ("stuck", "dead", "unresponsive"))

seeds = given(st.integers(0, 2**64))


def guards(chance: Random) -> Guards:
    return Guards(
        verdicts=chance.choice(VERDICTS),
        max_per_run=chance.randint(0, 4),
        at_once=chance.choice((1, 1, 2, 3)),
        common_cause_share=chance.choice((0.5, 0.5, 1.0)),
        common_cause_least=chance.randint(2, 4),
        min_judged_share=chance.choice((0.5, 0.0)),
    )


def budget(chance: Random) -> Budget:
    return Budget(chance.choice((1800.0, 0.0)), chance.choice((1, 2, 2, 9)), chance.choice((DAY, 3600.0)))


def servers(chance: Random) -> t.List[Server]:
    """On most hosts one server, on some two in one unit, in two units, or one behind a proxy."""
    found: t.List[Server] = []
    for number in range(chance.randint(2, 9)):
        starts = [100 * DAY - 60 * chance.choice(MINUTES)]
        one = Server("h%d" % number, "vllm.service", chance.choice("ppq"), "backend", chance.choice(STATES), starts)
        found.append(one)
        what = chance.choice(("nothing", "nothing", "nothing", "one unit", "two units", "a proxy"))
        if what == "one unit":
            found.append(dataclasses.replace(one, state=chance.choice((one.state, "idle"))))
        elif what == "two units":
            found.append(dataclasses.replace(one, unit="other.service", starts=list(starts)))
        elif what == "a proxy":
            found.append(dataclasses.replace(one, unit="proxy.service", kind="proxy", state="dead", starts=list(starts)))
    return found


def rounds(chance: Random) -> t.List[Round]:
    def events() -> t.List[Event]:
        return [(chance.randint(0, 12), chance.choice(EVENTS)) for _ in range(chance.randint(0, 3))]

    def outcomes() -> t.List[str]:
        return [chance.choice(OUTCOMES) for _ in range(3)]

    return [Round(chance.choice(MINUTES), events(), events(), outcomes()) for _ in range(chance.randint(2, 5))]


def live(seed: int) -> Fleet:
    """A fleet, what is allowed to be done to it, and all its rounds, out of one number."""
    chance = Random(seed)
    fleet = Fleet(servers(chance), chance.random() < 0.5, guards(chance), budget(chance))
    fleet.live(rounds(chance))
    return fleet


@settings(max_examples=300, deadline=None)
@seeds
def test_no_fleet_sees_a_restart_that_it_should_not(seed: int) -> None:
    live(seed)


def test_these_fleets_do_see_restarts() -> None:
    """Laws that forbid are kept by doing nothing, too."""
    restarts = [live(seed).restarts for seed in range(300)]
    assert sum(number > 0 for number in restarts) > 80
    assert max(restarts) > 3


def nothing(*_: t.Any) -> None:
    return None


def only_a_unit_counts(row: planning.Row, _guards: Guards) -> planning.Why:
    return None if row.get("unit") else ("no_unit", "")


def proxies_too(row: planning.Row, guards: Guards) -> planning.Why:
    return None if row["verdict"] in guards.verdicts else ("not_stuck", "")


def last_start_only(self: Budget, starts: t.Sequence[float], now: float) -> t.Any:
    return ("too_soon", "") if now - max(starts) < self.min_interval else None


def count_only(self: Budget, starts: t.Sequence[float], now: float) -> t.Any:
    recent = [start for start in starts if start > now - self.window]
    return ("quarantined", "") if len(recent) >= self.starts else None


def one_too_many(self: Budget, starts: t.Sequence[float], now: float) -> t.Any:
    recent = [start for start in starts if start > now - self.window]
    return ("quarantined", "") if len(recent) > self.starts else last_start_only(self, starts, now)


def off_by_one(restart: t.Sequence[t.Any], guards: Guards) -> planning.Why:
    return None if len(restart) <= guards.max_per_run else ("over_run_limit", "")


MUTATIONS: t.Dict[str, t.Tuple[t.Any, str, t.Any]] = {
    "any verdict": (planning, "_not_a_candidate", only_a_unit_counts),
    "proxies": (planning, "_not_a_candidate", proxies_too),
    "no common cause, nor too few judged": (planning, "_held_for_all", nothing),
    "shared units": (planning, "_unit_is_shared", nothing),
    "two of a pool": (planning, "_pool_is_busy", nothing),
    "unknown pools are pools of their own": (planning, "_may_be_one_pool", lambda one, other: one == other),
    "blind to a start that failed": (planning, "_is_starting", lambda row: row["verdict"] == "starting"),
    "the last one of a pool": (planning, "_pool_would_be_empty", nothing),
    "no limit of a run": (planning, "_over_limit", nothing),
    "one more than the limit": (planning, "_over_limit", off_by_one),
    "no budget": (Budget, "objection", nothing),
    "no count of starts": (Budget, "objection", last_start_only),
    "no time between starts": (Budget, "objection", count_only),
    "one start too many": (Budget, "objection", one_too_many),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_laws_find_a_planner_that_breaks_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTATIONS[name])

    with pytest.raises(AssertionError):
        for seed in range(5000):
            live(seed)
