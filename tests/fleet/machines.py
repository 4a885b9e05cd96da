"""Booting and ending one container with systemd-nspawn."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from . import groups, network
from .commands import FleetError
from .runs import HostRecord, Run

# Each systemd takes half a dozen of the kernel's 128 (for all of root's processes, in all containers).
_INOTIFY_INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
_INOTIFY_ENOUGH = 2048

# Joins the groups, then leaves the container running on its own: it is nobody's child, so nobody has to collect it.
_LAUNCH = """
log=$1; shift
while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs"; shift; done; shift
setsid "$@" </dev/null >>"$log" 2>&1 &
"""


def make_room() -> None:
    """Let this machine's kernel run many systemds: a limit that is too low is raised until the next reboot."""
    if int(_INOTIFY_INSTANCES.read_text()) < _INOTIFY_ENOUGH:
        _INOTIFY_INSTANCES.write_text(f"{_INOTIFY_ENOUGH}")


def boot(run: Run, host: HostRecord) -> None:
    """Start the container and return at once; its console is written to the log in the run's folder."""
    joined = [str(group) for group in groups.create(host.machine)]
    launch = ["/bin/sh", "-c", _LAUNCH, "launch", str(log(run, host)), *joined, "--"]
    subprocess.run([*launch, *_command(run, host)], check=True)


def await_init(run: Run, host: HostRecord, seconds: float = 30) -> int:
    """The number, on this machine, of the container's init. Raises FleetError with its log if it did not start."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        init = groups.leader(host.machine)
        if init is not None:
            return init
        if not groups.processes(host.machine):
            break
        time.sleep(0.05)
    said = log(run, host).read_text()[-2000:].strip()
    raise FleetError(f"host {host.name} did not start: {said or 'it printed nothing'}")


def end(host: HostRecord) -> None:
    """End the container at once and remove what it leaves on this machine; one that is not there is fine."""
    groups.end(host.machine)
    groups.remove(host.machine)
    # nspawn removes this one itself unless it was killed.
    leftover = Path("/run/systemd/nspawn/propagate", host.machine)
    if leftover.is_dir():
        leftover.rmdir()


def log(run: Run, host: HostRecord) -> Path:
    """The file with what the container's console said."""
    return run.folder / f"{host.name}.log"


def _command(run: Run, host: HostRecord) -> list[str]:
    return [
        "systemd-nspawn",
        "--quiet",
        f"--directory={run.rootfs}",
        "--volatile=overlay",
        "--boot",
        f"--machine={host.machine}",
        f"--hostname={host.name}",
        "--register=no",
        "--keep-unit",
        f"--network-namespace-path={network.namespace(host)}",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        f"--bind-ro={run.key.with_suffix('.pub')}:/etc/ssh/authorized_keys",
        "--console=pipe",
    ]
