"""A fleet of two hosts with one or two simulated servers each: what a test of heal.yml is played on."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import threading
import time
import typing as t
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.fleet.commands import FleetError
from tests.fleet.hosts import Host
from tests.fleet.simulator import SimulatedServer
from tests.integration.ansible.running import ROOT, Ansible, Run, environment_of

NAMES = ("one", "two")
PORTS = (8000, 8001)
STATE = "/var/lib/fleetcheck-vllm"
STARTED = "39f53479d3a045ac8e11786248231fbf"

# Servers of tests are young and hang for seconds; the budget is tested elsewhere, and named where it matters here.
VARIABLES = {
    "vllm_check_patience": 3,
    "vllm_check_startup_grace": 0,
    "vllm_check_timeout": 4,
    "vllm_restart_min_interval": 0,
    "vllm_restart_max_starts": 1000,
    "vllm_restart_ready_timeout": 60,
    "vllm_restart_ready_delay": 2,
}
# A connection whose other end is gone must end soon, as it should in production.
ENVIRONMENT = {
    "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=60s -o ServerAliveInterval=2 -o ServerAliveCountMax=2",
    "ANSIBLE_TIMEOUT": "5",
    "ANSIBLE_PIPELINING": "1",
    "ANSIBLE_SHOW_CUSTOM_STATS": "1",
}

_CLEAR = """
systemctl stop 'vllm-*'
rm -rf {state} /etc/systemd/system/vllm-*
systemctl daemon-reload
systemctl reset-failed
true
"""


@dataclass
class Healed:
    """What a run of a playbook did. report: of vllm_report_file, None where none was written."""

    code: int
    output: str
    report: dict[str, t.Any] | None

    def row(self, host: str, place: int = 0) -> dict[str, t.Any]:
        """What the report says of a host's server."""
        assert self.report is not None, self.output
        (row,) = [row for row in self.report["servers"] if (row["host"], row["place"]) == (host, place)]
        return t.cast(dict[str, t.Any], row)

    def published(self) -> dict[str, t.Any]:
        """The report as the run has published it with set_stats, for the next node of a workflow."""
        shown = self.output.partition("CUSTOM STATS")[2]
        stats = json.JSONDecoder().raw_decode(shown[shown.index("{") :])[0]
        return t.cast(dict[str, t.Any], stats["vllm_fleet"])

    def actions(self) -> list[str]:
        """What was done about each server, in the order in which they were started."""
        assert self.report is not None, self.output
        rows = sorted(self.report["servers"], key=lambda row: (row["place"], NAMES.index(row["host"])))
        return [row["action"] for row in rows]


