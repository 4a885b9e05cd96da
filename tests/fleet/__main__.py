"""The command line: ``python -m tests.fleet up|down|exec|serve|load|control|plant|list|sweep``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import fleet, runs, watchdogs
from .commands import FleetError
from .hosts import Host
from .simulator import SimulatedServer


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; 1 and a sentence when that is not possible."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.do(options) or 0)
    except FleetError as error:
        print(f"fleet: {error}", file=sys.stderr)
        return 1


def _up(options: argparse.Namespace) -> None:
    names = options.names or [f"h{number}" for number in range(1, options.hosts + 1)]
    owner = runs.Process.of(options.owner) if options.owner else None
    for host in fleet.up(options.state, names, owner).values():
        print(f"{host.name} {host.address}")


def _down(options: argparse.Namespace) -> None:
    print("down" if fleet.down(options.state) else "nothing was up")


def _exec(options: argparse.Namespace) -> int:
    done = _host(options).run(*options.command, timeout=options.timeout, check=False)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


def _serve(options: argparse.Namespace) -> None:
    SimulatedServer(_host(options)).start(*options.options)


def _load(options: argparse.Namespace) -> None:
    SimulatedServer(_host(options)).send_load(options.requests)


def _control(options: argparse.Namespace) -> None:
    print(json.dumps(SimulatedServer(_host(options)).control(options.command, **options.arguments)))


def _plant(options: argparse.Namespace) -> None:
    watchdogs.plant_decoys(_host(options))
    if not options.decoys:
        watchdogs.plant(_host(options))


def _host(options: argparse.Namespace) -> Host:
    hosts = fleet.find(options.state)
    if options.host not in hosts:
        raise FleetError(f"no host {options.host}; there are {', '.join(hosts)}")
    return hosts[options.host]


def _list(_: argparse.Namespace) -> None:
    for run in runs.known():
        hosts = " ".join(f"{host.name}={host.address}" for host in run.hosts)
        print(f"{run.id} {run.folder} {hosts}{' (abandoned)' if run.abandoned else ''}")


def _sweep(_: argparse.Namespace) -> None:
    print(f"taken down: {', '.join(fleet.sweep()) or 'none'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet", description="Real systemd hosts for tests.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_commands_for_runs(commands)
    _add_commands_for_hosts(commands)
    return parser


def _add_commands_for_runs(commands: Any) -> None:
    booting = _add(commands, "up", _up, "boot hosts and wait until they can be reached")
    booting.add_argument("--hosts", type=int, default=1, metavar="N", help="how many, called h1, h2, ... (default 1)")
    booting.add_argument("--names", nargs="+", metavar="NAME", help="call them this instead")
    owner = int(os.environ.get("FLEET_OWNER") or 0)
    text = "when this process is gone the hosts count as left behind, and the next run removes them (FLEET_OWNER)"
    booting.add_argument("--owner", type=int, default=owner, metavar="PID", help=text)
    down = _add(commands, "down", _down, "take down the hosts of a run, and all that was made for them")
    for command in (booting, down):
        _add_state(command)
    _add(commands, "list", _list, "show the runs on this machine")
    _add(commands, "sweep", _sweep, "take down runs whose owner or folder is gone")


def _add_commands_for_hosts(commands: Any) -> None:
    running = _add(commands, "exec", _exec, "run a command in a host, as root")
    serving = _add(commands, "serve", _serve, "start the simulated vLLM as vllm.service")
    loading = _add(commands, "load", _load, "keep requests in flight at the simulated vLLM, from its own host")
    controlling = _add(commands, "control", _control, "give the simulated vLLM a command, such as freeze")
    planting = _add(commands, "plant", _plant, "plant every kind of watchdog, beside what only looks like one")
    for command in (running, serving, loading, controlling, planting):
        _add_state(command)
        command.add_argument("host")
    running.add_argument("--timeout", type=float, default=60, help="seconds (default 60)")
    running.add_argument("command", nargs=argparse.REMAINDER)
    serving.add_argument("options", nargs=argparse.REMAINDER, help="options of the simulator")
    loading.add_argument("requests", type=int, help="how many at the same time")
    controlling.add_argument("command")
    planting.add_argument("--decoys", action="store_true", help="only what looks like a watchdog")
    controlling.add_argument("arguments", type=json.loads, nargs="?", default={}, help="as a JSON object")


def _add(commands: Any, name: str, do: Callable[[argparse.Namespace], Any], text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    command.set_defaults(do=do)
    return command


def _add_state(command: argparse.ArgumentParser) -> None:
    text = "folder of the run: keys, logs, inventory"
    command.add_argument("--state", type=Path, required=True, metavar="DIR", help=text)


if __name__ == "__main__":
    sys.exit(main())
