# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of many hosts as one report of a fleet."""

from __future__ import annotations

import math
import re
import typing as t

from ..module_utils.verdicts import counts, rank
from ..plugin_utils.answers import is_server
from ..plugin_utils.plain import never_templated

DOCUMENTATION = r"""
name: fleet_report
short_description: The results of the check of many hosts as one report
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Reads what the role P(fleetcheck.vllm.vllm_check#role) left in C(vllm_check_result) of each host.
  - A host that could not be reached, or whose check failed, is a row like a server, with the verdict V(unknown)
    and the reason V(unreachable) or V(check_failed).
options:
  _input:
    description: The variables of all hosts, as in the variable C(hostvars).
    type: dict
    required: true
  hosts:
    description: The names of the hosts that were checked.
    type: list
    elements: str
    required: true
  checked_at:
    description: When, in UTC, as C(2026-11-29T22:00:00Z).
    type: str
    required: true
  results_by_host:
    description: The results by host, where they are not in the variables of the hosts.
    type: dict
"""

EXAMPLES = r"""
fleet: "{{ hostvars | fleetcheck.vllm.fleet_report(ansible_play_hosts_all, now(utc=true, fmt='%Y-%m-%dT%H:%M:%SZ')) }}"
"""

RETURN = r"""
_value:
  description:
    - The report. C(healthy) is true where every host was checked, every server judged, and none found sick.
    - C(pauses) has the hosts from which somebody keeps automatic restarts away.
    - C(servers) has a dictionary for each server with its C(host), its C(place) in the host's list, and what
      M(fleetcheck.vllm.vllm_health_info) returned, without C(last_sample); worst first.
  type: dict
  sample:
    schema: 1
    checked_at: "2026-11-29T22:00:00Z"
    healthy: false
    counts:
      stuck: 1
      busy: 3
    hosts:
      checked: 2
      unreachable: 0
      failed: 0
    servers: []
"""

_HIDDEN = ("********", "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER")  # what Ansible puts in place of a secret, wherever it stands
_UNDEFINED = re.compile(r"'[^']+' is undefined")

Row = t.Dict[str, t.Any]
Result = t.Optional[t.Mapping[str, t.Any]]


def fleet_report(
    hostvars: t.Mapping[str, t.Mapping[str, t.Any]],
    hosts: t.Iterable[str],
    checked_at: str,
    results_by_host: t.Optional[t.Mapping[str, t.Mapping[str, t.Any]]] = None,
) -> t.Dict[str, t.Any]:
    """One report over C(hosts); its strings are never taken for templates."""
    results: t.Dict[str, Result]
    if results_by_host is None:
        results = {host: hostvars[host].get("vllm_check_result") for host in hosts}
    else:
        results = {host: results_by_host.get(host) for host in hosts}
    states = [_state(result) for result in results.values()]
    rows = (_named(row, hostvars) for host, result in results.items() for row in _rows(host, result))
    # Within a verdict the order is that of the inventory.
    servers = sorted(rows, key=lambda row: rank(row["verdict"]))
    return never_templated(
        {
            "schema": 1,
            "checked_at": checked_at,
            "healthy": all(row["healthy"] is not False and row["verdict"] != "unknown" for row in servers),
            "counts": counts(row["verdict"] for row in servers),
            "hosts": {
                "checked": states.count("checked"),
                "unreachable": states.count("unreachable"),
                "failed": states.count("check_failed"),
            },
            "pauses": [
                {"host": host, "message": result["restarts_paused"]}
                for host, result in results.items()
                if result is not None and result.get("restarts_paused")
            ],
            "servers": servers,
        }
    )


def _state(result: Result) -> str:
    if result is not None and result.get("unreachable"):
        return "unreachable"
    return "checked" if result is not None and _understood(result) else "check_failed"


def _understood(result: t.Mapping[str, t.Any]) -> bool:
    """Whether this is what the module returns: one host that answers nonsense must not spoil the report of all."""
    servers = result.get("servers")
    return isinstance(servers, (list, tuple)) and all(map(is_server, servers))


def _named(row: Row, hostvars: t.Mapping[str, t.Mapping[str, t.Any]]) -> Row:
    """The row with the names of the inventory where Ansible hid them, as a key that is an ordinary word stands in them."""
    hidden = [key for key in ("name", "unit", "url") if any(word in str(row.get(key)) for word in _HIDDEN)]
    if not hidden:
        return row
    try:
        server = hostvars[row["host"]]["vllm_servers"][row["place"]]
        known = {"unit": server.get("unit"), "url": server.get("url")}
    # Whatever a variable that cannot be rendered raises: the row stays as it is.
    except Exception:  # pylint: disable=broad-exception-caught
        return row
    known["name"] = server.get("name") or known["unit"] or known["url"]
    return {**row, **{key: known[key] for key in hidden if known[key]}}


def _rows(host: str, result: Result) -> t.List[Row]:
    if result is None or _state(result) != "checked":
        return [_not_checked(host, result)]
    return [
        # The place in the host's list is what names a server for good: two may have one name.
        {"host": host, "place": place, **{key: _finite(value) for key, value in server.items() if key != "last_sample"}}
        for place, server in enumerate(result["servers"])
    ]


def _finite(value: t.Any) -> t.Any:
    """C(value) with None for what is not a number, which JSON has no word for."""
    if isinstance(value, t.Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _not_checked(host: str, result: Result) -> Row:
    return {
        "host": host,
        "name": "-",
        "verdict": "unknown",
        "reason": _state(result),
        "healthy": None,
        "message": _message(result or {}),
        "engines": [],
    }


def _message(result: t.Mapping[str, t.Any]) -> str:
    if "servers" in result:
        return (
            "the check has left a result that cannot be read; an API key that is a number or an ordinary word does"
            " that, as Ansible hides it wherever it stands"
        )
    message = str(result.get("msg", "the check of this host left no result"))
    undefined = _UNDEFINED.search(message)
    if undefined:
        # ansible-core before 2.19 puts the whole expression before it, and then the name is what gets cut off.
        return f"a variable that its servers need is missing: {undefined.group(0)}"
    # ansible-core 2.19 puts this before what the connection says.
    prefix = "Task failed: "
    return message[len(prefix) :] if message.startswith(prefix) else message


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"fleet_report": fleet_report}