class Stage:
    """Two hosts by name, and their servers. Each test has units of its own name: they have no past."""

    _numbers = itertools.count(1)

    def __init__(self, hosts: t.Sequence[Host], variables: t.Mapping[str, Path], folder: Path, ansible: Ansible) -> None:
        self.hosts = dict(zip(NAMES, hosts, strict=True))
        self.spoilt = False
        self._variables = variables
        self._folder = folder
        self._usual = self._ansible = ansible
        self._next()

    def _next(self) -> None:
        self._ansible = self._usual
        self._number = next(self._numbers)
        self.servers: list[SimulatedServer] = []
        self.inventory = self._folder / f"inventory-{self._number}"
        (self.inventory / "host_vars").mkdir(parents=True)
        (self.inventory / "group_vars").mkdir()
        (self.inventory / "hosts").write_text("\n".join(["[vllm]", *NAMES, ""]))
        for name, source in self._variables.items():
            (self.inventory / "host_vars" / f"{name}.yml").write_text(source.read_text())

    def use(self, core: str) -> None:
        """Run playbooks with this ansible-core."""
        self._ansible = replace(self._usual, core=core)

    def start(self, *states: str, then: str = "idle", unit: str = "") -> None:
        """Start a server on each host and then, if there are more states, a second one; all in their states.

        When they are started again they are in the state `then`. unit: more settings of their units.
        """
        for number, state in enumerate(states):
            place, at = divmod(number, len(NAMES))
            name = f"vllm-{self._number}{'ab'[place]}.service"
            server = SimulatedServer(self.hosts[NAMES[at]], name, PORTS[place])
            if unit:
                server.host.install_unit(f"{name}.d/test.conf", unit)
            server.start("--state", state)
            server.set_options("--state", then)
            self.servers.append(server)
        self.set_variables()

    def set_variables(self, **more: t.Any) -> None:
        """Write the variables of all hosts, with more or others than usual."""
        names = {server.unit: server.port for server in self.servers}
        servers = [{"unit": unit, "url": f"http://127.0.0.1:{port}"} for unit, port in names.items()]
        values = {"vllm_servers": servers, **VARIABLES, **more}
        (self.inventory / "group_vars" / "all.yml").write_text(json.dumps(values))

    def clear(self) -> None:
        """Leave nothing of the test on the hosts but their journals."""
        for host in self.hosts.values():
            host.restore_network()
            host.run("sh", "-c", _CLEAR.format(state=STATE), check=False)
        self._next()

    def starts(self) -> list[int]:
        """How often systemd has started the unit of each server, in the order in which they were started."""
        return [self._starts(server) for server in self.servers]

    def _starts(self, server: SimulatedServer) -> int:
        server.host.run("journalctl", "--sync")
        match = [f"MESSAGE_ID={STARTED}", f"UNIT={server.unit}"]
        return len(server.host.run("journalctl", "--quiet", "--output=json", *match).stdout.splitlines())

    # Running playbooks

    def play(self, playbook: str, *arguments: str) -> Healed:
        """Run a playbook to its end."""
        report = self._report()
        run: Run = self._ansible("ansible-playbook", *self._arguments(playbook, report, arguments), **ENVIRONMENT)
        return Healed(run.code, run.output, json.loads(report.read_text()) if report.exists() else None)

    def heal(self, *arguments: str) -> Healed:
        """Run heal.yml to its end."""
        return self.play("heal.yml", *arguments)

    @contextmanager
    def healing(self, *arguments: str) -> t.Iterator[Running]:
        """A run of heal.yml that goes on while something else happens."""
        report = self._report()
        command = [
            str(environment_of(self._ansible.core) / "bin" / "ansible-playbook"),
            *map(str, self._arguments("heal.yml", report, arguments)),
        ]
        process = subprocess.Popen(
            command,
            cwd=self._ansible.folder,
            env={**self._ansible.environment(ENVIRONMENT), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        running = Running(process, report)
        try:
            yield running
        finally:
            running.kill()

    def _report(self) -> Path:
        return self._folder / f"report-{next(self._numbers)}.json"

    def _arguments(self, playbook: str, report: Path, more: t.Sequence[str]) -> list[str | Path]:
        path = ROOT / "playbooks" / playbook
        return [path, "--inventory", self.inventory, "--extra-vars", f"vllm_report_file={report}", *more]


class Running:
    """A run of a playbook that has not ended: what it has printed so far can be awaited, and it can be killed."""

    def __init__(self, process: subprocess.Popen[str], report: Path) -> None:
        self._process = process
        self._report = report
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)

    @property
    def output(self) -> str:
        """All that was printed."""
        return "".join(self._lines)

    def await_output(self, text: str, seconds: float = 180) -> None:
        """Return when the run has printed this. Raises FleetError with all it has printed."""
        deadline = time.monotonic() + seconds
        while text not in self.output:
            if time.monotonic() > deadline or (self._process.poll() is not None and not self._reader.is_alive()):
                raise FleetError(f"the run did not print {text!r}:\n{self.output}")
            time.sleep(0.02)

    def kill(self) -> None:
        """End the controller and all it has started on this machine, as a power failure would."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(10)

    def end(self) -> Healed:
        """Wait for the end of the run."""
        code = self._process.wait(timeout=300)
        self._reader.join(10)
        return Healed(code, self.output, json.loads(self._report.read_text()) if self._report.exists() else None)
