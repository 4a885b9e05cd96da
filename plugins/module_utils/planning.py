# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of one run: which servers of a fleet are restarted now, and why the others are not. Pure.

A pool is a set of servers that stand in for one another. Restarts by us never take two of a pool down at a time.
"""

from __future__ import annotations

import dataclasses
import typing as t

from . import verdicts

Row = t.Mapping[str, t.Any]

_NOT_JUDGED = ("unreachable", "check_failed")

# What systemctl does not take for a part of the name of a service.
_SUFFIXES = (
    ".service", ".socket", ".target", ".scope", ".slice", ".timer", ".path", ".mount", ".automount", ".swap", ".device"
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Guards:
    """What holds restarts back.

    verdicts: what is restarted at all. max_per_run: so many restarts in one run. at_once: so many hosts are acted on at
    the same time. common_cause_share, common_cause_least: more than this share of the judged servers, and at least so
    many, sick at once means one cause for all: none is restarted. min_judged_share: at least this share of the
    hosts must have been judged.
    """

    verdicts: t.Tuple[str, ...] = ("stuck",)
    max_per_run: int = 3
    at_once: int = 1
    common_cause_share: float = 0.5
    common_cause_least: int = 3
    min_judged_share: float = 0.5


@dataclasses.dataclass(frozen=True)
class Held:
    """A server that is not restarted: reason is one word, message a sentence."""

    row: Row
    pool: str
    reason: str
    message: str


@dataclasses.dataclass(frozen=True)
class Plan:
    """restart: the servers to restart, in this order, with their pools. held: all others."""

    restart: t.Tuple[t.Tuple[Row, str], ...]
    held: t.Tuple[Held, ...]


def make_plan(rows: t.Sequence[Row], pools: t.Mapping[str, str], guards: Guards) -> Plan:
    """Decide over all rows of a fleet's report, worst first. pools: the pool of a host, where the inventory says it."""
    placed = [(row, pool_of(row, pools)) for row in rows]
    for_all = _held_for_all(rows, guards)
    restart: t.List[t.Tuple[Row, str]] = []
    held: t.List[Held] = []
    for row, pool in placed:
        why = _not_a_candidate(row, guards) or for_all or _held_alone(row, pool, placed, restart, guards)
        if why is None:
            restart.append((row, pool))
        else:
            held.append(Held(row, pool, *why))
    return Plan(tuple(restart), tuple(held))


def pool_of(row: Row, pools: t.Mapping[str, str]) -> str:
    """The pool that the inventory names for the host, else the first model that the server lists."""
    models = row.get("models") or [""]
    return pools.get(row["host"]) or models[0]


Why = t.Optional[t.Tuple[str, str]]


def _not_a_candidate(row: Row, guards: Guards) -> Why:
    if row["reason"] in _NOT_JUDGED:
        return "not_judged", "it could not be judged"
    if row.get("kind") == "proxy":
        return "not_stuck", "a proxy is never restarted"
    if row["verdict"] not in guards.verdicts:
        return "not_stuck", "it is %s" % row["verdict"]
    if not row.get("unit"):
        return "no_unit", "its systemd unit is not known; name it in vllm_servers"
    error = (row.get("systemd") or {}).get("error")
    return ("unit_unreadable", "its unit cannot be read: %s" % error) if error else None


def _held_for_all(rows: t.Sequence[Row], guards: Guards) -> Why:
    hosts = {row["host"] for row in rows}
    judged_hosts = {row["host"] for row in rows if row["reason"] not in _NOT_JUDGED}
    if len(judged_hosts) < guards.min_judged_share * len(hosts):
        return "too_few_judged", "only %d of %d hosts could be judged" % (len(judged_hosts), len(hosts))
    judged = [row for row in rows if row["verdict"] != "unknown" and row.get("kind") != "proxy"]
    sick = [row for row in judged if row["verdict"] in guards.verdicts]
    if len(sick) >= guards.common_cause_least and len(sick) > guards.common_cause_share * len(judged):
        return "common_cause", "%d of %d servers are %s at once: look for one cause" % (
            len(sick),
            len(judged),
            " or ".join(guards.verdicts),
        )
    return None


def _held_alone(
    row: Row,
    pool: str,
    placed: t.Sequence[t.Tuple[Row, str]],
    restart: t.Sequence[t.Tuple[Row, str]],
    guards: Guards,
) -> Why:
    return (
        _unit_is_shared(row, placed, restart, guards)
        or _pool_is_busy(row, pool, placed, restart, guards)
        or _pool_would_be_empty(row, pool, placed)
        or _over_limit(restart, guards)
    )


def _same_unit(one: Row, other: Row) -> bool:
    if one["host"] != other["host"] or not other.get("unit"):
        return False
    # Two names may mean one unit; an invocation never means two.
    return _unit(one) == _unit(other) or _invocation(one) == _invocation(other) != ""


def _unit(row: Row) -> t.Tuple[str, str]:
    name = row["unit"]
    # Read from the controller there is no InvocationID that would tell that systemctl takes both for one.
    return name if name.endswith(_SUFFIXES) else name + ".service", row.get("scope", "system")


def _invocation(row: Row) -> str:
    return (row.get("systemd") or {}).get("invocation_id") or ""


def _unit_is_shared(
    row: Row, placed: t.Sequence[t.Tuple[Row, str]], restart: t.Sequence[t.Tuple[Row, str]], guards: Guards
) -> Why:
    if any(_same_unit(row, chosen) for chosen, _pool in restart):
        return "same_unit", "its unit is restarted already, for another server"
    others = [other for other, _pool in placed if other is not row and _same_unit(row, other)]
    spared = [other["verdict"] for other in others if other["verdict"] not in guards.verdicts]
    if spared:
        return "unit_serves_others", "its unit runs another server, too, which is %s" % spared[0]
    return None


def _may_be_one_pool(one: str, other: str) -> bool:
    """A server that does not answer does not say what it serves: without a word from the inventory it may be anything."""
    return one == other or not one or not other


def _pool_is_busy(
    row: Row,
    pool: str,
    placed: t.Sequence[t.Tuple[Row, str]],
    restart: t.Sequence[t.Tuple[Row, str]],
    guards: Guards,
) -> Why:
    starting = [its_pool for other, its_pool in placed if _is_starting(other)]
    if pool in starting:
        return "pool_busy", "another server of its pool has been started and does not serve yet"
    if any(_may_be_one_pool(pool, its_pool) for its_pool in starting):
        return "pool_busy", "a server that may be of its pool is starting; vllm_pool in the inventory would tell"
    if guards.at_once > 1 and any(_may_be_one_pool(pool, its_pool) for _chosen, its_pool in restart):
        return "pool_busy", "another server of its pool is restarted in this run"
    return None


def _is_starting(row: Row) -> bool:
    return row["verdict"] == "starting" or row["reason"] == "too_young"


def _pool_would_be_empty(row: Row, pool: str, placed: t.Sequence[t.Tuple[Row, str]]) -> Why:
    if row["verdict"] in ("stuck", "dead"):
        return None
    others = [other for other, its_pool in placed if its_pool == pool and other is not row]
    if any(verdicts.healthy(other["verdict"]) for other in others if other.get("kind") != "proxy"):
        return None
    return "pool_would_be_empty", "no other server of its pool is healthy, and it may yet be working"


def _over_limit(restart: t.Sequence[t.Tuple[Row, str]], guards: Guards) -> Why:
    if len(restart) < guards.max_per_run:
        return None
    return "over_run_limit", "%d restarts are the limit of one run" % guards.max_per_run
