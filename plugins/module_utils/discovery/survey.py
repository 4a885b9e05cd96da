# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a host for its vLLM servers: /proc, systemd, docker. It never asks a server anything."""

from __future__ import annotations

import os
import re
import socket
import typing as t

from .. import bounded
from . import commandline, containers, finding, processes, scripts, units

_SYSTEM_FOLDERS = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/lib/", "/usr/lib/")
_MOST_NOTES = 8


class Survey:
    """One look at the host. `notes` holds a sentence for everything that could not be read."""

    def __init__(self) -> None:
        self.uid = os.geteuid()
        self.notes: t.List[str] = []
        self._namespaces: t.Dict[str, t.List[processes.Listener]] = {}

    def host(self) -> finding.Host:
        """All that finding needs."""
        running = self._processes()
        candidates = tuple(finding.candidates(running))
        services = tuple(self._services())
        return finding.Host(
            uid=self.uid,
            candidates=candidates,
            evidence={candidate.process.pid: self._evidence(candidate) for candidate in candidates},
            services=services,
            listed=tuple(self._listed(candidates)),
            scripts=self._scripts(services),
            environment_files=self._environment_files(services),
            configurations=self._configurations(services),
            user_names=user_names(),
        )

    def _processes(self) -> t.List[processes.Process]:
        """Every process that is there to be seen."""
        names = bounded.list_directory("/proc")
        if isinstance(names, bounded.Unreadable):
            self.notes.append(f"no process could be looked at: {names}")
            return []
        self._note_hidden()
        found, blocked = [], []
        for name in names:
            if not name.isdigit():
                continue
            process = self._process(int(name))
            if process and process.argv is None:
                unit = processes.home(process.cgroup).unit
                blocked.append(f"{process.pid} ({process.comm}{', ' + unit if unit else ''})")
            if process:
                found.append(process)
        if blocked:
            more = f" and {len(blocked) - _MOST_NOTES} more" if len(blocked) > _MOST_NOTES else ""
            self.notes.append("the command line of these processes could not be read: " + ", ".join(blocked[:_MOST_NOTES]) + more)
        return found

    def _services(self) -> t.List[units.Service]:
        """The services of the system and of the users whose managers may be asked."""
        found = self._managed(None)
        for uid in managers(self.uid):
            found += self._managed(uid)
        return found

    def _managed(self, uid: t.Optional[int]) -> t.List[units.Service]:
        answer = systemctl(uid, "show", "*.service", "--all", "--property=" + units.SHOWN)
        if isinstance(answer, bounded.Unreadable) and uid is not None and uid not in managers(self.uid):
            # A user's manager ends soon after the last session of the user, and its units with it.
            return []
        if isinstance(answer, bounded.Unreadable):
            whose = "the system" if uid is None else f"the user with the number {uid}"
            self.notes.append(f"the services of {whose} could not be listed: {answer.why}")
            return []
        return units.services(answer.text, uid)

    def _note_hidden(self) -> None:
        mounts = bounded.read_file("/proc/self/mountinfo")
        hidden = isinstance(mounts, bounded.Text) and re.search(r" /proc .*hidepid=(?:1|2|invisible|noaccess)", mounts.text)
        if self.uid != 0 and hidden:
            self.notes.append("/proc is mounted with hidepid: processes of other users cannot be seen without root")

    def _process(self, pid: int) -> t.Optional[processes.Process]:
        folder = f"/proc/{pid}"
        stat = _text(folder + "/stat")
        if stat is None:
            return None
        cmdline = bounded.read_file(folder + "/cmdline")
        if isinstance(cmdline, bounded.Unreadable):
            if cmdline.missing:
                return None
            return processes.process(pid, stat, None, _text(folder + "/cgroup") or "")
        found = processes.process(pid, stat, cmdline.text)
        if found and found.argv and commandline.recognise(found.argv):
            # These two are read for few processes only: most of the time goes into opening files.
            cgroup, status = _text(folder + "/cgroup") or "", _text(folder + "/status") or ""
            return processes.process(pid, stat, cmdline.text, cgroup, status)
        return found

    def _evidence(self, candidate: finding.Candidate) -> finding.Evidence:
        folder = f"/proc/{candidate.process.pid}"
        serving = commandline.read_arguments(candidate.command.arguments)
        environ = _text(folder + "/environ")
        network = bounded.read_link(folder + "/ns/net")
        own = bounded.read_link("/proc/self/ns/net")
        elsewhere = None
        if isinstance(network, bounded.Text) and isinstance(own, bounded.Text):
            elsewhere = network.text != own.text
        return finding.Evidence(
            variables=None if environ is None else processes.variable_names(environ),
            listeners=self._listeners(candidate),
            own_network=elsewhere,
            interpreter=_interpreter(candidate, folder),
            configuration=_configuration(serving.config, folder),
            local_host=local_address(serving.host),
        )

    def _listeners(self, candidate: finding.Candidate) -> t.Optional[t.Tuple[processes.Listener, ...]]:
        inodes = set()
        for pid in sorted(candidate.tree):
            names = bounded.list_directory(f"/proc/{pid}/fd")
            if isinstance(names, bounded.Unreadable):
                if names.missing:
                    continue
                return None
            for name in names:
                link = bounded.read_link(f"/proc/{pid}/fd/{name}")
                inode = processes.socket_inode(link.text) if isinstance(link, bounded.Text) else None
                inodes.add(inode)
        tables = [bounded.read_file(f"/proc/{candidate.process.pid}/net/{name}", 4 << 20) for name in ("tcp", "tcp6")]
        listeners = [
            listener for table in tables if isinstance(table, bounded.Text) for listener in processes.listeners(table.text)
        ]
        return tuple(listener for listener in listeners if listener.inode in inodes)

    def _listed(self, candidates: t.Sequence[finding.Candidate]) -> t.List[containers.Listed]:
        if not any(candidate.home.container for candidate in candidates):
            return []
        answer = bounded.run(["docker", "ps", "--no-trunc", "--format", "{{json .}}"])
        if isinstance(answer, bounded.Text):
            return containers.listed(answer.text)
        if not answer.missing:
            self.notes.append(f"the running containers could not be listed: {answer.why}")
        return []

    def _scripts(self, services: t.Sequence[units.Service]) -> t.Dict[str, str]:
        """What services that should run but do not are started with."""
        read = {}
        for service in services:
            if service.active_state == "active" or not (service.wanted or service.running):
                continue
            for path in {word for argv in service.commands for word in scripts.programs(argv)}:
                if path.startswith("/") and not path.startswith(_SYSTEM_FOLDERS):
                    text = _text(path)
                    if text and text.startswith("#!"):
                        read[path] = text
        return read

    def _environment_files(self, services: t.Sequence[units.Service]) -> t.Dict[str, str]:
        paths = {path for service in services if _mentions_vllm(service) for path in service.environment_files}
        return {path: _text(path) or "" for path in paths}

    def _configurations(self, services: t.Sequence[units.Service]) -> t.Dict[str, str]:
        read = {}
        for service in services:
            for argv in service.commands:
                command = commandline.recognise_within(argv)
                path = commandline.read_arguments(command.arguments).config if command else None
                if path and path.startswith("/"):
                    read[path] = _text(path) or ""
        return read


