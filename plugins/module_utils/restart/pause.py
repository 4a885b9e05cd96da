# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pause mark: a file that keeps automatic restarts away from a host, with who, why and until when.

One that cannot be read or understood counts as a pause: somebody wanted one.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import typing as t

from .. import bounded, redacting

SYSTEM_STATE = "/var/lib/fleetcheck-vllm"
"""The folder of a host's locks, pause mark and evidence, out of the reach of what tidies temporary folders."""

FILE_NAME = "pause.json"
"""The mark's name in such a folder."""

TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


@dataclasses.dataclass(frozen=True)
class Pause:
    """A pause in force. until: Unix seconds, None for one without an end or one that cannot be read."""

    who: str
    why: str
    until: t.Optional[float]

    def __str__(self) -> str:
        end = "until it is removed" if self.until is None else "until " + utc(self.until)
        return "paused by %s %s: %s" % (self.who, end, self.why)


def utc(seconds: float) -> str:
    """Unix seconds as UTC."""
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(TIME_FORMAT)


def unix(text: str) -> float:
    """Unix seconds of a time as utc() writes it. Raises ValueError."""
    return datetime.datetime.strptime(text, TIME_FORMAT).replace(tzinfo=datetime.timezone.utc).timestamp()


def write(who: str, why: str, until: t.Optional[float]) -> str:
    """The text of a mark."""
    end = None if until is None else utc(until)
    return json.dumps({"who": who, "why": why, "until": end}, indent=2) + "\n"


def user_state() -> str:
    """The folder that stands in for SYSTEM_STATE where a user restarts units of the user's own."""
    return os.path.join(os.path.expanduser("~"), ".local", "state", "fleetcheck-vllm")


def current(now: float, *state_dirs: str) -> t.Optional[Pause]:
    """The pause in force on this host, if any: the system's mark holds for the units of every user."""
    for folder in dict.fromkeys((SYSTEM_STATE, *state_dirs)):
        pause = in_force(bounded.read_file(os.path.join(folder, FILE_NAME)), now)
        if pause is not None:
            return pause
    return None


def in_force(mark: bounded.Reading, now: float) -> t.Optional[Pause]:
    """The pause that a mark stands for, or None where there is none or it has expired. now: Unix seconds."""
    if isinstance(mark, bounded.Unreadable):
        return None if mark.missing else _unclear("the mark cannot be read (%s)" % mark.why)
    try:
        said = json.loads(mark.text)
        until = None if said["until"] is None else unix(said["until"])
        pause = Pause(redacting.shown(str(said["who"])), redacting.shown(str(said["why"])), until)
    except (ValueError, TypeError, LookupError, RecursionError):
        return _unclear("the mark cannot be understood")
    return None if until is not None and until <= now else pause


def _unclear(why: str) -> Pause:
    return Pause("somebody", why, None)
