# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The audits of many hosts as one report."""

from __future__ import annotations

import typing as t

from ..plugin_utils.plain import never_templated

DOCUMENTATION = r"""
name: audit_report
short_description: The audits of many hosts as one report
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Reads what the module M(fleetcheck.vllm.vllm_watchdogs_info) returned, kept in C(vllm_audit_result) of each host.
  - A host that could not be reached, whose audit failed, or that has no vLLM unit, is a row like a unit.
options:
  _input:
    description: The variables of all hosts, as in the variable C(hostvars).
    type: dict
    required: true
  hosts:
    description: The names of the hosts.
    type: list
    elements: str
    required: true
  audited_at:
    description: When, in UTC, as C(2026-11-29T22:00:00Z).
    type: str
    required: true
"""

EXAMPLES = r"""
audit: "{{ hostvars | fleetcheck.vllm.audit_report(ansible_play_hosts_all, now(utc=true, fmt='%Y-%m-%dT%H:%M:%SZ')) }}"
"""

RETURN = r"""
_value:
  description:
    - The report. C(units) has a dictionary for each unit with its C(host) and what the module returned, worst first,
      that is with restarts that interrupt each other, then with others that can restart it, then not audited.
  type: dict
  sample:
    schema: 1
    audited_at: "2026-11-29T22:00:00Z"
    hosts:
      audited: 2
      unreachable: 1
      failed: 0
    units: []
"""

Row = t.Dict[str, t.Any]


def audit_report(hostvars: t.Mapping[str, t.Mapping[str, t.Any]], hosts: t.Iterable[str], audited_at: str) -> t.Dict[str, t.Any]:
    """One report over `hosts`; its strings are never taken for templates."""
    results = {host: hostvars[host].get("vllm_audit_result") or {} for host in hosts}
    states = [_state(result) for result in results.values()]
    rows = [row for host, result in results.items() for row in _rows(host, result)]
    report: t.Dict[str, t.Any] = never_templated(
        {
            "schema": 1,
            "audited_at": audited_at,
            "hosts": {state: states.count(state) for state in ("audited", "unreachable", "failed")},
            "units": sorted(rows, key=_how_bad),
        }
    )
    return report


def _state(result: t.Mapping[str, t.Any]) -> str:
    if result.get("unreachable"):
        return "unreachable"
    return "audited" if isinstance(result.get("units"), (list, tuple)) else "failed"


def _rows(host: str, result: t.Mapping[str, t.Any]) -> t.List[Row]:
    state = _state(result)
    if state != "audited":
        message = str(result.get("msg") or "the audit of this host left no result")
        return [_empty(host, state, message.replace("Task failed: ", "", 1))]
    notes = list(result.get("notes") or [])
    rows = [{"host": host, "state": state, "host_notes": notes, **unit} for unit in result["units"]]
    return rows or [{**_empty(host, state, str(result.get("summary") or "no unit")), "host_notes": notes}]


def _empty(host: str, state: str, message: str) -> Row:
    return {
        "host": host,
        "state": state,
        "unit": "-",
        "summary": message,
        "count": None,
        "restart_count": None,
        "close_count": None,
        "parties": [],
        "notes": [],
        "host_notes": [],
    }


def _how_bad(row: Row) -> t.Tuple[t.Any, ...]:
    dark = row.get("incomplete") or row["count"] is None
    return (
        -int(row.get("close_count") or 0),
        -int(row.get("count") or 0),
        -int(row.get("restart_count") or 0),
        row["state"] == "audited",
        not dark,
        row["host"],
        row["unit"],
    )


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"audit_report": audit_report}
