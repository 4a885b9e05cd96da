#!/usr/bin/env python3
"""The demo: start a fleet of simulated servers, check it with the real playbook, compare, and end everything.

    demo.py                    start the fleet of inventory/demo and run playbooks/check.yml against it
    demo.py --first-port 29000 use other ports
    demo.py -- COMMAND ...     run a command of yours instead while the fleet is up (for a look around: -- bash)

Exit code 0: every server got the verdict that is true, and the playbook failed because some of them are sick.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent))

from running import Simulator, SimulatorError

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = ROOT / "inventory" / "demo"
PLAYBOOK = ROOT / "playbooks" / "check.yml"
FIRST_PORT = 28400
SICK = ("stuck", "dead", "unresponsive")  # fail the playbook
AT_THE_SAME_TIME = 4  # simulators being started
TAKEN = 98  # errno EADDRINUSE


class Place(NamedTuple):
    """One server of the fleet: its port (from the first), how it is started (None: not), and what is true of it."""

    port: int
    options: dict | None
    verdict: str
    reason: str


FLEET = (
    Place(0, {"state": "busy"}, "busy", "progress"),
    Place(1, {"state": "queued"}, "busy", "progress"),
    Place(2, {"state": "prefill"}, "busy", "progress"),
    Place(3, {"state": "idle"}, "idle", "answered"),
    Place(4, {"state": "frozen-busy"}, "stuck", "no_progress"),
    Place(5, {"state": "frozen-idle"}, "stuck", "no_answer"),
    Place(6, {"state": "one-frozen", "data_parallel_size": 2}, "stuck", "no_progress"),
    Place(7, {"state": "http-frozen"}, "unresponsive", "timeout"),
    Place(8, None, "dead", "refused"),
    Place(9, {"state": "sleeping"}, "sleeping", "sleep_mode"),
    Place(10, {"state": "paused-keep"}, "paused", "scheduler_paused"),
    Place(11, {"proxy": (12, 13)}, "serving", "models_listed"),
    Place(12, {"state": "busy"}, "busy", "progress"),
    Place(13, {"state": "queued"}, "busy", "progress"),
)
PORTS = [place.port for place in FLEET]


class DemoError(RuntimeError):
    """The demo cannot go on, for a reason that a person can do something about."""


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-port", type=int, default=FIRST_PORT, help="default: %(default)s")
    parser.add_argument("command", nargs="*", help="what to run instead of the check, after --")
    return parser.parse_args(arguments)


def check_ports(first_port: int) -> None:
    """Make sure that all ports are free, also the one where nothing is to listen."""
    for port in PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", first_port + port))
            except (OSError, OverflowError) as error:
                why = "is taken" if getattr(error, "errno", 0) == TAKEN else f"cannot be used ({error})"
                raise DemoError(
                    f"Port {first_port + port} {why}. The demo needs {first_port} to {first_port + PORTS[-1]}; "
                    "name another range with --first-port.") from error


def simulator(place: Place, first_port: int) -> Simulator:
    """The simulator of a place, not yet started."""
    options = dict(place.options or {})
    if "proxy" in options:
        options["proxy"] = [f"http://127.0.0.1:{first_port + port}" for port in options["proxy"]]
    return Simulator(port=first_port + place.port, **options)


@contextmanager
def fleet(first_port: int) -> Iterator[dict[int, Simulator]]:
    """All servers, each in its state; they end with the block."""
    servers = {place.port: simulator(place, first_port) for place in FLEET if place.options}
    with ExitStack() as stack:
        for server in servers.values():
            stack.callback(server.stop)
        with ThreadPoolExecutor(AT_THE_SAME_TIME) as pool:
            list(pool.map(Simulator.start, servers.values()))
        yield servers


def playbook_command(first_port: int, report: Path) -> list[str]:
    """The check of the demo's inventory, with its report as a file."""
    beside = Path(sys.executable).parent / "ansible-playbook"
    program = str(beside) if beside.exists() else shutil.which("ansible-playbook")
    if not program:
        raise DemoError("ansible-playbook was not found, neither beside this Python nor in the PATH.")
    extra = json.dumps({"demo_first_port": first_port, "vllm_report_file": str(report)})
    return [program, "-i", str(INVENTORY), str(PLAYBOOK), "-e", extra]


