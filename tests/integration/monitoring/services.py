"""Prometheus and its companions as Debian has them, each on a free port with a folder of its own."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
import typing as t
import urllib.parse
from pathlib import Path

from tests.integration.debian import unpacked
from tests.simulator.running import request

START_SECONDS = 60
ATTEMPTS = 3


class NotStarted(RuntimeError):
    """A service did not come up; the message is what it wrote."""


class Service:
    """One service. It is ended by its own process id, whatever happens."""

    def __init__(self, package: str, program: str, folder: Path, ready: str, *options: str) -> None:
        self.program = unpacked(package, program)
        self.folder, self._ready, self._options = folder, ready, options
        folder.mkdir(parents=True, exist_ok=True)
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Its address without a scheme."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Its address with one."""
        return f"http://{self.address}"

    def __enter__(self) -> t.Any:
        for attempt in range(ATTEMPTS):
            # None of these programs tells which port it took, so one is looked for, and somebody else may be faster.
            self.port = free_port()
            with contextlib.suppress(NotStarted) if attempt < ATTEMPTS - 1 else contextlib.nullcontext():
                self._start()
                return self
        raise AssertionError("not reached")

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _start(self) -> None:
        log = self.folder / "log"
        with log.open("wb") as output:
            command = [self.program, f"--web.listen-address={self.address}", *self._options]
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=output)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError):
                if request(self.url + self._ready)[0] == 200:
                    return
            time.sleep(0.05)
        self.__exit__()
        raise NotStarted(f"{self.program}: {log.read_text(errors='replace')[-2000:]}")


class Prometheus(Service):
    """Prometheus with a configuration of its own."""

    def __init__(self, folder: Path, configuration: t.Mapping[str, t.Any]) -> None:
        folder.mkdir(parents=True)
        file = folder / "prometheus.yml"
        file.write_text(json.dumps(configuration))
        super().__init__(
            "prometheus", "prometheus", folder, "/-/ready", f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"
        )

    def query(self, expression: str) -> list[dict[str, t.Any]]:
        """What an expression is now."""
        return self._get("query", query=expression)["result"]

    def series(self, selector: str) -> list[dict[str, str]]:
        """The label sets of what a selector finds."""
        return self._get("series", **{"match[]": selector})

    def _get(self, what: str, **parameters: str) -> t.Any:
        status, text = request(f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}")
        assert status == 200, text
        return json.loads(text)["data"]


def node_exporter(folder: Path, textfiles: Path) -> Service:
    """A node_exporter that shows nothing but text files."""
    return Service(
        "prometheus-node-exporter", "prometheus-node-exporter", folder, "/metrics", "--collector.disable-defaults",
        "--collector.textfile", f"--collector.textfile.directory={textfiles}",
    )  # fmt: skip


def pushgateway(folder: Path) -> Service:
    """A Pushgateway."""
    # Debian's keeps its data in /var/lib by default.
    file = f"--persistence.file={folder / 'data'}"
    return Service("prometheus-pushgateway", "prometheus-pushgateway", folder, "/-/ready", file)


def alertmanager(folder: Path, configuration: str) -> Service:
    """An Alertmanager that talks to no other one."""
    folder.mkdir(parents=True)
    file = folder / "alertmanager.yml"
    file.write_text(configuration)
    return Service(
        "prometheus-alertmanager", "prometheus-alertmanager", folder, "/-/ready", f"--config.file={file}",
        f"--storage.path={folder / 'data'}", "--cluster.listen-address=",
    )  # fmt: skip


def free_port() -> int:
    """A port that nobody has just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
