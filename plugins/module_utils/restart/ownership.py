# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the unit runs the server that was judged.

An inventory can name the unit of one server beside the URL of another; then a healthy server would be restarted for one
that hangs.
"""

from __future__ import annotations

import os
import socket
import typing as t
import urllib.parse

from .. import bounded, reading, vllm_api
from ..discovery import addresses, processes, survey

TIME_LIMIT = 10.0
"""Seconds for looking at the open files of all processes."""

ANSWER_WITHIN = 2.0
"""Seconds that each other port of the unit gets to show vLLM's metrics."""

_MOST_PORTS = 16

_EVERY_ADDRESS = ("0.0.0.0", "::")

# What listens for a container is the container engine; the unit that started it is another one.
_ENGINES = ("docker.service", "containerd.service", "podman.service", "snap.docker.dockerd.service")


def objection(url: str, unit: str, scope: str, proc: str = "/proc") -> t.Optional[str]:
    """Why the server at the URL is not the unit's, as a sentence, or None.

    Nothing is said of a port that no unit of this host is seen to hold: a container engine may hold it.
    """
    parts = urllib.parse.urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    own = _addresses(parts.hostname or "")
    if own and not any(survey.local_address(address) for address in own):
        return "%s is no address of this host, so what answers there is not %s" % (parts.hostname, unit)
    found = bounded.within(TIME_LIMIT, proc, lambda: _holders(port, own, proc))
    holders = [] if isinstance(found, bounded.Unreadable) else t.cast("t.List[processes.Home]", found)
    wanted = _home_of(unit, scope)
    others = sorted({t.cast(str, home.unit) for home in holders if home.unit not in _ENGINES})
    if wanted in holders or not others:
        return None
    return "port %d of this host belongs to %s, not to %s" % (port, ", ".join(others), unit)


def elsewhere(server: vllm_api.Server, unit: str, proc: str = "/proc") -> t.Optional[str]:
    """Where the unit serves vLLM, as a sentence, if there is none at the server's own address; None if nowhere.

    A wrong port in the inventory makes a server that works look dead.
    """
    if _shows_vllm(server.endpoint.url):
        return None
    wanted = _home_of(unit, server.scope)
    found = bounded.within(TIME_LIMIT, proc, lambda: _places(wanted, proc))
    places = [] if isinstance(found, bounded.Unreadable) else t.cast("t.List[str]", found)
    parts = urllib.parse.urlsplit(server.endpoint.url)
    urls = (urllib.parse.urlunsplit(parts._replace(netloc=place)) for place in places[:_MOST_PORTS])
    url = next((url for url in urls if _shows_vllm(url)), None)
    return None if url is None else "%s serves vLLM at %s, so the address is wrong and not the server" % (unit, url)


def _home_of(unit: str, scope: str) -> processes.Home:
    return processes.Home(unit, os.getuid() if scope == "user" else None)


def _shows_vllm(url: str) -> bool:
    # Without the key, and whatever the certificate: this may be anything.
    server = vllm_api.Server(reading.Endpoint(url, verify=False), timeout=ANSWER_WITHIN)
    look = vllm_api.look_at_backend(server, front=False, earlier=2)
    return look.page is not None and look.page.is_vllm


def _addresses(host: str) -> t.FrozenSet[str]:
    """The addresses that a host of a URL stands for; empty where they cannot be known."""
    found = bounded.within(bounded.FILE_TIMEOUT, host, lambda: socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM))
    if isinstance(found, bounded.Unreadable):
        return frozenset()
    return frozenset(str(one[4][0]) for one in t.cast("t.List[t.Any]", found))


def _places(wanted: processes.Home, proc: str) -> t.List[str]:
    """Where processes of the unit listen, as in a URL: address and port."""
    places = {
        listener.inode: "%s:%d" % (addresses.bracketed(addresses.reachable(listener.address)), listener.port)
        for listener in _listeners(proc)
    }
    pids = [name for name in os.listdir(proc) if name.isdigit()] if places else []
    inodes = [
        _sockets("%s/%s/fd" % (proc, pid)) & places.keys()
        for pid in pids
        if _home("%s/%s" % (proc, pid)) == wanted
    ]
    return sorted({places[inode] for inode in set().union(*inodes)})


def _holders(port: int, own: t.FrozenSet[str], proc: str) -> t.List[processes.Home]:
    """The units whose processes listen on the port, at one of the URL's own addresses where these are known."""
    listeners = [listener for listener in _listeners(proc) if listener.port == port]
    inodes = {one.inode for one in listeners if not own or one.address in (*_EVERY_ADDRESS, *own)}
    pids = [name for name in os.listdir(proc) if name.isdigit()] if inodes else []
    homes = [_home("%s/%s" % (proc, pid)) for pid in pids if inodes & _sockets("%s/%s/fd" % (proc, pid))]
    return [home for home in homes if home.unit is not None]


def _listeners(proc: str) -> t.List[processes.Listener]:
    tables = [_text("%s/net/%s" % (proc, name)) for name in ("tcp", "tcp6")]
    return [listener for table in tables for listener in processes.listeners(table)]


def _sockets(folder: str) -> t.Set[int]:
    try:
        links = ["%s/%s" % (folder, name) for name in os.listdir(folder)]
    except OSError:
        return set()  # it has ended, or is another user's
    return {inode for inode in map(_inode, links) if inode is not None}


def _inode(link: str) -> t.Optional[int]:
    try:
        return processes.socket_inode(os.readlink(link))
    except OSError:
        return None  # a connection that has ended meanwhile


def _home(process: str) -> processes.Home:
    found = processes.home(processes.systemd_path(_text(process + "/cgroup")))
    return processes.Home(found.unit, found.uid)  # a container of a unit counts as the unit's


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
