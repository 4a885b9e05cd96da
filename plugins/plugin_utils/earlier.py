# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Earlier reports from a folder, each checked before a word of it is believed."""

from __future__ import annotations

import json
import os
import pathlib
import typing as t

SCHEMA = 1
NEWEST = 30
"""So many reports are read, the newest by the time their file was written."""
MOST_BYTES = 8 * 1024 * 1024
"""A larger file is no report: a thousand servers take about one."""


class NotReadable(ValueError):
    """A file that is no report of this schema; the message says why."""


def earlier_reports(folder: pathlib.Path) -> t.Dict[str, t.Any]:
    """The reports among the JSON files of a folder, oldest file first, and the files left out, with the reason.

    A folder that does not exist holds none. Raises OSError where it cannot be listed.
    """
    reports, left_out = [], []
    for path in _newest(folder):
        try:
            reports.append(_report(path))
        except NotReadable as error:
            left_out.append({"file": path.name, "why": str(error)})
    return {"reports": reports, "left_out": left_out}


def _newest(folder: pathlib.Path) -> t.List[pathlib.Path]:
    if not folder.exists():
        return []
    with os.scandir(folder) as entries:
        # No links: a folder that others may write to must not lead elsewhere.
        files = [entry for entry in entries if entry.name.endswith(".json") and entry.is_file(follow_symlinks=False)]
        dated = sorted((_written(entry), entry.path) for entry in files)
    return [pathlib.Path(path) for _time, path in dated[-NEWEST:]]


def _written(entry: "os.DirEntry[str]") -> float:
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0  # another run has just removed it


def _report(path: pathlib.Path) -> t.Dict[str, t.Any]:
    data = _json(path)
    if not isinstance(data, dict) or "schema" not in data:
        raise NotReadable("it is no report of a fleet")
    if data["schema"] != SCHEMA:
        raise NotReadable("its schema is %r, not %d" % (data["schema"], SCHEMA))
    checked_at, rows = data.get("checked_at"), data.get("servers")
    if not isinstance(checked_at, str) or not isinstance(rows, list):
        raise NotReadable("it lacks checked_at or servers")
    return {"checked_at": checked_at, "servers": [_row(row) for row in rows]}


def _json(path: pathlib.Path) -> t.Any:
    try:
        with path.open("rb") as file:
            body = file.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise NotReadable("it is larger than %d MiB" % (MOST_BYTES >> 20))
        return json.loads(body)
    except OSError as error:
        raise NotReadable("it cannot be read: %s" % error.strerror) from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, NotReadable):
            raise
        raise NotReadable("it is no JSON") from error


def _row(row: t.Any) -> t.Dict[str, str]:
    """Which server, and the verdict that held at the end of that run."""
    if not isinstance(row, dict):
        raise NotReadable("one of its servers is no server")
    host, name, verdict = row.get("host"), row.get("name"), row.get("verdict_after") or row.get("verdict")
    if not (isinstance(host, str) and isinstance(name, str) and isinstance(verdict, str)):
        raise NotReadable("one of its servers has no host, name or verdict")
    return {"host": host, "name": name, "verdict": verdict}
