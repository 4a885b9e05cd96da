# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A start script, read for the vLLM server that it starts. It is never run."""

from __future__ import annotations

import re
import typing as t

from . import commandline, units


def programs(argv: t.Sequence[str]) -> t.List[str]:
    """The words of a command that may be the script it runs: the first two that are no options."""
    return [word for word in argv if not word.startswith("-")][:2]


def servers(text: str) -> t.List[commandline.Command]:
    """The vLLM servers that the lines of a shell script start, with its simple variables put in."""
    variables: t.Dict[str, str] = {}
    found = []
    for line in joined(text):
        assignment = re.match(r"\s*(?:export\s+)?([A-Za-z_]\w*)=(\S*)\s*\Z", line)
        if assignment:
            variables[assignment.group(1)] = filled(assignment.group(2).strip("\"'"), variables)
            continue
        if "vllm" in line and not line.lstrip().startswith("#"):
            commands = map(commandline.recognise_within, _commands(units.words(filled(line, variables))))
            found += [command for command in commands if command]
    return found


def _commands(words: t.Sequence[str]) -> t.Iterator[t.List[str]]:
    """The words of each of the commands that stand in one line."""
    command: t.List[str] = []
    for word in words:
        between = word in ("&", "&&", "|", "||")
        if not between:
            command.append(word.rstrip(";"))
        if between or word.endswith(";"):
            yield command
            command = []
    yield command


def joined(text: str) -> t.List[str]:
    """The lines, those that end in a backslash put together."""
    return re.sub(r"\\\n", " ", text).splitlines()


def filled(text: str, variables: t.Mapping[str, str]) -> str:
    """The text with `$NAME`, `${NAME}` and `${NAME:-default}` put in; what is unknown stays as it is."""

    def put(match: t.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        default = match.group(3)
        return variables.get(name, default if default is not None else match.group(0))

    return re.sub(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?-([^}$]*))?\})", put, text)
