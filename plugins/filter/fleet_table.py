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

# Heading, widest cell, and what to show of a server. The message begins with the numbers that decide, so its end is
# what may be lost.
Column = t.Tuple[str, int, t.Callable[[t.Mapping[str, t.Any]], t.Any]]


def fleet_table(fleet: t.Mapping[str, t.Any]) -> t.List[str]:
    """The lines of the table, a blank one, and one with the counts; after a restart also what was done and where."""
    shown = _SEEN + (_DONE if "restarts" in fleet else ()) + _SAID
    rows = [tuple(head for head, _widest, _show in shown)]
    rows += [tuple(plain(show(server), widest) for _head, widest, show in shown) for server in fleet["servers"]]
    widths = [max(columns(row[column]) for row in rows) for column in range(len(shown))]
    lines = [_line(row, widths) for row in rows]
    return never_templated([*lines, "", *_actions(fleet), *_pauses(fleet), _counts(fleet)])


def _pauses(fleet: t.Mapping[str, t.Any]) -> t.List[str]:
    """A line for each host from which somebody keeps automatic restarts away."""
    pauses = fleet.get("pauses", [])
    lines = [f"{plain(pause['host'], 40)}: automatic restarts are {plain(pause['message'], 300)}" for pause in pauses]
    return [*lines, ""] if lines else []


def _load(server: t.Mapping[str, t.Any]) -> str:
    engines = server.get("engines") or []
    return f"{_sum(engines, 'running')}/{_sum(engines, 'waiting')}" if engines else "-"


def _speed(server: t.Mapping[str, t.Any]) -> str:
    return _sum(server.get("engines") or [], "tokens_per_second")


def _sum(engines: t.Sequence[t.Mapping[str, t.Any]], key: str) -> str:
    known = [engine[key] for engine in engines if engine.get(key) is not None]
    return f"{sum(known):.0f}" if known else "-"


def _line(cells: t.Sequence[str], widths: t.Sequence[int]) -> str:
    padded = (cell + " " * (width - columns(cell)) for cell, width in zip(cells, widths))
    return "  ".join(padded).rstrip()


_SEEN: t.Tuple[Column, ...] = (
    ("HOST", 40, lambda server: server["host"]),
    ("SERVER", 40, lambda server: server["name"]),
    ("VERDICT", 12, lambda server: server["verdict"]),
    ("REASON", 20, lambda server: server["reason"]),
)
_DONE: t.Tuple[Column, ...] = (
    ("BEFORE", 12, lambda server: server["verdict_before"]),
    ("ACTION", 20, lambda server: server["action"]),
    ("DOWN", 10, lambda server: "-" if server["seconds_down"] is None else f"{server['seconds_down']:.0f} s"),
)
_SAID: t.Tuple[Column, ...] = (
    ("RUN/WAIT", 14, _load),
    ("TOK/S", 10, _speed),
    ("MESSAGE", 160, lambda server: server["message"]),
)


def _actions(fleet: t.Mapping[str, t.Any]) -> t.List[str]:
    """A line for each server that was acted on, or would have been but for a guard."""
    lines = []
    for server in fleet["servers"]:
        if server.get("action", "none") != "none":
            where = f"; evidence on the host: {plain(server['evidence'])}" if server["evidence"] else ""
            named = f"{plain(server['host'], 40)} {plain(server['name'], 40)}"
            lines.append(f"{named}: {server['action']}: {plain(server['action_message'], 300)}{where}")
    return [*lines, ""] if lines else []


def _counts(fleet: t.Mapping[str, t.Any]) -> str:
    hosts = fleet["hosts"]
    parts = [", ".join(f"{number} {verdict}" for verdict, number in fleet["counts"].items()) or "no server"]
    parts += [f"{number} {word.replace('_', ' ')}" for word, number in fleet.get("restarts", {}).items() if number]
    parts += [f"{hosts['checked']} of {sum(hosts.values())} hosts checked"]
    parts += [f"{hosts[key]} {word}" for key, word in (("unreachable", "unreachable"), ("failed", "failed")) if hosts[key]]
    return "; ".join(parts)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"fleet_table": fleet_table}
