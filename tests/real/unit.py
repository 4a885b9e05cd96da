"""A real vLLM as a real unit: stopped, found stuck, restarted by heal.yml, and serving again.

The host is a systemd container of the test fleet. It has no vLLM of its own: the
environment made by install.py, the Python under it and the model are shown to it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fleet import groups, runs
from tests.fleet.fleet import fleet
from tests.fleet.hosts import Host

from . import check, install, lab, load, witness

UNIT = "vllm.service"
PORT = 8000
GRAFT = Path(__file__).with_name("graft.py")

TEXT = """\
[Unit]
Description=vLLM on port {port}

[Service]
User=vllm
{environment}
ExecStart={command}
Restart=on-failure
TimeoutStopSec=20

[Install]
WantedBy=multi-user.target
"""

# The unit has just been started, and its patience is the lab's: the two guards that this would touch are opened.
VARIABLES = {"vllm_check_startup_grace": 1, "vllm_restart_min_interval": 1, "vllm_restart_ready_delay": 2}


@dataclass(frozen=True)
class Times:
    """What was seen from outside, in seconds, one after another; and what heal.yml said of it."""

    until_stop: float
    """From the start of heal.yml until systemd was told to restart: Ansible, patience, plan, guards, evidence."""
    stopping: float
    """Until the new process was started."""
    until_ready: float
    """Until it answered."""
    all_of_it: float
    """heal.yml from its start to its end."""
    said: dict[str, Any]
    second_run_acted: bool

    @property
    def wrong(self) -> list[str]:
        """In what the run contradicts the truth."""
        found = []
        if (self.said["verdict_before"], self.said["action"]) != ("stuck", "restarted"):
            found.append(f"verdict {self.said['verdict_before']}, action {self.said['action']}, right is stuck, restarted")
        if self.said["healthy"] is not True:
            found.append(f"afterwards it said {self.said['verdict']}: {self.said['message']}")
        if self.second_run_acted:
            found.append("a second run restarted it again")
        return found

    def lines(self) -> list[str]:
        """The figures, a line each."""
        return [
            f"heal.yml until the restart began   {self.until_stop:6.1f} s   (verdict {self.said['verdict_before']})",
            f"stop and start by systemd          {self.stopping:6.1f} s   (a stopped engine ignores SIGTERM)",
            f"new process until it answered      {self.until_ready:6.1f} s",
            f"heal.yml, start to end             {self.all_of_it:6.1f} s",
            f"its report: {self.said['action']}, {self.said['seconds_down']} s down, now {self.said['verdict']}",
        ]


class UnitServer:
    """The server of a host, as far as clients and the witness need one."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.address = host.address
        self.port = PORT
        self.url = f"http://{host.address}:{PORT}"

    def wait_ready(self, seconds: float = lab.START_SECONDS) -> None:
        """Waits until it serves. Raises LabError with the end of its journal if it does not."""
        deadline = time.monotonic() + seconds
        while lab.status(f"{self.url}/health") != 200:
            if time.monotonic() > deadline:
                journal = self.host.run("journalctl", f"--unit={UNIT}", "--lines=25", "--no-pager").stdout
                raise lab.LabError(f"{UNIT} did not serve within {seconds:.0f} s:\n{journal}")
            time.sleep(0.5)

    def freeze_engine(self) -> None:
        """Stops the engine core, inside the host."""
        self.host.run("pkill", "--signal", "STOP", "--full", f"^{lab.ENGINE}")


