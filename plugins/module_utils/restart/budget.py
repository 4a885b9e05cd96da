# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The budget of restarts: how often a unit was started of late, by anyone, and whether once more is too often.

The starts are counted in the journal, so that those of people and of other watchdogs count as well. Where the
journal does not tell, the budget counts as used up.
"""

from __future__ import annotations

import dataclasses
import time
import typing as t

from .. import bounded, systemd
from ..audit import journal

# "Journal started" (see `systemd/sd-messages.h`). Older messages are removed first: where this one is still there from
# so many seconds after the boot, none of this boot is lost.
_JOURNAL_STARTED = "f77379a8490b408bbe5f6940505a777b"
_SOON_AFTER_BOOT = 300.0

COMMAND_TIMEOUT = 20.0


class JournalError(Exception):
    """The journal does not show the starts of the unit."""


@dataclasses.dataclass(frozen=True)
class Budget:
    """min_interval: seconds that must have passed since the last start. starts: so many within window seconds, by
    anyone, and no more."""

    min_interval: float = 1800.0
    starts: int = 2
    window: float = 86400.0

    @property
    def horizon(self) -> float:
        """So many seconds back the starts must be known."""
        return max(self.window, self.min_interval)

    def objection(self, starts: t.Sequence[float], now: float) -> t.Optional[t.Tuple[str, str]]:
        """Why there must be no further start, as a word and a sentence; None where nothing speaks against it.

        starts: Unix seconds of the starts within the horizon, now likewise.
        """
        recent = [start for start in starts if start > now - self.window]
        if len(recent) >= self.starts:
            return "quarantined", "it was started %d times in the last %g hours, and %d is the limit" % (
                len(recent),
                self.window / 3600,
                self.starts,
            )
        since = min((now - start for start in starts), default=self.min_interval)
        if since < self.min_interval:
            return "too_soon", "it was started %.0f minutes ago, and %g minutes must lie between two starts" % (
                since / 60,
                self.min_interval / 60,
            )
        return None


def starts(unit: str, scope: str, since: float, invocation: str, last_start: t.Optional[float]) -> t.List[float]:
    """Unix seconds of all starts of the unit since then, also of those that failed. Raises JournalError where they
    cannot be known.

    invocation: the unit's present InvocationID, empty where it never started. last_start: when systemd says that its
    main process started last, Unix seconds.
    """
    found = _found(unit, scope, since)
    if not found and last_start is not None and last_start <= since:
        return []  # it has been up since before, whatever the journal has
    if invocation and invocation not in found and (last_start is None or last_start > since):
        raise JournalError("the journal lacks the unit's last start, or may not be read by this user")
    if not _reaches_back(since, scope):
        raise JournalError("the journal does not reach back far enough, nor to the last boot")
    return sorted(found.values())


def _found(unit: str, scope: str, since: float) -> t.Dict[str, float]:
    """The starts by invocation. One that takes long has two messages, one that fails may have only the first."""
    field = "USER_UNIT" if scope == "user" else "UNIT"
    kinds = ["MESSAGE_ID=" + journal.STARTING, "MESSAGE_ID=" + journal.STARTED]
    messages = journal.entries(_journal(["--since", "@%d" % since, *kinds, "%s=%s" % (field, unit), *_told_by(scope)]))
    return {entry.invocation or str(entry.at): entry.at for entry in messages}


def _reaches_back(since: float, scope: str) -> bool:
    """Whether there is any message from before, or the first ones of this boot."""
    if _journal(["--until", "@%d" % since, "--lines", "1", *_told_by(scope)]).strip():
        return True
    begun = journal.entries(_journal(["--boot", "MESSAGE_ID=" + _JOURNAL_STARTED]))
    return bool(begun) and begun[0].at - _boot_time() < _SOON_AFTER_BOOT


def _told_by(scope: str) -> t.List[str]:
    """Of the system's units only the first process is believed: whoever may log can write what looks like a start.

    And a user who sees only messages of his own knows nothing of them.
    """
    return [] if scope == "user" else ["_PID=1"]


def _boot_time() -> float:
    """When systemd started on this host, Unix seconds."""
    try:
        shown = systemd.systemctl("system", ["show", "--property=UserspaceTimestampMonotonic"], COMMAND_TIMEOUT)
    except systemd.SystemctlError as error:
        raise JournalError(str(error)) from None
    return time.time() - time.monotonic() + int(shown.partition("=")[2] or 0) / 1e6


def _journal(arguments: t.Sequence[str]) -> str:
    command = ["journalctl", "--no-pager", "--quiet", "--output", "json", *arguments]
    read = bounded.run(command, COMMAND_TIMEOUT)
    if isinstance(read, bounded.Unreadable):
        if read.why == "ended with code 1":
            return ""  # nothing matches
        raise JournalError("the journal cannot be read (%s)" % read.why)
    if read.cut:
        raise JournalError("the journal is too long or too slow to be read")
    return read.text
