"""The simulated vLLM server as a unit of a test host, and simulated users of it.

server = SimulatedServer(hosts["h1"])
server.start()
server.send_load(4)                      # real requests, from the host itself
server.control("freeze")
server.set_options("--state", "frozen-idle")   # from the next start on
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from .commands import FleetError
from .hosts import Host

SIMULATOR = Path(__file__).resolve().parents[1] / "simulator"
FILES = Path(__file__).parent / "files"
START_SECONDS = 30
LOAD_UNIT = "vllm-load.service"
LOAD_LOG = "/var/log/vllm-load/requests.jsonl"


def install_program(host: Host) -> None:
    """Put the simulator into a host, as ``vllm serve``."""
    host.copy_folder(SIMULATOR, "/opt/vllm-simulator")
    host.write("/opt/vllm/bin/vllm", (FILES / "vllm").read_text(), mode="0755")


class SimulatedServer:
    """One server of a host: its unit, its options, its control channel, and what it wrote down about its requests."""

    def __init__(self, host: Host, unit: str = "vllm.service", port: int = 8000) -> None:
        self.host = host
        self.unit = unit
        self.port = port
        self.url = f"http://{host.address}:{port}"
        self._stem = unit.removesuffix(".service")

    def start(self, *options: str) -> None:
        """Install the unit, start it with these options of the simulator, and wait until it serves."""
        install_program(self.host)
        self.set_options(*options)
        text = (FILES / "vllm.service").read_text().format(port=self.port, stem=self._stem)
        self.host.install_unit(self.unit, text)
        self.host.run("systemctl", "enable", "--now", self.unit)
        self.await_models()

    def set_options(self, *options: str) -> None:
        """Give the simulator other options from its next start on."""
        self.host.write(f"/etc/default/{self._stem}", f"OPTIONS={' '.join(options)}\n")

    def await_models(self, seconds: float = START_SECONDS) -> None:
        """Return when the server lists its models. Raises FleetError with its journal if that takes longer."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self._exchange("/v1/models")
                return
            except OSError as error:
                if time.monotonic() > deadline:
                    journal = self.host.run("journalctl", f"--unit={self.unit}", "--lines=20", "--no-pager").stdout
                    raise FleetError(f"{self.unit} of {self.host.name} does not serve: {error}\n{journal}") from error
            time.sleep(0.1)

    def control(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Give the simulator a command, such as ``control("freeze")``; returns the true state after it."""
        return self._exchange(f"/sim/{command}", arguments)

    def counts(self) -> dict[str, Any]:
        """What was asked of this process of the simulator since it started."""
        return self._exchange("/sim/counts")

    def state(self) -> dict[str, Any]:
        """What is really the case inside the simulator."""
        return self._exchange("/sim/state")

    def invocation(self) -> str:
        """The InvocationID of the unit: another one after every start."""
        return self.host.unit(self.unit, "InvocationID")["InvocationID"]

    def requests(self) -> list[dict[str, Any]]:
        """The simulator's own log: the start and the end of every request, over all starts of the unit."""
        return _lines(self.host.read(f"/var/log/vllm-simulator/{self._stem}.jsonl"))

    def send_load(self, requests: int) -> None:
        """Keep this many requests in flight from now on, and return when all of them have arrived."""
        self.host.write("/opt/vllm-load/load.py", (FILES / "load.py").read_text())
        text = (FILES / "vllm-load.service").read_text().format(port=self.port, requests=requests)
        self.host.install_unit(LOAD_UNIT, text)
        self.host.run("systemctl", "restart", LOAD_UNIT)
        deadline = time.monotonic() + START_SECONDS
        while self.counts()["open"] < requests:
            if time.monotonic() > deadline:
                raise FleetError(f"{requests} requests did not arrive at {self.url}: {self.counts()}")
            time.sleep(0.05)

    def load_results(self) -> list[dict[str, Any]]:
        """What the users saw: start, end and outcome of every request that has ended; "ok" where all was well."""
        return _lines(self.host.read(LOAD_LOG))

    def _exchange(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=START_SECONDS) as answer:
            content: dict[str, Any] = json.load(answer)
        return content


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]
