# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what a host shows to its vLLM servers. Pure: everything was read before.

Processes come first: a frozen server still has one, with its command line and its unit. Units come second: a
server that died has no process, and must not vanish from the list for that.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from . import addresses, commandline, containers, processes, scripts, units

# Units that run programs of others: a restart of one would end them all, and not always the server.
_RUNS_OTHERS = re.compile(
    r"(?:supervisor(?:d|ctl)?|pm2(?:-.*)?|circus(?:d)?|monit|slurmd|slurmstepd|pbs_mom|cron|crond|anacron|atd|sshd?(?:@.*)?"
    r"|jupyter.*|code-server(?:@.*)?|gitlab-runner|github-runner.*|actions[.]runner[.].*|jenkins(?:-agent)?|docker|containerd"
    r"|podman|crio|kubelet|k3s(?:-agent)?|nomad|ray(?:-.*)?|salt-minion|getty@.*|tmux.*|screen.*)[.]service"
).fullmatch


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A process that is a vLLM server, with all that descend from it."""

    process: processes.Process
    command: commandline.Command
    tree: t.FrozenSet[int]

    @property
    def home(self) -> processes.Home:
        """Its unit or container."""
        return processes.home(self.process.cgroup)


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What was read about one candidate. None where it could not be read."""

    variables: t.Optional[t.FrozenSet[str]] = None
    listeners: t.Optional[t.Tuple[processes.Listener, ...]] = None
    own_network: t.Optional[bool] = None
    interpreter: t.Optional[str] = None
    configuration: t.Optional[str] = None
    local_host: t.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Host:
    """All that was read, and who reads: `uid` decides which user's units can be asked for by the check."""

    uid: int
    candidates: t.Tuple[Candidate, ...] = ()
    evidence: t.Mapping[int, Evidence] = dataclasses.field(default_factory=dict)
    services: t.Tuple[units.Service, ...] = ()
    listed: t.Tuple[containers.Listed, ...] = ()
    scripts: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    environment_files: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    configurations: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    user_names: t.Mapping[int, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Found:
    """One endpoint of one server."""

    service: t.Optional[units.Service]
    candidate: t.Optional[Candidate]
    container: t.Optional[containers.Container]
    serving: commandline.Serving
    evidence: Evidence
    port: t.Optional[int] = None
    port_from: str = "unknown"
    address: str = "127.0.0.1"
    listening: t.Optional[bool] = None
    usable: bool = True
    notes: t.List[str] = dataclasses.field(default_factory=list)

    @property
    def url(self) -> t.Optional[str]:
        """The base URL. Without the root path: vLLM answers there too, in every release."""
        if self.port is None:
            return None
        scheme = "https" if self.serving.tls else "http"
        return f"{scheme}://{addresses.bracketed(self.address)}:{self.port}"

    @property
    def running(self) -> bool:
        """Whether there is a process, or systemd says that there is."""
        return self.candidate is not None or (self.service is not None and self.service.running)


def candidates(found: t.Sequence[processes.Process]) -> t.List[Candidate]:
    """The vLLM servers among the processes. What a server forks looks like it: only the topmost counts."""
    by_pid = {process.pid: process for process in found}
    commands = {process.pid: commandline.recognise(process.argv) for process in found if process.argv}
    servers = {pid: command for pid, command in commands.items() if command}
    children: t.Dict[int, t.List[int]] = {}
    for process in found:
        children.setdefault(process.parent, []).append(process.pid)
    return [
        Candidate(by_pid[pid], command, _descendants(pid, children))
        for pid, command in sorted(servers.items())
        if not any(parent in servers for parent in _ancestors(pid, by_pid))
    ]


def _ancestors(pid: int, by_pid: t.Mapping[int, processes.Process]) -> t.Iterator[int]:
    seen = {pid}
    process = by_pid.get(pid)
    while process is not None and process.parent not in seen:
        seen.add(process.parent)
        yield process.parent
        process = by_pid.get(process.parent)


def _descendants(pid: int, children: t.Mapping[int, t.Sequence[int]]) -> t.FrozenSet[int]:
    tree, waiting = set(), [pid]
    while waiting:
        current = waiting.pop()
        if current not in tree:
            tree.add(current)
            waiting += children.get(current, ())
    return frozenset(tree)


def find(host: Host) -> t.List[Found]:
    """Every vLLM server of the host, those that run first, then by unit and port."""
    left = list(host.candidates)
    found: t.List[Found] = []
    starting = [(service, container) for service in host.services for container in [_container_of(service)] if container]
    for service, container in starting:
        mine = [candidate for candidate in left if _belongs(candidate, service, container, host)]
        mine = mine or _told_the_same(service, container, left, starting, host)
        left = [candidate for candidate in left if candidate not in mine]
        if not mine and not service.running and not service.wanted:
            continue
        found += _in_container(service, container, mine or [None], host)
    by_home = {(service.uid, service.name): service for service in host.services}
    for candidate in left:
        home = candidate.home
        service_or_none = by_home.get((home.uid, home.unit)) if home.unit else None
        found += _from_process(candidate, service_or_none, host)
    have = {(one.service.uid, one.service.name) for one in found if one.service}
    for service in host.services:
        if (service.uid, service.name) not in have:
            found += _from_unit(service, host)
    _compare(found, host)
    return sorted(found, key=_order)


def _order(one: Found) -> t.Tuple[bool, str, str, int]:
    service = one.service
    return (not one.running, service.scope if service else "~", service.name if service else "~", one.port or 0)


def _container_of(service: units.Service) -> t.Optional[containers.Container]:
    for argv in service.commands:
        container = containers.recognise(units.expanded(argv, dict(service.environment)))
        if container:
            return container
    return None


def _arguments(container: containers.Container) -> t.Tuple[str, ...]:
    return container.command.arguments if container.command else ()


def _belongs(candidate: Candidate, service: units.Service, container: containers.Container, host: Host) -> bool:
    home = candidate.home
    if home.unit is not None and (home.uid, home.unit) == (service.uid, service.name):
        return True
    names = [listed.name for listed in host.listed if listed.ident == home.container]
    return home.container is not None and container.name is not None and container.name in names


def _told_the_same(
    service: units.Service,
    container: containers.Container,
    left: t.Sequence[Candidate],
    starting: t.Sequence[t.Tuple[units.Service, containers.Container]],
    host: Host,
) -> t.List[Candidate]:
    """The container of a unit that does not name it, or whose engine does not list it, by what vLLM was told in it.

    Only if no other unit and no other container was told the same.
    """
    told = _arguments(container)
    alike = [candidate for candidate in left if candidate.home.container and candidate.command.arguments == told]
    others = [other for _service, other in starting if _arguments(other) == told]
    if not told or len(alike) != 1 or len(others) != 1 or service.active_state != "active":
        return []
    listed = next((one for one in host.listed if one.ident == alike[0].home.container), None)
    if listed is None:
        return alike
    fits = container.name in (None, listed.name) and _published(listed.published) == _published(container.published)
    return alike if fits else []


def _published(ports: t.Sequence[containers.Published]) -> t.Set[t.Tuple[int, t.Optional[int]]]:
    # docker lists a port once for each family of addresses.
    return {(port.container_port, port.host_port) for port in ports}


def _in_container(
    service: units.Service,
    container: containers.Container,
    mine: t.Sequence[t.Optional[Candidate]],
    host: Host,
) -> t.Iterator[Found]:
    for candidate in mine:
        command = candidate.command if candidate else container.command
        evidence = host.evidence.get(candidate.process.pid, Evidence()) if candidate else Evidence()
        serving = commandline.read_arguments(command.arguments if command else ())
        if container.api_key:
            serving = dataclasses.replace(serving, api_key=True)
        if evidence.configuration is not None:
            serving = commandline.over(serving, commandline.read_configuration(evidence.configuration))
        for one in _endpoints(service, candidate, container, serving, evidence):
            _host_port(one, container.published, container.host_network, f"{container.engine} run")
            if container.pod and one.port is None:
                one.notes.append("it runs in a pod, whose ports its unit does not show")
            yield one


def _host_port(one: Found, published: t.Sequence[containers.Published], host_network: bool, whose: str) -> None:
    """Turn the port inside a container into the one outside."""
    if host_network:
        return
    inside, one.port = one.port, None
    one.address = "127.0.0.1"
    for publication in published:
        if publication.container_port == inside and publication.host_port:
            one.port = publication.host_port
            one.port_from = f"published port of {whose}"
            one.address = addresses.reachable(publication.address)
            return
    one.port_from = "unknown"
    one.notes.append(f"port {inside} inside the container is not published on a port of the host that can be known")


def _from_process(candidate: Candidate, service: t.Optional[units.Service], host: Host) -> t.Iterator[Found]:
    evidence = host.evidence.get(candidate.process.pid, Evidence())
    serving = commandline.read_arguments(candidate.command.arguments)
    configured = commandline.Serving()
    if evidence.configuration is not None:
        configured = commandline.read_configuration(evidence.configuration)
    ident = candidate.home.container
    others = service.name if service and _RUNS_OTHERS(service.name) else None
    if others:
        service = None
    for one in _endpoints(service, candidate, None, commandline.over(serving, configured), evidence):
        if others:
            one.notes.append(f"it runs inside {others}, which runs other programs too: no unit of its own is known")
        if serving.port is None and configured.port is not None:
            one.port_from = "configuration file"
        if serving.config and evidence.configuration is None:
            one.notes.append("its configuration file (--config) could not be read")
        if evidence.own_network or (evidence.own_network is None and ident):
            listed = [container for container in host.listed if ident and container.ident == ident]
            _host_port(one, listed[0].published if listed else (), False, "the container")
        yield one


def _from_unit(service: units.Service, host: Host) -> t.Iterator[Found]:
    environment: t.Dict[str, str] = dict(service.environment)
    for path in service.environment_files:
        environment.update(units.environment_file(host.environment_files.get(path, "")))
    for argv in service.commands:
        # What systemd leaves as it is a shell may fill in: ${PORT:-8000}.
        words = [scripts.filled(word, environment) for word in units.expanded(argv, environment)]
        command = commandline.recognise_within(words)
        if command is None and service.active_state != "active":
            texts = [host.scripts.get(word, "") for word in scripts.programs(argv)]
            command = next((found for text in texts for found in scripts.servers(text)), None)
        if command is None:
            continue
        serving = commandline.read_arguments(command.arguments)
        configured = commandline.read_configuration(host.configurations.get(serving.config or "", ""))
        key = "VLLM_API_KEY" in environment
        evidence = Evidence(variables=frozenset(environment) if key else None, interpreter=command.interpreter)
        for one in _endpoints(service, None, None, commandline.over(serving, configured), evidence):
            if not service.running and not service.wanted:
                one.usable = False
                one.notes.append("it is not running, and not enabled: left alone")
            elif not service.running:
                one.notes.append(f"it is not running ({service.active_state})")
            elif service.active_state == "active":
                one.notes.append("it runs, but its process could not be looked at: told by its unit alone")
            yield one


def _endpoints(
    service: t.Optional[units.Service],
    candidate: t.Optional[Candidate],
    container: t.Optional[containers.Container],
    serving: commandline.Serving,
    evidence: Evidence,
) -> t.Iterator[Found]:
    """One Found a port: with the multi-port load balancing of vLLM each local rank has its own."""
    base = serving.port or commandline.DEFAULT_PORT
    count = (serving.data_parallel_size_local or 1) if serving.multi_port else 1
    for port in range(base, min(base + min(count, 64), 65536)):
        one = Found(service, candidate, container, serving, evidence, port=port)
        one.port_from = "command line" if serving.port else "default"
        _without_http(one)
        if one.port is not None:
            _confirm(one)
        yield one


def _without_http(one: Found) -> None:
    serving = one.serving
    if serving.headless:
        reason = "it is headless: its engines are served by another host"
    elif serving.grpc:
        reason = "it speaks gRPC, not HTTP"
    elif serving.uds:
        reason = "it listens on a Unix socket, which has no URL"
    elif "port" in serving.unclear:
        reason = "its port is not a number where it is written"
    else:
        return
    one.port, one.port_from, one.usable = None, "unknown", False
    one.notes.append(reason)


def _confirm(one: Found) -> None:
    """Compare what the command line says with what the processes listen on."""
    listeners, said = one.evidence.listeners, one.serving.host
    one.address = addresses.reachable(one.evidence.local_host or _literal(said))
    if listeners is None:
        return
    mine = [listener for listener in listeners if listener.port == one.port]
    if not mine and one.port_from == "default" and one.serving.config:
        others = {listener.port for listener in listeners if not addresses.is_loopback(listener.address)}
        if len(others) == 1:
            one.port = others.pop()
            one.port_from = "listening socket"
            mine = [listener for listener in listeners if listener.port == one.port]
    one.listening = bool(mine)
    if not mine:
        one.notes.append(f"nothing listens on port {one.port} yet")
    elif said and one.serving.tls and addresses.is_name(said) and one.evidence.local_host:
        one.address = said
    else:
        one.address = addresses.reachable(min((listener.address for listener in mine), key=addresses.preference))


def _literal(host: t.Optional[str]) -> t.Optional[str]:
    # A name, or an address of another machine, on a command line that anybody on the host may have written,
    # is no reason to send a request there; only what this host listens on, or may bind to, is used.
    return host if host in ("0.0.0.0", "::", "127.0.0.1", "::1") else None


def _compare(found: t.Sequence[Found], host: Host) -> None:
    """What only shows when all are known."""
    for one in found:
        service = one.service
        if service and service.uid is not None and service.uid != host.uid:
            who = host.user_names.get(service.uid, str(service.uid))
            one.notes.append(f"its unit belongs to the user {who}: connect as {who} to have the unit looked at")
        if one.running:
            if service is None:
                one.notes.append("no systemd unit runs it")
            _share(one, found)
        elif one.url and any(other.running and other.url == one.url for other in found):
            one.usable = False
            one.notes.append("another server that runs has its port")


def _share(one: Found, found: t.Sequence[Found]) -> None:
    if one.service is None or one.serving.multi_port:
        return
    together = [other for other in found if other.service is one.service]
    if len(together) > 1:
        one.notes.append(f"{len(together)} servers share {one.service.name}: a restart of the unit takes all of them")
