"""A control group for each host: it keeps the services of two hosts apart, and knows every process of a host.

Without one of its own, all hosts would share the group ``system.slice/vllm.service``, and a stop on one host would wait
for the processes of another.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def create(name: str) -> list[Path]:
    """Make the group in every hierarchy that systemd uses (one with cgroup v2, two on mixed machines); their paths."""
    groups = [mount / name for mount in _hierarchies()]
    for group in groups:
        group.mkdir(exist_ok=True)
    return groups


def processes(name: str) -> set[int]:
    """The numbers of all processes in the group and below it."""
    found: set[int] = set()
    for folder in _folders(name):
        try:
            found.update(int(line) for line in (folder / "cgroup.procs").read_text().split())
        except (FileNotFoundError, OSError):  # the group went away, as empty ones do while a host ends
            continue
    return found - {0}


def leader(name: str) -> int | None:
    """The host's own init: the process that is number 1 in a namespace one below this one. None before it started."""
    for pid in processes(name):
        if _numbers(pid)[1:] == ["1"]:
            return pid
    return None


def end(name: str, patience: float = 10) -> None:
    """End all processes of the group at once.

    The host's init comes first: with it the kernel ends everything inside, and nspawn tidies up after itself.
    """
    init = leader(name)
    if init is not None:
        _kill(init)
        _await_end(name, patience)
    for pid in processes(name):
        _kill(pid)
    _await_end(name, patience)


def remove(name: str) -> None:
    """Remove the empty group."""
    for folder in sorted(_folders(name), key=lambda path: len(path.parts), reverse=True):
        folder.rmdir()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _await_end(name: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while processes(name) and time.monotonic() < deadline:
        time.sleep(0.05)


def _numbers(pid: int) -> list[str]:
    """The process's number in each process namespace it is in, this one's first."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return next(line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:"))


def _folders(name: str) -> list[Path]:
    return [folder for mount in _hierarchies() if (mount / name).is_dir() for folder in _walk(mount / name)]


def _walk(folder: Path) -> Iterator[Path]:
    for path, _, _ in os.walk(folder):
        yield Path(path)


def _hierarchies() -> list[Path]:
    """Where the hierarchies that systemd uses are mounted: cgroup v2, and v1's ``name=systemd``."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        filesystem, _, options = kind.split(" ", 2)
        if filesystem == "cgroup2" or (filesystem == "cgroup" and "name=systemd" in options):
            found.append(Path(mount.split()[4]))
    return found
