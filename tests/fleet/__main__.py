"""The command line: ``python -m tests.fleet up|down|exec|list|sweep``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from . import fleet, runs
from .commands import FleetError


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
    hosts = fleet.find(options.state)
    if options.host not in hosts:
        raise FleetError(f"no host {options.host}; there are {', '.join(hosts)}")
    done = hosts[options.host].run(*options.command, timeout=options.timeout, check=False)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


def _list(_: argparse.Namespace) -> None:
    for run in runs.known():
        hosts = " ".join(f"{host.name}={host.address}" for host in run.hosts)
        print(f"{run.id} {run.folder} {hosts}{' (abandoned)' if run.abandoned else ''}")


def _sweep(_: argparse.Namespace) -> None:
    print(f"taken down: {', '.join(fleet.sweep()) or 'none'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet", description=fleet.__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, do: object, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(do=do)
        return added

    def with_state(added: argparse.ArgumentParser) -> argparse.ArgumentParser:
        text = "folder of the run: keys, logs, inventory"
        added.add_argument("--state", type=Path, required=True, metavar="DIR", help=text)
        return added

    booting = with_state(command("up", _up, "boot hosts and wait until they can be reached"))
    booting.add_argument("--hosts", type=int, default=1, metavar="N", help="how many, called h1, h2, ... (default 1)")
    booting.add_argument("--names", nargs="+", metavar="NAME", help="call them this instead")
    owner = int(os.environ.get("FLEET_OWNER") or 0)
    text = "when this process is gone the hosts count as left behind, and the next run removes them (FLEET_OWNER)"
    booting.add_argument("--owner", type=int, default=owner, metavar="PID", help=text)
    with_state(command("down", _down, "take down the hosts of a run, and all that was made for them"))
    running = with_state(command("exec", _exec, "run a command in a host, as root"))
    running.add_argument("--timeout", type=float, default=60, help="seconds (default 60)")
    running.add_argument("host")
    running.add_argument("command", nargs=argparse.REMAINDER)
    command("list", _list, "show the runs on this machine")
    command("sweep", _sweep, "take down runs whose owner or folder is gone")
    return parser


if __name__ == "__main__":
    sys.exit(main())
