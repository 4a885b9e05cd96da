# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what people and programs have written on a host to be run by others: scripts, crontabs, jobs, rules."""

from __future__ import annotations

import typing as t

from .. import bounded
from . import crontabs
from .matching import Source

MOST_SCRIPTS = 500
_TEXT_ENDINGS = (".sh", ".bash", ".py", ".pl", ".rb", ".conf")
_BINARIES = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/lib/", "/usr/lib/")
_MONIT = ("/etc/monitrc", "/etc/monit/monitrc"), ("/etc/monit/conf.d", "/etc/monit/conf-enabled", "/etc/monit.d")
_SUPERVISORD = (
    ("/etc/supervisord.conf", "/etc/supervisor/supervisord.conf"),
    ("/etc/supervisor/conf.d", "/etc/supervisord.d"),
)
_LOGROTATE = ("/etc/logrotate.conf",), ("/etc/logrotate.d",)


class Library:
    """The files of a host, each read once. `notes` holds a sentence for what was there and could not be read."""

    def __init__(self) -> None:
        self.notes: t.List[str] = []
        self._scripts: t.Dict[str, t.Optional[str]] = {}
        self._units: t.Dict[str, str] = {}

    def script(self, path: str) -> t.Optional[str]:
        """The text of a script; None for programs, data and what is not there."""
        if path not in self._scripts:
            self._scripts[path] = self._script(path)
        return self._scripts[path]

    def unit_file(self, path: str) -> str:
        """The text of a unit file, empty where there is none."""
        if path not in self._units:
            self._units[path] = self._text(path) or ""
        return self._units[path]

    def _script(self, path: str) -> t.Optional[str]:
        if len(self._scripts) >= MOST_SCRIPTS:
            self._note(f"more than {MOST_SCRIPTS} scripts are called on this host: the rest was not read")
            return None
        head = bounded.read_file(path, limit=128)
        if isinstance(head, bounded.Unreadable):
            if not head.missing and head.why != "not a regular file":
                self._note(str(head))
            return None
        script = head.text.startswith("#!") or path.endswith(_TEXT_ENDINGS)
        if not script and (path.startswith(_BINARIES) or "\0" in head.text or head.text.startswith("\x7fELF")):
            return None
        return self._text(path)

    def _text(self, path: str) -> t.Optional[str]:
        answer = bounded.read_file(path)
        if isinstance(answer, bounded.Unreadable):
            if not answer.missing:
                self._note(str(answer))
            return None
        if answer.cut:
            self._note(f"{path}: only its first {bounded.FILE_LIMIT // 1024} kB were read")
        return answer.text

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _names(self, folder: str) -> t.List[str]:
        names = bounded.list_directory(folder, files_only=True)
        if isinstance(names, bounded.Unreadable):
            if not names.missing:
                self._note(str(names))
            return []
        return names

    def _folder(self, folder: str, by_run_parts: bool = False) -> t.Iterator[t.Tuple[str, str]]:
        for name in self._names(folder):
            if crontabs.is_run(name, by_run_parts):
                text = self._text(f"{folder}/{name}")
                if text is not None:
                    yield f"{folder}/{name}", text

    def system_crontabs(self, active: bool) -> t.Iterator[Source]:
        """/etc/crontab and /etc/cron.d, whose lines name a user."""
        debian = isinstance(bounded.read_file("/etc/debian_version"), bounded.Text)
        own = self._text("/etc/crontab")
        files = [("/etc/crontab", own)] if own is not None else []
        for path, text in [*files, *self._folder("/etc/cron.d", by_run_parts=debian)]:
            yield _cron_source(path, text, "", active)

    def user_crontabs(self, active: bool) -> t.Iterator[Source]:
        """The crontabs of users."""
        for folder in ("/var/spool/cron/crontabs", "/var/spool/cron"):
            for path, text in self._folder(folder):
                yield _cron_source(path, text, path.rsplit("/", 1)[-1], active)

    def anacrontab(self, active: bool) -> t.Iterator[Source]:
        """/etc/anacrontab."""
        text = self._text("/etc/anacrontab")
        if text is not None:
            yield _cron_source("/etc/anacrontab", text, "", active)

    def periodic(self, active: bool) -> t.Iterator[t.Tuple[str, Source]]:
        """The files of /etc/cron.daily and the like, with the name of the period."""
        for period in crontabs.PERIODS:
            for path, text in self._folder(f"/etc/cron.{period}", by_run_parts=True):
                yield period, _cron_source(path, text, "root", active)

    def at_jobs(self, active: bool) -> t.Iterator[Source]:
        """The jobs that `at` will run once."""
        remark = "" if active else "atd does not run"
        for folder in ("/var/spool/cron/atjobs", "/var/spool/at"):
            for path, text in self._folder(folder):
                if crontabs.at_time(path.rsplit("/", 1)[-1]) is not None:
                    yield Source(path, text, active=active, remark=remark)

    def monit(self, active: bool) -> t.Iterator[Source]:
        """The files of monit."""
        yield from self._configuration(_MONIT, active, "monit does not run")

    def supervisord(self, active: bool) -> t.Iterator[Source]:
        """The files of supervisord."""
        yield from self._configuration(_SUPERVISORD, active, "supervisord does not run")

    def logrotate(self) -> t.Iterator[Source]:
        """The files of logrotate, which run commands after a rotation."""
        yield from self._configuration(_LOGROTATE, True, "")

    def _configuration(self, where: t.Tuple[t.Tuple[str, ...], t.Tuple[str, ...]], active: bool, why: str) -> t.Iterator[Source]:
        paths, folders = where
        for path in paths:
            text = self._text(path)
            if text is not None:
                yield Source(path, text, active=active, remark="" if active else why)
        for folder in folders:
            for path, text in self._folder(folder):
                yield Source(path, text, active=active, remark="" if active else why)


def _cron_source(path: str, text: str, user: str, active: bool) -> Source:
    return Source(path, text, user, active, "" if active else "cron does not run")
