# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of an audit as lines for a terminal."""

from __future__ import annotations

import typing as t

from ..plugin_utils.plain import columns, never_templated, plain

DOCUMENTATION = r"""
name: audit_table
short_description: The report of an audit as lines of text
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - First a table with a line for each unit, worst first.
  - Then for each unit the sentence, and below it a line for each party that can restart it, with where that is written.
options:
  _input:
    description: What P(fleetcheck.vllm.audit_report#filter) returned.
    type: dict
    required: true
"""

EXAMPLES = r"""
lines: "{{ audit | fleetcheck.vllm.audit_table }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
"""

HEAD = ("HOST", "UNIT", "CAN RESTART IT", "RESTARTS", "TOO SOON AFTER ANOTHER")
WIDEST = (40, 40, 14, 12, 22)
MOST_PARTIES = 20
LONGEST = 400


def audit_table(audit: t.Mapping[str, t.Any]) -> t.List[str]:
    """The table, the sentences, and one line with the counts."""
    rows = [HEAD] + [_cells(unit) for unit in audit["units"]]
    widths = [max(columns(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = [_line(row, widths) for row in rows]
    for unit in audit["units"]:
        lines += ["", *_sentences(unit)]
    marked: t.List[str] = never_templated([*lines, "", _counts(audit["hosts"])])
    return marked


def _cells(unit: t.Mapping[str, t.Any]) -> t.Tuple[str, ...]:
    numbers = (unit["count"], unit["restart_count"], unit["close_count"])
    name = unit["unit"] if unit["state"] == "audited" else unit["state"]
    cells = (unit["host"], name, *("-" if number is None else str(number) for number in numbers))
    return tuple(plain(cell, width) for cell, width in zip(cells, WIDEST))


def _sentences(unit: t.Mapping[str, t.Any]) -> t.List[str]:
    lines = [plain(f"{unit['host']}: {unit['summary']}", 2 * LONGEST)]
    parties = [party["message"] for party in unit["parties"]]
    more = [f"and {len(parties) - MOST_PARTIES} more"] if len(parties) > MOST_PARTIES else []
    notes = [f"note: {note}" for note in [*unit["notes"], *unit["host_notes"]]]
    return lines + ["  " + plain(line, LONGEST) for line in parties[:MOST_PARTIES] + more + notes]


def _line(cells: t.Sequence[str], widths: t.Sequence[int]) -> str:
    padded = (cell + " " * (width - columns(cell)) for cell, width in zip(cells, widths))
    return "  ".join(padded).rstrip()


def _counts(hosts: t.Mapping[str, int]) -> str:
    parts = [f"{hosts['audited']} of {sum(hosts.values())} hosts audited"]
    parts += [f"{hosts[state]} {state}" for state in ("unreachable", "failed") if hosts[state]]
    return "; ".join(parts)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"audit_table": audit_table}
