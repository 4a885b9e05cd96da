# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which servers of a fleet are restarted in this run, and why the others are not."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils.planning import Guards, Held, Plan, make_plan
from ..module_utils.verdicts import RESTARTABLE
from ..plugin_utils.plain import never_templated, plain

DOCUMENTATION = r"""
name: restart_plan
short_description: Decide which servers of a fleet are restarted in one run
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Decides over all servers of a report which ones are restarted now and in what order, and why the others are not.
  - A pool is a set of servers that stand in for one another. Two of one pool are never restarted at a time.
options:
  _input:
    description: What P(fleetcheck.vllm.fleet_report#filter) returned.
    type: dict
    required: true
  hostvars:
    description:
      - The variables of all hosts, as in the variable C(hostvars).
      - The variable C(vllm_pool) of a host names its pool. The first model that a server lists is its pool otherwise.
    type: dict
    required: true
  verdicts:
    description: What is restarted, some of V(stuck), V(dead) and V(unresponsive).
    type: list
    elements: str
    default: [stuck]
  max_per_run:
    description: The most restarts in one run.
    type: int
    default: 3
  at_once:
    description: How many hosts are acted on at the same time.
    type: int
    default: 1
  common_cause_share:
    description: If more than this share of the judged servers are to be restarted at once, none is.
    type: float
    default: 0.5
  common_cause_least:
    description: The least number of servers for O(common_cause_share) to count.
    type: int
    default: 3
  min_judged_share:
    description: If less than this share of the hosts could be judged, no server is restarted.
    type: float
    default: 0.5
"""

EXAMPLES = r"""
plan: "{{ fleet | fleetcheck.vllm.restart_plan(hostvars, verdicts=['stuck'], max_per_run=3) }}"
"""

RETURN = r"""
_value:
  description:
    - C(restart) lists the servers to restart in order, C(held) all others with C(reason) and C(message).
    - Each has C(host), C(place) in the host's list of servers, C(name) and C(pool).
    - C(hosts) lists the hosts of C(restart), each once. C(lines) says the plan to a person.
  type: dict
  sample:
    restart: [{"host": "gpu-07", "place": 0, "name": "vllm.service", "pool": "chat"}]
    held: [{"host": "gpu-08", "place": 0, "name": "vllm.service", "pool": "chat", "reason": "not_stuck", "message": "it is busy"}]
    hosts: ["gpu-07"]
    lines: ["to be restarted: 1 of 2 servers", "gpu-07 vllm.service (pool chat)"]
"""


def restart_plan(
    fleet: t.Mapping[str, t.Any], hostvars: t.Mapping[str, t.Mapping[str, t.Any]], **guards: t.Any
) -> t.Dict[str, t.Any]:
    """The plan for a fleet. Raises AnsibleFilterError for a guard that cannot be right."""
    plan = make_plan(fleet["servers"], _pools(fleet, hostvars), _guards(guards))
    restart = [_named(row, pool) for row, pool in plan.restart]
    hosts = list(dict.fromkeys(row["host"] for row in restart))
    held = _held(plan)
    return never_templated({"restart": restart, "held": held, "hosts": hosts, "lines": _lines(restart, held)})


def _pools(fleet: t.Mapping[str, t.Any], hostvars: t.Mapping[str, t.Mapping[str, t.Any]]) -> t.Dict[str, str]:
    hosts = {row["host"] for row in fleet["servers"]}
    return {host: str(hostvars[host]["vllm_pool"]) for host in hosts if "vllm_pool" in hostvars[host]}


def _lines(restart: t.List[t.Dict[str, t.Any]], held: t.List[t.Dict[str, t.Any]]) -> t.List[str]:
    """What a person should know before anything happens: what goes, and what is kept from going."""
    lines = ["to be restarted: %d of %d servers" % (len(restart), len(restart) + len(held))]
    lines += ["  %s (pool %s)" % (_called(row), plain(row["pool"] or "-", 40)) for row in restart]
    kept = [row for row in held if row["reason"] not in ("not_stuck", "not_judged")]
    lines += ["held back: %s: %s (%s)" % (_called(row), plain(row["message"], 160), row["reason"]) for row in kept]
    return lines


def _called(row: t.Mapping[str, t.Any]) -> str:
    return "%s %s" % (plain(row["host"], 60), plain(row["name"], 60))


def _held(plan: Plan) -> t.List[t.Dict[str, t.Any]]:
    def row(held: Held) -> t.Dict[str, t.Any]:
        return {**_named(held.row, held.pool), "reason": held.reason, "message": held.message}

    return [row(held) for held in plan.held]


def _named(row: t.Mapping[str, t.Any], pool: str) -> t.Dict[str, t.Any]:
    return {"host": row["host"], "place": row.get("place", 0), "name": row["name"], "pool": pool}


def _guards(given: t.Mapping[str, t.Any]) -> Guards:
    default = Guards()
    return Guards(
        verdicts=_verdicts(given.get("verdicts", default.verdicts)),
        max_per_run=_number("max_per_run", given, int, 0, 10_000),
        at_once=_number("at_once", given, int, 1, 10_000),
        common_cause_share=_number("common_cause_share", given, float, 0.0, 1.0),
        common_cause_least=_number("common_cause_least", given, int, 1, 10_000),
        min_judged_share=_number("min_judged_share", given, float, 0.0, 1.0),
    )


def _number(name: str, given: t.Mapping[str, t.Any], kind: t.Callable[[t.Any], t.Any], least: t.Any, most: t.Any) -> t.Any:
    value = given.get(name, getattr(Guards(), name))
    number = _as_number(value, kind)
    if number is None or not least <= number <= most:
        raise AnsibleFilterError("vllm_restart_%s is %r: it must be a number from %s to %s" % (name, value, least, most))
    return number


def _as_number(value: t.Any, kind: t.Callable[[t.Any], t.Any]) -> t.Any:
    """The value as a number of this kind, None where it is none: a yes is not 1, and half a server is not a server."""
    try:
        number = None if isinstance(value, bool) else kind(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if isinstance(value, float) and number != value else number


def _verdicts(given: t.Union[str, t.Sequence[str]]) -> t.Tuple[str, ...]:
    words = given.split(",") if isinstance(given, str) else given if isinstance(given, (list, tuple)) else []
    chosen = tuple(str(word).strip() for word in words if str(word).strip())
    wrong = [word for word in chosen if word not in RESTARTABLE]
    if wrong or not chosen:
        raise AnsibleFilterError(
            "vllm_restart_verdicts is %r: it must name one or more of %s" % (given, ", ".join(RESTARTABLE))
        )
    return chosen


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"restart_plan": restart_plan}
