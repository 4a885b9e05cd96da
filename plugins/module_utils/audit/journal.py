# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The restarts of a unit, from the journal: when, how long after the one before, and who asked.

systemd does not write down who asked for a restart. What else happened in the same seconds often tells.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

from ..redacting import shown
from . import shellscan
from .parties import Party, Target

STARTING = "7d4958e842da4a758f6c1cdc7b36dcc5"
STARTED = "39f53479d3a045ac8e11786248231fbf"
STOPPING = "de5b426a63be47a7b6ac3eaac82e2f6f"
STOPPED = "9d1aaa27d60140bd96365438aad20286"
SUCCEEDED = "7ad2d189f7e94e70a38c781354912448"
FAILED = "d9b373ed55a64feb8242e02dbe79a49c"
EXITED = "98e322203f7a4ed290d09fe03c09fe15"
SCHEDULED = "5eb03494b6584870a536b337290809b3"
MESSAGES = (STARTING, STARTED, STOPPING, STOPPED, SUCCEEDED, FAILED, EXITED, SCHEDULED)
"""The messages of systemd that tell the life of a unit (see `systemd/sd-messages.h`)."""

FIELDS = (
    "MESSAGE,MESSAGE_ID,UNIT,USER_UNIT,INVOCATION_ID,USER_INVOCATION_ID,UNIT_RESULT,SYSLOG_IDENTIFIER,_SYSTEMD_UNIT,"
    "_SYSTEMD_USER_UNIT,_BOOT_ID,_PID,_COMM"
)
BEFORE = 120.0
"""Seconds before a restart in which its cause is looked for: a script may try a server for long before it acts."""
AFTER = 1.0
_AT_ONCE = 10.0
"""Seconds within which a command that was typed, or a line that a daemon wrote, belongs to a restart."""
_SLACK = 0.5
"""Seconds by which messages of different processes may come out of order."""

IDENTIFIERS = (
    "sudo",
    "CRON",
    "cron",
    "crond",
    "atd",
    "monit",
    *(
        f"ansible-{prefix}{name}"
        for prefix in ("", "ansible.legacy.", "ansible.builtin.", "fleetcheck.vllm.")
        for name in ("systemd", "systemd_service", "service", "command", "shell", "vllm_unit_restart")
    ),
)
"""Who may have written down that it asked for a restart."""

_RESULTS = {
    "exit-code": "it ended with an error",
    "signal": "it was killed",
    "core-dump": "it crashed",
    "watchdog": "its watchdog ran out",
    "timeout": "it did not start or stop in time",
    "oom-kill": "it ran out of memory",
    "start-limit-hit": "it was started too often",
    "success": "it ended by itself",
}


@dataclasses.dataclass(frozen=True)
class Entry:
    """One message of the journal; `at` in seconds since 1970."""

    at: float
    message: str
    message_id: str = ""
    unit: str = ""
    invocation: str = ""
    result: str = ""
    identifier: str = ""
    sender: str = ""
    boot: str = ""
    pid: str = ""


@dataclasses.dataclass(frozen=True)
class Restart:
    """One start of the unit that was not the first. `after` counts seconds since the start before."""

    at: float
    began: float
    after: t.Optional[float]
    result: str
    by_systemd: bool


@dataclasses.dataclass(frozen=True)
class Asker:
    """Who asked for a restart. `kind` is empty where that is not known."""

    kind: str = ""
    name: str = ""
    certain: bool = False

    def __str__(self) -> str:
        return self.name or "not known"


def entries(text: str) -> t.List[Entry]:
    """The messages in the output of `journalctl -o json`, oldest first."""
    found = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and str(row.get("__REALTIME_TIMESTAMP", "")).isdigit():
            found.append(_entry(row))
    return sorted(found, key=lambda entry: entry.at)


def _entry(row: t.Dict[str, t.Any]) -> Entry:
    def said(*names: str) -> str:
        # A field may be a list (several values) or numbers (bytes that are no text); neither says anything here.
        return next((row[name] for name in names if isinstance(row.get(name), str)), "")

    return Entry(
        at=int(row["__REALTIME_TIMESTAMP"]) / 1e6,
        message=said("MESSAGE")[:4000],
        message_id=said("MESSAGE_ID"),
        unit=said("UNIT", "USER_UNIT"),
        invocation=said("INVOCATION_ID", "USER_INVOCATION_ID"),
        result=said("UNIT_RESULT"),
        identifier=said("SYSLOG_IDENTIFIER", "_COMM"),
        sender=said("_SYSTEMD_USER_UNIT", "_SYSTEMD_UNIT"),
        boot=said("_BOOT_ID"),
        pid=said("_PID"),
    )


