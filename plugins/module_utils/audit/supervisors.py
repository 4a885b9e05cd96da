# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""monit and supervisord: parts of their files that watch something, and what they do about it."""

from __future__ import annotations

import configparser
import dataclasses
import re
import typing as t

from ..discovery import commandline, units


@dataclasses.dataclass(frozen=True)
class Block:
    """One check of monit, or one section of supervisord."""

    line: int
    name: str
    commands: t.Tuple[t.Tuple[int, str], ...]
    reacts: bool = True
    runs_vllm: bool = False


_CHECK = re.compile(r"\s*check\s+(\w+)\s+(?:\"([^\"]+)\"|(\S+))", re.IGNORECASE)
_PROGRAM = re.compile(r"(?:start|stop|restart)\s*(?:program)?\s*=?\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_EXEC = re.compile(r"\bexec\s+(?:\"([^\"]*)\"|'([^']*)'|(/\S+))", re.IGNORECASE)
_REACTION = re.compile(r"\bthen\s+(?:restart|stop|start|exec|unmonitor)\b|\belse\s+if\b.*\bexec\b", re.IGNORECASE)


def monit(text: str) -> t.List[Block]:
    """The checks of a monit file, each with the commands it may run.

    A check of a process that runs no more is started again even without a rule that says so.
    """
    blocks: t.List[Block] = []
    start, kind, name, commands, reacts = 0, "", "", [], False  # type: int, str, str, t.List[t.Tuple[int, str]], bool

    def end() -> None:
        if start:
            blocks.append(Block(start, name, tuple(commands), reacts or kind == "process"))

    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("#"):
            continue
        check = _CHECK.match(line)
        if check:
            end()
            start, kind, name = number, check.group(1).lower(), check.group(2) or check.group(3)
            commands, reacts = [], False
        for pattern in (_PROGRAM, _EXEC):
            commands += [(number, next(filter(None, match.groups()), "")) for match in pattern.finditer(line)]
        reacts = reacts or bool(_REACTION.search(line))
    end()
    return blocks


def supervisord(text: str) -> t.List[Block]:
    """The programs and event listeners of a supervisord file."""
    parser = configparser.RawConfigParser(strict=False, inline_comment_prefixes=(" ;",), allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return []
    blocks = []
    for section in parser.sections():
        kind, _colon, name = section.partition(":")
        command = parser.get(section, "command", fallback="") or ""
        if kind not in ("program", "eventlistener") or not command:
            continue
        runs = commandline.recognise_within(units.words(command)) is not None
        again = (parser.get(section, "autorestart", fallback="unexpected") or "").lower() != "false"
        line = _line(text, rf"\s*\[{re.escape(section)}\]")
        blocks.append(Block(line, name, ((_line(text, r"\s*command\s*[=:]", line), command),), again, runs))
    return blocks


def _line(text: str, pattern: str, after: int = 1) -> int:
    for number, line in enumerate(text.split("\n"), 1):
        if number >= after and re.match(pattern, line):
            return number
    return after
