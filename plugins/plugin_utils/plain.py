# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of strangers made harmless before it reaches a terminal, a table or a template."""

from __future__ import annotations

import typing as t
import unicodedata

from ansible.utils.unsafe_proxy import wrap_var


def plain(text: t.Any, width: t.Optional[int] = None) -> str:
    """One line without control characters, cut to at most C(width) columns.

    Model names, error texts and unit names come from other machines: an escape sequence in them could rewrite
    the operator's terminal, a line break or a right-to-left mark could fake a row of the table.
    """
    line = " ".join("".join(map(_visible, str(text))).split())
    return line if width is None else _cut(line, width)


def columns(text: str) -> int:
    """How many columns of a terminal C(text) takes."""
    return sum(map(_columns_of, text))


def never_templated(value: t.Any) -> t.Any:
    """A copy of C(value) whose strings Ansible never takes for templates, whatever braces are in them.

    ansible-core before 2.19 renders what a filter returns once more when it is stored with set_fact or set_stats.
    ansible-core 2.19 hands out containers that cannot be marked; hence the copy.
    """
    if isinstance(value, t.Mapping):
        return {key: never_templated(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [never_templated(item) for item in value]
    return wrap_var(value)


def _visible(character: str) -> str:
    if character in "\t\n\r\v\f\u2028\u2029":
        return " "
    # C: control, format (bidirectional marks, zero width), surrogate, private use and unassigned.
    return "?" if unicodedata.category(character).startswith("C") else character


def _columns_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _cut(line: str, width: int) -> str:
    if columns(line) <= width:
        return line
    kept, used = [], len("...")
    for character in line:
        used += _columns_of(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "..."
