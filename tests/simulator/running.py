"""Start simulators from tests: each one on a free port, ended by its own process id whatever happens.

    with Simulator(state="frozen-busy") as sim:
        ... sim.url ...
        sim.control("thaw", engine=0)
        assert sim.counts()["probes"] == 0
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve().parent / "vllm_simulator.py"
START_SECONDS = 40
STOP_SECONDS = 5


class SimulatorError(RuntimeError):
    """A simulator did not start, or did not take a command."""


class Simulator:
    """A simulator in a process of its own.

    Keyword arguments are its options: state="busy", data_parallel_size=2, ignore_sigterm=True, proxy=[url, url].
    """

    def __init__(self, python: str = sys.executable, port: int = 0, **options: Any) -> None:
        self.command = [python, str(PROGRAM), "--port", str(port), "--end-with-stdin", *_arguments(options)]
        self.process: subprocess.Popen | None = None
        self.url = ""
        self.port = 0
        self.pid = 0

    def start(self) -> Simulator:
        """Start it and wait until it is in its state (with start_delay: until its port is known)."""
        # The pipe to its standard input closes with this process, however it ends: none is left behind.
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            announced = json.loads(self._first_line())
        except BaseException:
            self.stop()
            raise
        self.url, self.port, self.pid = announced["url"], announced["port"], announced["pid"]
        return self

    def _first_line(self) -> str:
        assert self.process and self.process.stdout and self.process.stderr
        ready, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self.process.kill()
            raise SimulatorError(f"the simulator did not start: {self.process.stderr.read().strip()[-2000:]}")
        return line

    def stop(self) -> int | None:
        """End it, by force if it does not go; returns its exit code.  Harmless if it has ended already."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5 if "--ignore-sigterm" in self.command else STOP_SECONDS)
        if self.process.poll() is None:
            self.process.kill()
        code = self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        return code

    def __enter__(self) -> Simulator:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def wait(self, seconds: float) -> int:
        """Wait for it to end by itself; returns its exit code."""
        assert self.process
        return self.process.wait(seconds)

    def control(self, command: str, **arguments: Any) -> dict:
        """Give a command, such as control("freeze", engine=0); returns the state after it."""
        return self._json(f"/sim/{command}", arguments)

    def counts(self) -> dict:
        """What was asked of it: requests, completions, probes, failed_in_flight, cpu_seconds ..."""
        return self._json("/sim/counts")

    def state(self) -> dict:
        """What is really the case inside."""
        return self._json("/sim/state")

    def until(self, condition: Callable[[Simulator], bool], seconds: float = 10,
              what: str = "the condition") -> None:
        """Wait until condition(self) is true."""
        deadline = time.monotonic() + seconds
        while not condition(self):
            if time.monotonic() > deadline:
                raise SimulatorError(f"{what} was not met within {seconds} s: {self.state()}")
            time.sleep(0.02)

    def get(self, path: str, timeout: float = 10, **headers: str) -> tuple[int, str]:
        """GET a path: status and body."""
        return request(self.url + path, timeout=timeout, headers=headers)

    def post(self, path: str, body: dict | None = None, timeout: float = 10, **headers: str) -> tuple[int, str]:
        """POST JSON to a path: status and body."""
        return request(self.url + path, body or {}, timeout=timeout, headers=headers)

    def _json(self, path: str, body: dict | None = None) -> dict:
        status, text = request(self.url + path, body)
        answer = json.loads(text)
        if status != 200:
            raise SimulatorError(answer.get("error", text))
        return answer


def request(url: str, body: dict | None = None, timeout: float = 10,
            headers: dict | None = None) -> tuple[int, str]:
    """One request without proxies: POST with a body, GET without.  Names in headers may use _ for -."""
    data = None if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
    asked = urllib.request.Request(url, data, {"Content-Type": "application/json", **named})
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=_trusting()))
    try:
        with opener.open(asked, timeout=timeout) as answer:
            return answer.status, answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode("utf-8", "replace")


@functools.cache
def _trusting() -> ssl.SSLContext:
    """The certificate of a simulator is nobody's business here."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _arguments(options: dict) -> list[str]:
    arguments: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(flag)
        elif isinstance(value, (list, tuple)):
            arguments += [flag, *map(str, value)]
        elif value is not None and value is not False:
            # One word, so that a value may begin with a dash.
            arguments.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return arguments
