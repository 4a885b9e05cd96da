# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading files and the output of commands, bounded in time and size.

Nothing here raises for what the host does: the answer is Text, or Unreadable with the reason in words.
The command line of a process whose driver hangs can block its reader for ever, and so can a file on a
network that is gone: files are therefore read by a thread that is left behind when it does not come back.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import pwd
import queue
import signal
import stat
import subprocess
import threading
import time
import typing as t

FILE_LIMIT = 256 * 1024
"""The most that is read of one file, in bytes."""

OUTPUT_LIMIT = 8 * 1024 * 1024
"""The most that is read of one command's output, in bytes."""

FILE_TIMEOUT = 3.0
"""Seconds that one file may take."""

COMMAND_TIMEOUT = 20.0
"""Seconds that one command may take."""

DIRECTORY_LIMIT = 5000
"""The most entries of one directory that are looked at."""

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass(frozen=True)
class Text:
    """What was read. `cut` says that there is more than the limit allows."""

    text: str
    cut: bool = False


@dataclasses.dataclass(frozen=True)
class Unreadable:
    """What could not be read and why; `missing` where there simply is no such thing."""

    what: str
    why: str
    missing: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


Reading = t.Union[Text, Unreadable]


def read_file(path: str, limit: int = FILE_LIMIT, timeout: float = FILE_TIMEOUT) -> Reading:
    """The text of a regular file (or a file of /proc)."""
    return t.cast(Reading, within(timeout, path, lambda: _read_file(path, limit)))


def read_link(path: str, timeout: float = FILE_TIMEOUT) -> Reading:
    """Where a symbolic link points."""
    return t.cast(Reading, within(timeout, path, lambda: Text(os.readlink(path))))


def list_directory(path: str, files_only: bool = False, timeout: float = FILE_TIMEOUT) -> t.Union[t.List[str], Unreadable]:
    """The names in a directory, sorted; with `files_only` without those of directories."""
    names = within(timeout, path, lambda: _list_directory(path, files_only))
    return t.cast("t.Union[t.List[str], Unreadable]", names)


def run(
    argv: t.Sequence[str],
    timeout: float = COMMAND_TIMEOUT,
    limit: int = OUTPUT_LIMIT,
    uid: t.Optional[int] = None,
) -> Reading:
    """The standard output of a command that reads.

    With `uid` it runs as that user and talks to that user's systemd. What has been printed by the time
    the limits are reached is returned as cut. A command that fails is Unreadable unless it printed something.
    """
    what = " ".join(argv[:2])
    try:
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
            **_identity(uid),
        )
    except FileNotFoundError:
        return Unreadable(what, "no such command", missing=True)
    except (OSError, KeyError, subprocess.SubprocessError) as error:
        return Unreadable(what, _words(error))
    return _collect(process, what, time.monotonic() + timeout, limit)


def _identity(uid: t.Optional[int]) -> t.Dict[str, t.Any]:
    """How to start a command as another user; the environment holds nothing but what systemctl needs."""
    own = os.geteuid()
    user = own if uid is None else uid
    environment = {
        "PATH": _PATH,
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "SYSTEMD_COLORS": "0",
        "SYSTEMD_PAGER": "",
        "XDG_RUNTIME_DIR": f"/run/user/{user}",
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path=/run/user/{user}/bus",
    }
    if user == own:
        return {"env": environment}
    group = pwd.getpwuid(user).pw_gid
    return {"env": environment, "user": user, "group": group, "extra_groups": []}


def _collect(process: subprocess.Popen[bytes], what: str, deadline: float, limit: int) -> Reading:
    chunks: queue.Queue[t.Optional[bytes]] = queue.Queue(maxsize=64)
    errors: t.List[bytes] = []
    threading.Thread(target=_pump, args=(process.stdout, chunks), daemon=True).start()
    listener = threading.Thread(target=lambda: errors.append(_head(process.stderr)), daemon=True)
    listener.start()
    taken, size, late = [], 0, False
    while size <= limit:
        try:
            chunk = chunks.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            late = True
            break
        if chunk is None:
            break
        taken.append(chunk)
        size += len(chunk)
    cut = late or size > limit
    code = _end(process, cut, deadline)
    text = b"".join(taken)[:limit].decode("utf-8", "replace")
    if late and not text:
        return Unreadable(what, "no answer in time")
    if code and not cut and not text.strip():
        listener.join(1.0)
        said = b"".join(errors).decode("utf-8", "replace").strip().splitlines()
        return Unreadable(what, said[0][:200] if said else f"ended with code {code}")
    return Text(text, cut)


def _pump(stream: t.Any, chunks: queue.Queue[t.Optional[bytes]]) -> None:
    while True:
        chunk = stream.read1(65536)
        chunks.put(chunk or None)
        if not chunk:
            return


def _head(stream: t.Any) -> bytes:
    kept: bytes = stream.read(4096)
    while stream.read(65536):
        pass
    return kept


def _end(process: subprocess.Popen[bytes], kill: bool, deadline: float) -> int:
    """Reap the command; one that is too long or too late is killed with all it started."""
    try:
        if not kill:
            return process.wait(timeout=max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait(timeout=2.0)
    except (ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
        return -1


def _read_file(path: str, limit: int) -> Reading:
    # O_NONBLOCK: opening a named pipe must not wait for somebody to write into it.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return Unreadable(path, "not a regular file")
        parts, size = [], 0
        while size <= limit:
            part = os.read(handle, min(65536, limit + 1 - size))
            if not part:
                break
            parts.append(part)
            size += len(part)
    finally:
        os.close(handle)
    return Text(b"".join(parts)[:limit].decode("utf-8", "replace"), cut=size > limit)


def _list_directory(path: str, files_only: bool) -> t.List[str]:
    names: t.List[str] = []
    with os.scandir(path) as entries:
        for entry in entries:
            if files_only and entry.is_dir():
                continue
            names.append(entry.name)
            if len(names) >= DIRECTORY_LIMIT:
                break
    return sorted(names)


class _Reader:
    """One thread that does what it is handed; left behind when a job does not come back."""

    def __init__(self) -> None:
        self.jobs: queue.Queue[t.Callable[[], object]] = queue.Queue()
        self.results: queue.Queue[object] = queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            job = self.jobs.get()
            try:
                self.results.put(job())
            except OSError as error:
                self.results.put(error)


_readers: t.List[_Reader] = []


def within(timeout: float, what: str, job: t.Callable[[], object]) -> object:
    """What the job returns, or Unreadable when it raises OSError or is not done within so many seconds."""
    reader = _readers.pop() if _readers else _Reader()
    reader.jobs.put(job)
    try:
        result = reader.results.get(timeout=timeout)
    except queue.Empty:
        return Unreadable(what, f"no answer within {timeout:g} s")
    _readers.append(reader)
    if isinstance(result, OSError):
        return Unreadable(what, _words(result), missing=_is_missing(result))
    return result


def _is_missing(error: OSError) -> bool:
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESRCH)


def _words(error: BaseException) -> str:
    if isinstance(error, PermissionError):
        return "not permitted"
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return str(error)
