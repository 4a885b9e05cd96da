# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Prometheus is told of a fleet, taken out of its report."""

from __future__ import annotations

import typing as t

from ..module_utils.verdicts import VERDICTS
from ..plugin_utils.plain import never_templated, plain

DOCUMENTATION = r"""
name: vllm_measures
short_description: What Prometheus is told of a fleet
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Takes out of a report what M(fleetcheck.vllm.vllm_textfile) and M(fleetcheck.vllm.vllm_pushgateway) need.
  - A host that could not be checked has one server named C(-).
  - Two servers of one host with the same name are told apart by their URL.
options:
  _input:
    description: What P(fleetcheck.vllm.fleet_report#filter) returned.
    type: dict
    required: true
"""

EXAMPLES = r"""
servers: "{{ vllm_fleet | fleetcheck.vllm.vllm_measures }}"
"""

RETURN = r"""
_value:
  description: One dictionary for each server.
  type: list
  elements: dict
  sample:
    - host: gpu-01
      server: vllm.service
      verdict: idle
      probes: 1
      action: ""
      engines:
        - engine: "0"
          silent_for: 0.0
"""

LONGEST = 200
NOTHING_DONE = ("", "none", "not_stuck", "would_restart")

Row = t.Mapping[str, t.Any]


def vllm_measures(fleet: t.Mapping[str, t.Any]) -> t.List[t.Dict[str, t.Any]]:
    """One dict for each server of the fleet."""
    taken: t.Set[t.Tuple[str, str]] = set()
    return never_templated([_measure(row, taken) for row in fleet["servers"]])


def _measure(row: Row, taken: t.Set[t.Tuple[str, str]]) -> t.Dict[str, t.Any]:
    verdict = row.get("verdict_after") or row["verdict"]
    action = row.get("action") or ""
    return {
        "host": plain(row["host"], LONGEST),
        "server": _server(row, taken),
        "verdict": verdict if verdict in VERDICTS else "unknown",
        "probes": row.get("probes") or 0,
        "action": "" if action in NOTHING_DONE else plain(action, LONGEST),
        "engines": [_engine(engine) for engine in row.get("engines") or ()],
    }


def _engine(engine: Row) -> t.Dict[str, t.Any]:
    return {"engine": plain(engine["engine"], LONGEST), "silent_for": engine.get("silent_for") or 0.0}


def _server(row: Row, taken: t.Set[t.Tuple[str, str]]) -> str:
    """The server's name, made different from those of its host before it."""
    name = plain(row["name"], LONGEST)
    if (row["host"], name) in taken:
        name = "%s (%s)" % (name, plain(row.get("url"), LONGEST))
    count = 2
    while (row["host"], name) in taken:
        name, count = "%s #%d" % (name, count), count + 1
    taken.add((row["host"], name))
    return name


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"vllm_measures": vllm_measures}
