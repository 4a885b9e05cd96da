# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What /proc says: processes, the units they belong to, and the sockets they listen on."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import struct
import typing as t

_LISTENING = "0A"


@dataclasses.dataclass(frozen=True)
class Process:
    """One process. `argv` is None where its command line could not be read."""

    pid: int
    parent: int
    comm: str
    argv: t.Optional[t.Tuple[str, ...]]
    cgroup: str = ""
    uid: t.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Listener:
    """A TCP socket that accepts connections."""

    address: str
    port: int
    inode: int


@dataclasses.dataclass(frozen=True)
class Home:
    """Where a process lives: the unit systemd started it in, or the container it runs in."""

    unit: t.Optional[str] = None
    uid: t.Optional[int] = None
    container: t.Optional[str] = None


def process(pid: int, stat: str, cmdline: t.Optional[str], cgroup: str = "", status: str = "") -> t.Optional[Process]:
    """A process from the text of its files in /proc; None where the first of them makes no sense."""
    # The name in brackets may hold brackets and spaces itself: the last closing one counts.
    match = re.match(r"\d+ \((.*)\) \S+ (\d+) ", stat, re.DOTALL)
    if not match:
        return None
    owner = re.search(r"^Uid:\s+\d+\s+(\d+)", status, re.MULTILINE)
    return Process(
        pid=pid,
        parent=int(match.group(2)),
        comm=match.group(1),
        argv=None if cmdline is None else argv(cmdline),
        cgroup=systemd_path(cgroup),
        uid=int(owner.group(1)) if owner else None,
    )


def argv(cmdline: str) -> t.Tuple[str, ...]:
    """The words of /proc/PID/cmdline, which ends each with a zero byte."""
    return tuple(cmdline[:-1].split("\0")) if cmdline.endswith("\0") else tuple(cmdline.split("\0"))


def variable_names(environ: str) -> t.FrozenSet[str]:
    """The names of the variables set to something in /proc/PID/environ; never their values."""
    names = (pair.partition("=") for pair in environ.split("\0"))
    return frozenset(name for name, _equals, value in names if value)


def systemd_path(cgroup: str) -> str:
    """The path in systemd's own hierarchy, from /proc/PID/cgroup: version 2, or `name=systemd` of version 1."""
    paths = {}
    for line in cgroup.splitlines():
        _number, _colon, rest = line.partition(":")
        controllers, _colon, path = rest.partition(":")
        paths[controllers] = path
    return paths.get("name=systemd") or paths.get("", "")


def home(cgroup: str) -> Home:
    """The unit a control group belongs to. Below user@1000.service it is a unit of that user's own manager."""
    parts = [_unescaped(part) for part in cgroup.split("/") if part]
    container = _container(parts)
    uid: t.Optional[int] = None
    unit: t.Optional[str] = None
    for part in parts:
        manager = re.fullmatch(r"user@(\d+)\.service", part)
        if manager:
            uid = int(manager.group(1))
        elif part.endswith(".service") and unit is None:
            unit = part
    return Home(unit=unit, uid=uid if unit else None, container=container)


def _container(parts: t.Sequence[str]) -> t.Optional[str]:
    for part in reversed(parts):
        match = re.search(r"(?:^|[-_:])([0-9a-f]{64})(?:\.scope)?\Z", part)
        if match:
            return match.group(1)
    return None


def _unescaped(part: str) -> str:
    # The kernel's own file names in a control group are kept apart with a leading underscore.
    return part[1:] if part.startswith("_") else part


def listeners(table: str) -> t.List[Listener]:
    """The listening sockets in the text of /proc/net/tcp or tcp6."""
    found = []
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 10 or fields[3] != _LISTENING or not fields[9].isdigit():
            continue
        address, _colon, port = fields[1].partition(":")
        text = _address(address)
        if text and re.fullmatch(r"[0-9A-F]{4}", port):
            found.append(Listener(text, int(port, 16), int(fields[9])))
    return found


def _address(digits: str) -> t.Optional[str]:
    # Words of 32 bits in the byte order of the machine; everything that runs vLLM is little-endian.
    if not re.fullmatch(r"(?:[0-9A-F]{8}){1,4}", digits):
        return None
    numbers = [int(digits[start : start + 8], 16) for start in range(0, len(digits), 8)]
    raw = struct.pack(f"<{len(numbers)}I", *numbers)
    if len(raw) not in (4, 16):
        return None
    address = ipaddress.ip_address(raw)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def socket_inode(link: str) -> t.Optional[int]:
    """The inode in `socket:[12345]`, as a link in /proc/PID/fd reads."""
    match = re.fullmatch(r"socket:\[(\d+)\]", link)
    return int(match.group(1)) if match else None
