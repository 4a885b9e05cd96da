"""A whole run: hosts up, hosts found again, hosts down and nothing left."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from . import inventory, keys, machines, network, rootfs, runs
from .commands import FleetError
from .hosts import Host
from .runs import HostRecord, Process, Run


def up(folder: Path, names: Sequence[str], owner: Process | None = None) -> dict[str, Host]:
    """Boot hosts with these names, keep their state in ``folder``, and return them when all can be reached.

    Hosts that an earlier run left in the same folder are taken down first, and so are those of runs whose owner has
    ended: with an owner, anybody may take the hosts down once that process is gone. Nothing stays if booting fails.
    """
    rootfs.ensure_tools()
    machines.make_room()
    root = rootfs.ensure()
    folder = folder.resolve()
    down(folder)
    sweep()
    run = _prepare(folder, root, names, owner)
    try:
        for host in run.hosts:
            network.create(host)
            machines.boot(run, host)
        hosts = _hosts(run)
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(Host.await_boot, hosts.values()))
    except BaseException:
        _take_down(run)
        raise
    return hosts


def find(folder: Path) -> dict[str, Host]:
    """The hosts that were booted with this folder. Raises FleetError where there are none."""
    run = runs.load(folder.resolve())
    if run is None:
        raise FleetError(f"no hosts are up in {folder}")
    return _hosts(run)


def down(folder: Path) -> bool:
    """Take down the hosts of this folder and all that was made for them, but logs and inventory. False without any."""
    run = runs.load(folder.resolve())
    if run is None:
        return False
    _take_down(run)
    return True


def sweep() -> list[str]:
    """Take down every run on this machine that nobody can want any more, and name them."""
    with runs.locked():  # two sweeps at once would trip over each other
        abandoned = [run for run in runs.known() if run.abandoned]
        for run in abandoned:
            _take_down(run)
    return [run.id for run in abandoned]


@contextmanager
def fleet(folder: Path, names: Sequence[str]) -> Iterator[dict[str, Host]]:
    """Hosts for the length of a ``with`` block; should this process be killed, the next run here removes them."""
    hosts = up(folder, names, owner=runs.own_process())
    try:
        yield hosts
    finally:
        down(folder)


def _prepare(folder: Path, root: Path, names: Sequence[str], owner: Process | None) -> Run:
    """Choose what everything is called, and write it down before anything exists."""
    shutil.rmtree(folder / "inventory", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(secrets.token_hex(3), folder, root, owner)
    with runs.locked():
        taken = [host.address for other in runs.known() for host in other.hosts]
        pairs = islice(network.free_pairs(taken), len(names))
        run.hosts = [
            _name(run, number, name, pair) for number, (name, pair) in enumerate(zip(names, pairs, strict=True), 1)
        ]
        runs.save(run)
    run.sockets.mkdir(mode=0o700)
    keys.create(run)
    keys.trust(run)
    inventory.write(run)
    return run


def _name(run: Run, number: int, name: str, pair: tuple[str, str]) -> HostRecord:
    gateway, address = pair
    return HostRecord(name, address, gateway, machine=f"fleet-{run.id}-{name}", link=f"fl{run.id}-{number}")


def _take_down(run: Run) -> None:
    keys.close_shared(run)
    with ThreadPoolExecutor(max(1, len(run.hosts))) as pool:
        list(pool.map(machines.end, run.hosts))
    for host in run.hosts:
        network.remove(host)
    runs.forget(run)


def _hosts(run: Run) -> dict[str, Host]:
    return {record.name: Host(run, record) for record in run.hosts}