def restarts(life: t.Sequence[Entry]) -> t.List[Restart]:
    """The restarts in the life of one unit. Its first start after the host booted is none."""
    found: t.List[Restart] = []
    last: t.Optional[Entry] = None
    result, scheduled, began = "", False, None  # type: str, bool, t.Optional[float]
    seen: t.Set[str] = set()
    boot = ""
    for entry in life:
        if entry.boot != boot:
            boot, last, result, scheduled, began = entry.boot, None, "", False, None
        if entry.message_id in (STOPPING, EXITED, STOPPED, SUCCEEDED, FAILED):
            began = entry.at if began is None else began
            result = entry.result or ("success" if entry.message_id == SUCCEEDED else result)
        elif entry.message_id == SCHEDULED:
            scheduled = True
        elif entry.message_id in (STARTING, STARTED) and (entry.invocation or str(entry.at)) not in seen:
            seen.add(entry.invocation or str(entry.at))
            if last is not None or began is not None:
                after = entry.at - last.at if last else None
                found.append(Restart(entry.at, entry.at if began is None else began, after, result, scheduled))
            last, result, scheduled, began = entry, "", False, None
    return found


def asker(restart: Restart, around: t.Sequence[Entry], target: Target, parties: t.Sequence[Party]) -> Asker:
    """Who asked for a restart, from what the journal holds around it."""
    why = _RESULTS.get(restart.result, restart.result)
    if restart.by_systemd and restart.result not in ("signal", ""):
        return Asker("systemd", f"systemd, since {why}", True)
    scene = _Scene(restart, around, target, parties)
    # A unit that went down and took this one along is how it happened. A job that also ran just then need not be.
    looks = (scene.ansible, scene.sudo, scene.dependency, scene.service, scene.cron, scene.at, scene.monit, scene.daemon)
    for look in looks:
        found = look()
        if found:
            return found
    if restart.by_systemd:
        return Asker("systemd", f"systemd, since {why or 'it was down'}", True)
    return Asker()


Look = t.Optional[Asker]


