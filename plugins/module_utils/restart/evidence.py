# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of a hung server before it is restarted: bounded in time and size, without secrets, the newest few."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import time
import typing as t

from .. import bounded, redacting
from ..reading import Answer, Endpoint
from . import gpu

KEPT = 10
"""So many folders are kept for one unit."""

TIME_LIMIT = 60.0
"""Seconds for all of it."""

_ONE_COMMAND = 15.0
_SIZE_LIMIT = 2 * 1024 * 1024
_LINE = 4000


def collect(folder: str, unit: str, scope: str, main_pid: int, endpoint: Endpoint, verdict: t.Mapping[str, t.Any]) -> t.List[str]:
    """Write the evidence into a folder and return what is missing, a sentence each.

    Never raises: a full disk must not keep a dead service down.
    """
    missing: t.List[str] = []
    try:
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.mkdir(folder, mode=0o700)
    except OSError as error:
        return ["no evidence could be kept in %s: %s" % (folder, error.strerror)]
    _write(folder, "verdict.json", json.dumps(verdict, indent=2, default=str), missing)
    _write_metrics(folder, endpoint, missing)
    end = time.monotonic() + TIME_LIMIT
    for name, command in _commands(unit, scope, main_pid).items():
        left = end - time.monotonic()
        if left <= 0:
            missing.append("%s: the %g s for all evidence were used up" % (name, TIME_LIMIT))
            continue
        read = bounded.run(command, min(left, _ONE_COMMAND), _SIZE_LIMIT)
        _keep(folder, name, read, missing)
    return missing


def folder_name(unit: str, now: float) -> str:
    """The name of a folder: the unit and the time, so that names sort by time."""
    at = datetime.datetime.fromtimestamp(now, datetime.timezone.utc)
    return "%s-%s" % (unit.replace("/", "_"), at.strftime("%Y%m%dT%H%M%SZ"))


def prune(base: str, unit: str) -> None:
    """Remove all but the newest folders of the unit."""
    prefix = unit.replace("/", "_") + "-"
    try:
        ours = sorted(name for name in os.listdir(base) if name.startswith(prefix))
    except OSError:
        return
    for name in ours[:-KEPT]:
        shutil.rmtree(os.path.join(base, name), ignore_errors=True)


def _commands(unit: str, scope: str, main_pid: int) -> t.Dict[str, t.List[str]]:
    user = ["--user"] if scope == "user" else []
    journal_unit = "--user-unit" if scope == "user" else "--unit"
    commands = {
        "systemctl-show.txt": ["systemctl", *user, "show", "--", unit],
        "journal.txt": ["journalctl", "--no-pager", "--output", "short-iso", "--lines", "200", journal_unit, unit],
        "processes.txt": ["ps", "-eo", "pid,ppid,stat,lstart,time,rss,wchan:24,args", "--forest"],
        "connections.txt": ["ss", "-tanp"],
        "nvidia-smi.txt": ["nvidia-smi"],
        "kernel-xid.txt": gpu.KERNEL_COMMAND,
    }
    if main_pid:
        commands["py-spy.txt"] = ["py-spy", "dump", "--nonblocking", "--pid", str(main_pid), "--subprocesses"]
    return commands


def _write_metrics(folder: str, endpoint: Endpoint, missing: t.List[str]) -> None:
    read = endpoint.get("/metrics", _ONE_COMMAND)
    if isinstance(read, Answer):
        _write(folder, "metrics.prom", read.body[:_SIZE_LIMIT].decode("utf-8", "replace"), missing)
    else:
        missing.append("metrics.prom: %s" % read.detail)


def _keep(folder: str, name: str, read: bounded.Reading, missing: t.List[str]) -> None:
    if isinstance(read, bounded.Unreadable):
        # Not every host has py-spy or a GPU, and no Xid is the usual case.
        if not read.missing and read.why != "ended with code 1":
            missing.append("%s: %s" % (name, read.why))
        return
    lines = (redacting.shown(line, _LINE) for line in read.text.splitlines())
    _write(folder, name, "\n".join(lines) + "\n", missing)


def _write(folder: str, name: str, text: str, missing: t.List[str]) -> None:
    try:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as handle:
            handle.write(text)
    except OSError as error:
        missing.append("%s: %s" % (name, error.strerror))