class Answers(threading.Thread):
    """Asks /health all the time and keeps when it answered and when it did not."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.seen: list[tuple[float, bool]] = []
        self._url = url
        self._over = threading.Event()

    def run(self) -> None:
        """Asks until told to stop."""
        while not self._over.is_set():
            self.seen.append((time.monotonic(), lab.status(f"{self._url}/health", seconds=2) == 200))
            self._over.wait(0.2)

    def finish(self) -> None:
        """Stops asking."""
        self._over.set()
        self.join(timeout=10)


def heal_once(installed: install.Installed, model: Path, patience: float) -> Times:
    """Boots a host, stops the engine of its busy vLLM, runs heal.yml twice, and returns what was seen.

    Raises FleetError or LabError where the host or the server cannot be made to work.
    """
    with tempfile.TemporaryDirectory(prefix="fleetcheck-unit-") as folder, _host(Path(folder), installed, model) as host:
        server = UnitServer(host)
        server.wait_ready()
        with load.clients(server, *[load.Work()] * 3):
            witness.until_working(server)
            server.freeze_engine()
            first = _heal_watched(server, Path(folder), patience)
        before = host.unit(UNIT, "InvocationID")
        _heal(Path(folder), patience)
        return Times(**first, second_run_acted=host.unit(UNIT, "InvocationID") != before)


@contextmanager
def _host(folder: Path, installed: install.Installed, model: Path) -> Iterator[Host]:
    """A host that has started vLLM as its unit."""
    with fleet(folder, ["gpu-01"]) as hosts:
        host = hosts["gpu-01"]
        _show(folder, installed.venv, Path(sys.base_prefix), model)
        for name in install.LIBRARIES:
            host.write(f"/usr/local/lib/{name}", _library(name).read_bytes())
        host.run("ldconfig")
        host.install_unit(UNIT, unit_text(installed.vllm, model))
        host.run("systemctl", "start", UNIT)
        yield host


def _show(folder: Path, *shown: Path) -> None:
    """Makes folders of this machine visible in the only host of a run."""
    run = runs.load(folder.resolve())
    init = groups.leader(run.hosts[0].machine) if run else None
    if init is None:
        raise lab.LabError("the host has ended")
    # A process of its own: whoever enters a container's namespaces stays there.
    command = [sys.executable, str(GRAFT), str(init), *(str(path.resolve()) for path in shown)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def unit_text(vllm: Path, model: Path) -> str:
    """The unit, as an operator would write it for this environment."""
    environment = "\n".join(f"Environment={name}={value}" for name, value in lab.COMMON_ENVIRONMENT.items())
    command = " ".join([str(vllm), "serve", str(model), *lab.COMMON_FLAGS, "--host", "0.0.0.0", "--port", str(PORT)])
    return TEXT.format(port=PORT, environment=environment, command=command)


def _library(name: str) -> Path:
    """Where this machine keeps a shared library."""
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        if line.strip().startswith(name + " "):
            return Path(line.rpartition("=> ")[2]).resolve()
    raise lab.LabError(f"{name} is not on this machine")


def _heal_watched(server: UnitServer, folder: Path, patience: float) -> dict[str, Any]:
    """Runs heal.yml and takes the times from the unit and from the answers, not from what it says."""
    answers = Answers(server.url)
    answers.start()
    began = time.monotonic()
    try:
        said = _heal(folder, patience)
        ended = time.monotonic()
    finally:
        answers.finish()
    unit = server.host.unit(UNIT, "ActiveExitTimestampMonotonic", "ActiveEnterTimestampMonotonic")
    stopped, started = (int(unit[f"Active{what}TimestampMonotonic"]) / 1e6 for what in ("Exit", "Enter"))
    return {
        "until_stop": stopped - began,
        "stopping": started - stopped,
        "until_ready": ready_after(answers.seen, started) - started,
        "all_of_it": ended - began,
        "said": said,
    }


def ready_after(seen: list[tuple[float, bool]], started: float) -> float:
    """When the first answer came after a start; raises LabError where none did."""
    for at, answered in seen:
        if answered and at > started:
            return at
    raise lab.LabError("it never answered after its restart")


def _heal(folder: Path, patience: float) -> dict[str, Any]:
    """Runs heal.yml over the host and returns the entry of its only server."""
    report = folder / "report.json"
    variables = VARIABLES | {
        "vllm_check_patience": patience,
        "vllm_report_file": str(report),
        "vllm_servers": [{"url": f"http://127.0.0.1:{PORT}", "unit": UNIT}],
    }
    report.unlink(missing_ok=True)
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "ansible-playbook"),
            "--inventory", str(folder / "inventory"),
            "--extra-vars", json.dumps(variables),
            "playbooks/heal.yml",
        ],
        cwd=check.ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if not report.exists():
        raise check.CheckError(f"{done.stdout}\n{done.stderr}")
    return dict(json.loads(report.read_text())["servers"][0])
