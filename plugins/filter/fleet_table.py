# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a fleet as lines for a terminal."""

from __future__ import annotations

import typing as t

from ..plugin_utils.plain import columns, never_templated, plain

DOCUMENTATION = r"""
name: fleet_table
short_description: The report of a fleet as the lines of a table
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - One line a server in the order of the report, which is worst first, then a line of counts.
  - Control characters in texts of servers are replaced, and long texts cut.
options:
  _input:
    description: What P(fleetcheck.vllm.fleet_report#filter) returned.
    type: dict
    required: true
"""

EXAMPLES = r"""
lines: "{{ fleet | fleetcheck.vllm.fleet_table }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
"""

HEAD = ("HOST", "SERVER", "VERDICT", "REASON", "RUN/WAIT", "TOK/S", "MESSAGE")
# The message begins with the numbers that decide, so its end is what may be lost.
WIDEST = (40, 40, 12, 20, 14, 10, 160)


def fleet_table(fleet: t.Mapping[str, t.Any]) -> t.List[str]:
    """The lines of the table, a blank one, and one with the counts."""
    rows = [HEAD] + [_cells(server) for server in fleet["servers"]]
    widths = [max(columns(row[column]) for row in rows) for column in range(len(HEAD))]
    return never_templated([_line(row, widths) for row in rows] + ["", _counts(fleet)])


def _cells(server: t.Mapping[str, t.Any]) -> t.Tuple[str, ...]:
    engines = server.get("engines") or []
    cells = (
        server["host"],
        server["name"],
        server["verdict"],
        server["reason"],
        f"{_sum(engines, 'running')}/{_sum(engines, 'waiting')}" if engines else "-",
        _sum(engines, "tokens_per_second"),
        server["message"],
    )
    return tuple(plain(cell, width) for cell, width in zip(cells, WIDEST))


def _sum(engines: t.Sequence[t.Mapping[str, t.Any]], key: str) -> str:
    known = [engine[key] for engine in engines if engine.get(key) is not None]
    return f"{sum(known):.0f}" if known else "-"


def _line(cells: t.Sequence[str], widths: t.Sequence[int]) -> str:
    padded = (cell + " " * (width - columns(cell)) for cell, width in zip(cells, widths))
    return "  ".join(padded).rstrip()


def _counts(fleet: t.Mapping[str, t.Any]) -> str:
    hosts = fleet["hosts"]
    parts = [", ".join(f"{number} {verdict}" for verdict, number in fleet["counts"].items()) or "no server"]
    parts += [f"{hosts['checked']} of {sum(hosts.values())} hosts checked"]
    parts += [f"{hosts[key]} {word}" for key, word in (("unreachable", "unreachable"), ("failed", "failed")) if hosts[key]]
    return "; ".join(parts)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"fleet_table": fleet_table}
