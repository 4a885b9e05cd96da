# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a fleet with what was done about it."""

from __future__ import annotations

import typing as t

from ..module_utils.verdicts import counts, rank
from ..plugin_utils.answers import is_server
from ..plugin_utils.plain import never_templated

DOCUMENTATION = r"""
name: heal_report
short_description: The report of a fleet with what was done about it
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Adds to each server of a report what was done, or why nothing was, and the verdict after it.
options:
  _input:
    description: What P(fleetcheck.vllm.fleet_report#filter) returned.
    type: dict
    required: true
  plan:
    description: What P(fleetcheck.vllm.restart_plan#filter) returned.
    type: dict
    required: true
  hostvars:
    description: The variables of all hosts, as in the variable C(hostvars). The role left C(vllm_restart_results) in them.
    type: dict
    required: true
"""

EXAMPLES = r"""
fleet: "{{ fleet | fleetcheck.vllm.heal_report(plan, hostvars) }}"
"""

RETURN = r"""
_value:
  description:
    - The report. Each server also has C(verdict_before), C(action), C(action_message), C(seconds_down), C(evidence) and C(pool);
      its C(verdict) and C(message) are those after the restart.
    - C(action) is V(restarted), V(would_restart), V(restart_failed), V(none), or the word for what held it back.
    - C(restarts) counts the servers that were restarted, failed to come back, and were held back.
  type: dict
  sample:
    restarts: {"restarted": 1, "failed": 0, "held": 0}
"""

Row = t.Dict[str, t.Any]
Result = t.Mapping[str, t.Any]

_NOTHING_TO_DO = ("not_stuck", "not_judged")


def heal_report(
    fleet: t.Mapping[str, t.Any], plan: t.Mapping[str, t.Any], hostvars: t.Mapping[str, t.Mapping[str, t.Any]]
) -> t.Dict[str, t.Any]:
    """The report with what was done; the order is worst first by the verdict after it."""
    held = {_key(row): row for row in plan["held"]}
    planned = {_key(row): row for row in plan["restart"]}
    results = {
        (host, result["place"]): {**result, "seen": result["seen"] if is_server(result["seen"]) else {}}
        for host in plan["hosts"]
        for result in hostvars[host].get("vllm_restart_results", [])
    }
    rows = [_row(row, held.get(_key(row)), planned.get(_key(row)), results.get(_key(row))) for row in fleet["servers"]]
    rows.sort(key=lambda row: rank(row["verdict"]))
    return never_templated(
        {
            **fleet,
            "healthy": all(row["healthy"] is not False and row["verdict"] != "unknown" for row in rows),
            "counts": counts(row["verdict"] for row in rows),
            "restarts": _restarts(rows),
            "servers": rows,
        }
    )


def _key(row: t.Mapping[str, t.Any]) -> t.Tuple[str, int]:
    return row["host"], row.get("place", 0)


def _row(row: Row, held: t.Optional[Result], planned: t.Optional[Result], result: t.Optional[Result]) -> Row:
    done = {"verdict_before": row["verdict"], "seconds_down": None, "evidence": None}
    if held is not None:
        word = "none" if held["reason"] in _NOTHING_TO_DO else held["reason"]
        return {**row, **done, "pool": held["pool"], "action": word, "action_message": held["message"]}
    done["pool"] = planned["pool"] if planned else ""
    if result is None:
        return {**row, **done, "action": "not_confirmed", "action_message": "it could not be checked again on its host"}
    return {**row, **done, **_done(result, row["verdict"]), **_after(result)}


def _done(result: Result, verdict: str) -> Row:
    restart = result["restart"]
    said = {
        # ansible-core before 2.19 makes an empty string of a null.
        "seconds_down": round(float(result["seconds_down"]), 1) if result["seconds_down"] else None,
        "evidence": restart.get("evidence"),
        "action_message": restart.get("message", ""),
    }
    if result["failed"]:
        return {**said, "action": "restart_failed", "action_message": _failure(result)}
    if restart.get("skipped") and result["judged"] != verdict:
        said["action_message"] = "beside the engine it is %s" % result["judged"]
        return {**said, "action": "not_confirmed"}
    if restart.get("skipped"):
        said["action_message"] = "another server did not come back, so nothing else was touched"
        return {**said, "action": "run_stopped"}
    if restart.get("skipped_because"):
        return {**said, "action": restart["skipped_because"]}
    return {**said, "action": "would_restart" if result["dry_run"] else "restarted"}


def _failure(result: Result) -> str:
    restart, seen = result["restart"], result["seen"]
    if restart.get("unreachable"):
        return "the connection to the host was lost: look whether it was restarted"
    if "verdict" in seen:
        return "%s, but does not serve: it is %s, %s" % (restart.get("message", "restarted"), seen["verdict"], seen["message"])
    why = result["error"] or "the connection to the host was lost while it was awaited"
    return "%s, but: %s" % (restart["message"], why) if restart.get("message") else str(why)


def _after(result: Result) -> Row:
    """What the last look at a restarted server says, in place of what was said before."""
    seen, restart = result["seen"], result["restart"]
    if result["failed"] and "verdict" not in seen and (restart.get("changed") or restart.get("unreachable")):
        message = "it was not seen again after the restart"
        return {"verdict": "unknown", "reason": "unreachable", "healthy": None, "message": message, "engines": []}
    return {key: value for key, value in seen.items() if key not in ("name", "url", "unit", "kind", "last_sample")}


def _restarts(rows: t.Sequence[Row]) -> t.Dict[str, int]:
    actions = [row["action"] for row in rows]
    acted = {"restarted": "restarted", "would_restart": "would_restart", "restart_failed": "failed"}
    found = {word: actions.count(action) for action, word in acted.items()}
    found["held"] = sum(action not in acted and action != "none" for action in actions)
    return found


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"heal_report": heal_report}