class _Scene:
    """What the journal holds around one restart, the nearest first."""

    def __init__(self, restart: Restart, around: t.Sequence[Entry], target: Target, parties: t.Sequence[Party]) -> None:
        self.restart = restart
        self.around = sorted(around, key=lambda entry: abs(entry.at - restart.began))
        self.target = target
        self.parties = parties

    def _before(self, seconds: float, or_during: bool = False) -> t.Iterator[Entry]:
        """The messages of so many seconds before the restart began. A cause comes first, but after the start before:
        what came earlier was the cause of that one.
        """
        earliest = self.restart.began - seconds
        if self.restart.after is not None:
            earliest = max(earliest, self.restart.at - self.restart.after)
        latest = self.restart.at if or_during else self.restart.began
        for entry in self.around:
            if earliest <= entry.at <= latest + _SLACK:
                yield entry

    def ansible(self) -> Look:
        for entry in self._before(BEFORE):
            if not entry.identifier.startswith("ansible-") or self.target.stem not in entry.message:
                continue
            module = re.sub(r"\Aansible-|.*\.", "", entry.identifier)
            told = re.search(r"\bstate=(?:restarted|started|stopped|reloaded)", entry.message)
            if module == "vllm_unit_restart" or told or shellscan.scan(entry.message, "", self.target).hits:
                users = [user for user in map(_sudo_user, self._before(BEFORE)) if user]
                return Asker("ansible", shown(f"Ansible ({module}{' for ' + users[0] if users else ''})"), True)
        return None

    def sudo(self) -> Look:
        for entry in self._before(_AT_ONCE):
            user = _sudo_user(entry)
            if user and self._means(entry.message.partition("COMMAND=")[2]):
                return Asker("user", f"{user} (sudo)", True)
        return None

    def _means(self, command: str) -> bool:
        """Whether a command restarts the unit, by itself or as a script that is known to."""
        if shellscan.scan(command, "", self.target).hits:
            return True
        scripts = {place.file for party in self.parties for place in (*party.places, *party.via)}
        return any(word in scripts for word in command.split())

    def service(self) -> Look:
        """A service that restarts the unit was started before, and had not ended yet."""
        starting = {entry.invocation for entry in self.around if entry.message_id == STARTING}
        for entry in self._before(BEFORE):
            # A service that does one thing is "starting" while it does it, and "started" once it is done.
            done = entry.message_id == STARTED and entry.invocation in starting
            if entry.message_id not in (STARTING, STARTED) or done:
                continue
            for party in self.parties:
                if party.service and entry.unit == party.service and not self._ended(entry):
                    return Asker(party.kind, party.name, True)
        return None

    def _ended(self, start: Entry) -> bool:
        """Whether the service that was started then had ended well before the restart began."""
        return any(
            entry.unit == start.unit
            and entry.message_id in (SUCCEEDED, FAILED)
            and (entry.at >= start.at or entry.invocation == start.invocation != "")
            and entry.at < self.restart.began - _SLACK
            for entry in self.around
        )

    def cron(self) -> Look:
        for entry in self._before(BEFORE):
            match = re.match(r"\((\S+)\) CMD \((.*)\)\s*\Z", entry.message, re.DOTALL)
            if not match or entry.identifier.lower() not in ("cron", "crond"):
                continue
            command = match.group(2).strip()
            known = any(party.kind == "cron" and party.command.strip() == command for party in self.parties)
            if (known or self._means(command)) and self._still_ran(entry):
                return Asker("cron", f"cron of {shown(match.group(1))}", True)
        return None

    def at(self) -> Look:
        """A job of at was running. Its file is gone by now, so what it did can only be guessed."""
        for entry in self._before(BEFORE):
            opened = _session(entry, "opened")
            if entry.identifier == "atd" and opened and self._still_ran(entry):
                return Asker("at", f"a job of at of {shown(opened)}", False)
        return None

    def _still_ran(self, job: Entry) -> bool:
        """Whether the session of a job was still open when the restart began.

        The session is opened and closed by one process, just before the job is run by another.
        """
        same = [entry for entry in self.around if entry.identifier == job.identifier]
        opened = [entry for entry in same if _session(entry, "opened") and entry.at <= job.at + _SLACK]
        if not opened:
            return self.restart.began - job.at <= _AT_ONCE
        last = max(opened, key=lambda entry: entry.at)
        ended = [entry.at for entry in same if entry.pid == last.pid and entry.at >= last.at and _session(entry, "closed")]
        return not ended or min(ended) >= self.restart.began - _SLACK

    def dependency(self) -> Look:
        """A unit that takes this one along went down in the same moment.

        One process says both, in their order: what it says after the start belongs to the next restart.
        """
        for entry in self._before(_AT_ONCE, or_during=True):
            setting = self.target.setting_towards(entry.unit) if entry.unit and entry.at <= self.restart.at else None
            if setting and entry.message_id in (STOPPING, STOPPED, FAILED, EXITED):
                return Asker("dependency", f"{entry.unit} ({setting})", True)
        return None

    def monit(self) -> Look:
        known = [party.name for party in self.parties if party.kind == "monit"]
        for entry in self._before(BEFORE):
            if entry.identifier != "monit" or not re.search(r"\b(?:re)?start", entry.message):
                continue
            if self.target.stem in entry.message or any(f"'{name}'" in entry.message for name in known):
                return Asker("monit", "monit", True)
        return None

    def daemon(self) -> Look:
        """A service that runs all the time and restarts the unit said something just then."""
        for entry in self._before(_AT_ONCE):
            for party in self.parties:
                if party.service and entry.sender == party.service:
                    return Asker(party.kind, party.name, False)
        return None


def _sudo_user(entry: Entry) -> t.Optional[str]:
    match = re.match(r"\s*(\S+) : .*?COMMAND=", entry.message) if entry.identifier == "sudo" else None
    return shown(match.group(1)) if match else None


def _session(entry: Entry, what: str) -> t.Optional[str]:
    """The user whose session a message of PAM says to be `opened` or `closed`."""
    match = re.search(rf"session {what} for user (\S+?)(?:\(|\s|\Z)", entry.message)
    return match.group(1) if match else None
