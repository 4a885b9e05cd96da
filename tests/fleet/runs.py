"""What is written down about each run, so that its hosts can be taken down by anyone, at any time, even after a crash.

The record of a run lies in /run (it ends with the machine, as the hosts do); the run's own folder holds a link to it.
It is written before anything is created, and every name in it is derived from the run, so it never lags behind.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .commands import FleetError

REGISTRY = Path("/run/fleetcheck-fleet")


@dataclass(frozen=True)
class Process:
    """A process that cannot be mistaken for a later one with the same number."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Process:
        """The process that has this number now. Raises FleetError if there is none."""
        started = _start_time(pid)
        if started is None:
            raise FleetError(f"there is no process {pid}")
        return cls(pid, started)

    @property
    def alive(self) -> bool:
        return _start_time(self.pid) == self.started


@dataclass
class HostRecord:
    """One host: the name tests use, and what it is called on this machine."""

    name: str
    address: str
    gateway: str
    machine: str  # also the name of its network namespace and its control group
    link: str  # the end of its cable on this machine


@dataclass
class Run:
    """One set of hosts that live and end together."""

    id: str
    folder: Path
    rootfs: Path
    owner: Process | None = None
    hosts: list[HostRecord] = field(default_factory=list)

    @property
    def key(self) -> Path:
        return self.folder / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def sockets(self) -> Path:
        """Where shared SSH connections live: a short path, since a socket's may have no more than 107 characters."""
        return REGISTRY / f"{self.id}.ssh"

    @property
    def record(self) -> Path:
        return REGISTRY / f"{self.id}.json"

    @property
    def abandoned(self) -> bool:
        """True when nobody can want these hosts any more: their owner ended, or their folder was deleted."""
        return not self.folder.is_dir() or (self.owner is not None and not self.owner.alive)


def save(run: Run) -> None:
    """Write the run's record, at once and whole, and link it into the run's folder."""
    text = json.dumps(asdict(run) | {"folder": str(run.folder), "rootfs": str(run.rootfs)}, indent=2)
    aside = run.record.with_suffix(".new")
    aside.write_text(text)
    aside.replace(run.record)
    link = run.folder / "state.json"
    link.unlink(missing_ok=True)
    link.symlink_to(run.record)


def forget(run: Run) -> None:
    """Remove the record: the last step of taking a run down."""
    (run.folder / "state.json").unlink(missing_ok=True)
    run.record.unlink(missing_ok=True)


def load(folder: Path) -> Run | None:
    """The run whose hosts are kept in this folder, or None where there is none."""
    return _read(folder / "state.json")


def known() -> list[Run]:
    """Every run on this machine that has not been taken down."""
    found = (_read(path) for path in sorted(REGISTRY.glob("*.json")))
    return [run for run in found if run is not None]


@contextmanager
def locked() -> Iterator[None]:
    """Hold the machine's lock for choosing names and addresses, so that two runs never choose the same."""
    REGISTRY.mkdir(mode=0o755, exist_ok=True)
    with (REGISTRY / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read(path: Path) -> Run | None:
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    owner = content["owner"]
    return Run(
        id=content["id"],
        folder=Path(content["folder"]),
        rootfs=Path(content["rootfs"]),
        owner=Process(**owner) if owner else None,
        hosts=[HostRecord(**host) for host in content["hosts"]],
    )


def _start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot (field 22 of /proc/PID/stat); None for one that has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else int(fields[18])


def own_process() -> Process:
    """The process that asks."""
    return Process.of(os.getpid())
