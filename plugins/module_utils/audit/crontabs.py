# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Crontabs and the jobs of `at`."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from . import schedules

PERIODS = {"hourly": 3600, "daily": 86400, "weekly": 7 * 86400, "monthly": 30 * 86400}
"""The folders /etc/cron.hourly and so on, whose files are run as they are; seconds between two runs."""

_LEFT_OVER = re.compile(r"~\Z|\A\.|\.(?:bak|disabled|off|old|orig|save|swp|dpkg-\w+|ucf-\w+|rpmsave|rpmnew|rpmorig)\Z")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One line of a crontab."""

    line: int
    user: t.Optional[str]
    command: str
    every: t.Optional[int]
    when: str


def entries(text: str, with_user: bool) -> t.Iterator[Entry]:
    """The jobs of a crontab. Those in /etc name a user between the time and the command."""
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#") or re.match(r"[A-Za-z_]\w*\s*=", line):
            continue
        count = 1 if line.startswith("@") else 5
        fields = line.split(None, count + with_user)
        if len(fields) != count + with_user + 1:
            continue
        times, command = fields[:count], fields[-1]
        # From the first unescaped % on it is what the command reads, not the command.
        command = re.sub(r"(?<!\\)%.*", "", command)
        yield Entry(number, fields[count] if with_user else None, command, schedules.cron(times), " ".join(times))


def anacron(text: str) -> t.Iterator[Entry]:
    """The jobs of /etc/anacrontab: days, delay, name, command."""
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.split(None, 3)
        if len(fields) != 4 or not re.fullmatch(r"\d+|@monthly|@weekly|@daily", fields[0]):
            continue
        days = int(fields[0]) * 86400 if fields[0].isdigit() else schedules.cron([fields[0]])
        yield Entry(number, "root", fields[3], days, f"anacron {fields[0]}")


def is_run(name: str, by_run_parts: bool) -> bool:
    """Whether cron takes a file of this name from its folders."""
    if _LEFT_OVER.search(name):
        return False
    # Debian's cron and run-parts skip every name with a dot.
    return not by_run_parts or re.fullmatch(r"[A-Za-z0-9_-]+", name) is not None


def at_time(name: str) -> t.Optional[int]:
    """When a file of the at spool is due, in seconds since 1970: its name says so."""
    match = re.fullmatch(r"[a-zA-Z=]([0-9a-f]{5})([0-9a-f]{8})", name)
    return int(match.group(2), 16) * 60 if match else None