def run(command: list[str]) -> int:
    """Run a command from the repository's root; returns its exit code."""
    print("$", " ".join(command), flush=True)
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        return process.wait()
    except BaseException:  # Ctrl-C or an end from outside: not before the command has ended, too
        process.terminate()
        process.wait()
        raise


def expected(row: dict, first_port: int) -> tuple[str, str]:
    """What is true of a row of the report; raises KeyError for a server the demo does not know."""
    port = (urlsplit(row["url"]).port or 0) - first_port
    return {place.port: (place.verdict, place.reason) for place in FLEET}[port]


def wrong_rows(report: dict, first_port: int) -> list[str]:
    """A sentence for each row that says something untrue."""
    wrong = []
    for row in report["servers"]:
        try:
            truth = expected(row, first_port)
        except (KeyError, ValueError):  # a host without a result has no URL
            wrong.append(f"{row['host']}: {row.get('message')}")
            continue
        if (row["verdict"], row["reason"]) != truth:
            wrong.append(f"{row['host']} {row['name']}: {row['verdict']} ({row['reason']}), "
                         f"but is {truth[0]} ({truth[1]})")
    missing = len(FLEET) - len(report["servers"])
    return wrong + ([f"{missing} servers are missing in the report"] if missing else [])


def conclusion(code: int, report: dict, first_port: int) -> tuple[bool, str]:
    """Whether the run was as it should be, and a sentence that says so."""
    wrong = wrong_rows(report, first_port)
    if wrong:
        return False, "Wrong verdicts:\n  " + "\n  ".join(wrong)
    if not code:
        return False, "All verdicts are right, but the playbook should have failed: some servers are sick."
    counts = Counter(row["verdict"] for row in report["servers"])
    sick = ", ".join(f"{counts[verdict]} {verdict}" for verdict in SICK if counts[verdict])
    return True, (f"The run failed as it should: {sick}. In a schedule, that is what turns a job red.\n"
                  f"All {len(report['servers'])} verdicts are true; nothing was changed or restarted.")


def check_fleet(first_port: int) -> int:
    """Run the playbook and judge it; returns an exit code."""
    with tempfile.TemporaryDirectory(prefix="fleetcheck-demo-") as folder:
        path = Path(folder) / "report.json"
        code = run(playbook_command(first_port, path))
        if not path.exists():
            raise DemoError(f"The playbook ended with code {code} and left no report.")
        right, text = conclusion(code, json.loads(path.read_text(encoding="utf-8")), first_port)
    print("\n" + text, flush=True)
    return 0 if right else 1


def unneeded_requests(servers: dict[int, Simulator]) -> list[str]:
    """A sentence for each working or resting server that was sent a request it did not need."""
    spared = [place for place in FLEET if place.verdict in ("busy", "sleeping", "paused")]
    asked = [(place, servers[place.port].counts()["completions"]) for place in spared]
    return [f"port {place.port}: {count} requests, although it is {place.verdict}" for place, count in asked if count]


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; returns an exit code."""
    chosen = parse(sys.argv[1:] if arguments is None else arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers are ended then, too
    began = time.monotonic()
    try:
        check_ports(chosen.first_port)
        with fleet(chosen.first_port) as servers:
            print(f"{len(servers)} simulated servers run on 127.0.0.1, ports {chosen.first_port} to "
                  f"{chosen.first_port + PORTS[-1]}.", flush=True)
            if chosen.command:
                return run(chosen.command)
            code = check_fleet(chosen.first_port)
            unneeded = unneeded_requests(servers)
    except (DemoError, SimulatorError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; all servers are ended.", file=sys.stderr)
        return 130
    print("\n".join(unneeded) or "No request was sent to any server that works, sleeps or is paused.")
    print(f"Took {time.monotonic() - began:.0f} s.")
    return 1 if unneeded else code


if __name__ == "__main__":
    sys.exit(main())
