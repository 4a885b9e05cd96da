"""A network for each host: a namespace, and a cable (a veth pair) with two addresses between it and this machine."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from .commands import FleetError, run
from .runs import HostRecord

RANGE = ipaddress.IPv4Network("10.77.0.0/16")
INSIDE = "eth0"


def free_pairs(taken: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs (address of this machine, address of the host) that neither this machine nor a run in ``taken`` uses."""
    used = [*_routed(), *(ipaddress.IPv4Network(f"{address}/30", strict=False) for address in taken)]
    for cable in RANGE.subnets(new_prefix=30):
        if not any(cable.overlaps(other) for other in used):
            ours, theirs = cable.hosts()
            yield str(ours), str(theirs)
    raise FleetError(f"no address is left in {RANGE} for a test host")


def create(host: HostRecord) -> None:
    """Make the namespace, the cable and the addresses of one host."""
    run(["ip", "netns", "add", host.machine])
    run(["ip", "link", "add", host.link, "type", "veth", "peer", "name", INSIDE, "netns", host.machine])
    run(["ip", "address", "add", f"{host.gateway}/30", "dev", host.link])
    run(["ip", "link", "set", host.link, "up"])
    _inside(host, "address", "add", f"{host.address}/30", "dev", INSIDE)
    _inside(host, "link", "set", "lo", "up")
    _inside(host, "link", "set", INSIDE, "up")
    _inside(host, "route", "add", "default", "via", host.gateway)


def remove(host: HostRecord) -> None:
    """Remove what `create` made; what is not there is fine. The cable goes with its namespace."""
    if namespace(host).exists():
        run(["ip", "netns", "delete", host.machine])
    if Path("/sys/class/net", host.link).exists():
        run(["ip", "link", "delete", host.link], check=False)


def cut(host: HostRecord) -> None:
    """Pull the cable: packets vanish, no connection is told."""
    run(["ip", "link", "set", host.link, "down"])


def mend(host: HostRecord) -> None:
    """Plug the cable in again."""
    run(["ip", "link", "set", host.link, "up"])


def namespace(host: HostRecord) -> Path:
    """The file that stands for the host's network namespace."""
    return Path("/run/netns", host.machine)


def _inside(host: HostRecord, *arguments: str) -> None:
    run(["ip", "-netns", host.machine, *arguments])


def _routed() -> Iterator[ipaddress.IPv4Network]:
    """Networks within our range that this machine already has a way to."""
    routes = json.loads(run(["ip", "-json", "-4", "route", "show", "table", "all"]).stdout or "[]")
    for route in routes:
        if route["dst"] == "default":
            continue
        network = ipaddress.IPv4Network(route["dst"], strict=False)
        if network.subnet_of(RANGE):
            yield network