def systemctl(uid: t.Optional[int], *arguments: str) -> bounded.Reading:
    """Ask the system's manager, or that of a user."""
    if uid is None:
        return bounded.run(["systemctl", "--system", "--no-pager", *arguments])
    return bounded.run(["systemctl", "--user", "--no-pager", *arguments], uid=uid)


def managers(uid: int) -> t.List[int]:
    """The users with a running manager of their own that this user may ask: all for root, else only itself."""
    names = bounded.list_directory("/run/user")
    if isinstance(names, bounded.Unreadable):
        return []
    there = [int(name) for name in names if name.isdigit() and os.path.exists(f"/run/user/{name}/systemd/private")]
    return [number for number in there if uid in (0, number)]


def user_names() -> t.Dict[int, str]:
    """The users of /etc/passwd. Names kept elsewhere stay numbers: a directory service may not answer."""
    found = {}
    for line in (_text("/etc/passwd") or "").splitlines():
        fields = line.split(":")
        if len(fields) > 2 and fields[2].isdigit():
            found[int(fields[2])] = fields[0]
    return found


def local_address(host: t.Optional[str]) -> t.Optional[str]:
    """The address of this host that `host` stands for, None if it is not one of its own."""
    if not host:
        return None
    # Only an address of its own can be bound to; port 0 takes nothing away from anybody.
    answer = bounded.within(bounded.FILE_TIMEOUT, host[:64], lambda: _bound(host[:255]))
    return answer if isinstance(answer, str) else None


def _bound(host: str) -> t.Optional[str]:
    found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    # vLLM binds a name as IPv4.
    for family, kind, _protocol, _name, address in sorted(found, key=lambda one: one[0] != socket.AF_INET):
        with socket.socket(family, kind) as probe:
            try:
                probe.bind(address)
            except OSError:
                continue
            return str(address[0])
    return None


def _text(path: str) -> t.Optional[str]:
    answer = bounded.read_file(path)
    return answer.text if isinstance(answer, bounded.Text) else None


def _interpreter(candidate: finding.Candidate, folder: str) -> t.Optional[str]:
    """The Python of the server: as it was called, since a virtual environment shows only there."""
    called = candidate.command.interpreter
    if called and called.startswith("/"):
        return called
    link = bounded.read_link(folder + "/exe")
    return link.text if isinstance(link, bounded.Text) else called


def _configuration(path: t.Optional[str], folder: str) -> t.Optional[str]:
    if not path:
        return None
    # Seen from the process: its own root (a container) and its own working directory.
    inside = folder + "/root" + path if path.startswith("/") else folder + "/cwd/" + path
    return _text(inside)


def _mentions_vllm(service: units.Service) -> bool:
    return any("vllm" in word for argv in service.commands for word in argv)
