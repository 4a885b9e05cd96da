# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the life of units from the journal."""

from __future__ import annotations

import time
import typing as t

from .. import bounded
from . import findings, journal
from .parties import Party, Target

MOST_LOOKED_INTO = 60
"""Of this many restarts, the newest, the cause is looked for."""
BUDGET = 40.0
"""Seconds for looking into causes."""


class Diary:
    """The journal of the last days. `notes` holds what could not be read."""

    def __init__(self, days: int, loading_time: float, now: t.Optional[float] = None) -> None:
        self.days = days
        self.loading_time = loading_time
        self.now = time.time() if now is None else now
        self.notes: t.List[str] = []
        self._first: t.Optional[float] = None
        self._asked_first = False

    def history(self, target: Target, parties: t.Sequence[Party]) -> findings.History:
        """The restarts of one unit with who asked for each."""
        since = self.now - 86400 * self.days
        answer = self._read(since, self.now + 60, *_life(target))
        if isinstance(answer, bounded.Unreadable):
            return findings.History((), self.days, self.loading_time, why_not=answer.why)
        life = journal.entries(answer.text)
        begins = self._begins(since)
        if answer.cut and life:
            begins = life[0].at
            self.notes.append(f"the journal says more about {target.unit} than was read: only the newest part counts")
        if not life and begins is None and not self._readable():
            return findings.History((), self.days, self.loading_time, why_not="the journal cannot be read")
        restarts = journal.restarts(life)
        return findings.History(
            tuple(zip(restarts, self._askers(restarts, target, parties))), self.days, self.loading_time, begins
        )

    def _askers(self, restarts: t.Sequence[journal.Restart], target: Target, parties: t.Sequence[Party]) -> t.List[journal.Asker]:
        deadline = time.monotonic() + BUDGET
        found: t.List[journal.Asker] = []
        for number, restart in enumerate(reversed(restarts)):
            if number >= MOST_LOOKED_INTO or time.monotonic() > deadline:
                found.append(journal.Asker())
                continue
            answer = self._read(restart.began - journal.BEFORE, restart.at + journal.AFTER, *_witnesses(parties))
            around = journal.entries(answer.text) if isinstance(answer, bounded.Text) else []
            found.append(journal.asker(restart, around, target, parties))
        if len(restarts) > len(found) or any(not asker.kind for asker in found[MOST_LOOKED_INTO:]):
            self.notes.append(f"who asked was looked for only for the newest {MOST_LOOKED_INTO} restarts")
        return found[::-1]

    def _read(self, since: float, until: float, *matches: str) -> bounded.Reading:
        command = ["journalctl", "--quiet", "--no-pager", "--reverse", "--output=json", "--utc"]
        command += [f"--output-fields={journal.FIELDS}", f"--since=@{since:.0f}", f"--until=@{until + 1:.0f}"]
        return bounded.run([*command, "--lines=20000", *matches])

    def _readable(self) -> bool:
        """Whether the journal shows what systemd itself says."""
        answer = bounded.run(["journalctl", "--quiet", "--no-pager", "--lines=1", "--output=json", "_PID=1"])
        return isinstance(answer, bounded.Text) and bool(answer.text.strip())

    def _begins(self, since: float) -> t.Optional[float]:
        """When the journal begins, if that is later than asked for."""
        if not self._asked_first:
            self._asked_first = True
            # The first entry only: the command is ended once it has printed so much.
            answer = bounded.run(["journalctl", "--quiet", "--no-pager", "--output=json", "_PID=1"], limit=20000)
            whole = answer.text.splitlines()[:1] if isinstance(answer, bounded.Text) else []
            entries = journal.entries("\n".join(whole))
            self._first = entries[0].at if entries else None
        if self._first is None or self._first < since + 3600:
            return None
        return self._first


def _life(target: Target) -> t.List[str]:
    names = (target.unit, *target.aliases)
    messages = [f"MESSAGE_ID={message}" for message in journal.MESSAGES]
    if target.uid is None:
        return ["_PID=1", *(f"UNIT={name}" for name in names), *messages]
    return [f"_UID={target.uid}", *(f"USER_UNIT={name}" for name in names), *messages]


def _witnesses(parties: t.Sequence[Party]) -> t.List[str]:
    """Whose messages may tell a cause; the rest, such as the log of the server itself, may be very long."""
    services = sorted({party.service for party in parties if party.service})
    matches = ["_COMM=systemd", *(f"SYSLOG_IDENTIFIER={name}" for name in journal.IDENTIFIERS)]
    for name in services[:50]:
        matches += [f"_SYSTEMD_UNIT={name}", f"_SYSTEMD_USER_UNIT={name}"]
    return [word for match in matches for word in (match, "+")][:-1]
