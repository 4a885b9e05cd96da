"""One real vLLM server as a session of processes that is always ended.

Stopping a process (SIGSTOP) is how a hang is made: it keeps its memory, its
sockets and its place in the process table, and does nothing. SIGCONT undoes it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from .guard import Guard, session_members

ADDRESS = "127.0.0.1"
MODEL = "tiny"

# What vLLM's processes call themselves; a number follows where there are several.
ENGINE = "VLLM::EngineCore"
WORKER = "VLLM::Worker"
API = "VLLM::APIServer"

# Two slow cores, and the first start compiles its Python files.
START_SECONDS = 420.0

COMMON_FLAGS = (
    "--load-format", "dummy",
    "--enforce-eager",
    "--dtype", "bfloat16",
    "--served-model-name", MODEL,
)  # fmt: skip

COMMON_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB per engine
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


class Place(Protocol):
    """Where a server is reached, whoever runs it."""

    address: str
    port: int
    url: str


class LabError(RuntimeError):
    """A state could not be brought about: says nothing about the module."""


@dataclass(frozen=True)
class Spec:
    """What makes one server differ from another."""

    flags: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


class Server:
    """A `vllm serve` in a session of its own, on a port that was free."""

    def __init__(self, vllm: Path, model: Path, spec: Spec, log: Path) -> None:
        self.address = ADDRESS
        self.port = free_port()
        self.url = f"http://{ADDRESS}:{self.port}"
        self._command = [str(vllm), "serve", str(model), *COMMON_FLAGS, *spec.flags, *self._place()]
        self._environment = os.environ | COMMON_ENVIRONMENT | spec.environment
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None

    def _place(self) -> list[str]:
        """Where it listens."""
        return ["--host", self.address, "--port", str(self.port)]

    def start(self) -> None:
        """Starts it, and returns at once."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._guard = Guard(self._process.pid)

    def wait_ready(self, seconds: float = START_SECONDS) -> float:
        """Waits until /health answers 200, and returns how many seconds that took.

        Raises LabError when it ends or takes too long instead.
        """
        started = time.monotonic()
        while time.monotonic() - started < seconds:
            if self._process is None or self._process.poll() is not None:
                raise LabError(f"the server ended while starting; last lines:\n{self._tail()}")
            if status(f"{self.url}/health") == 200:
                return time.monotonic() - started
            time.sleep(0.5)
        raise LabError(f"the server was not ready after {seconds:.0f} s; last lines:\n{self._tail()}")

    def stop(self) -> None:
        """Ends every process of the session, stopped ones too, and waits for them."""
        if self._process is None or self._guard is None:
            return
        self._guard.end()
        self._process.wait()
        self._process = None

    def has(self, title: str) -> bool:
        """Whether one of its processes calls itself so; one that ends loses its title before it is gone."""
        return any(name.startswith(title) for name in self._called().values())

    def ended(self) -> bool:
        """Whether the serving process is gone."""
        return self._process is None or self._process.poll() is not None

    def wait_ended(self, seconds: float = 60.0) -> None:
        """Waits until the serving process has ended by itself; raises LabError when it does not."""
        deadline = time.monotonic() + seconds
        while not self.ended():
            if time.monotonic() > deadline:
                raise LabError(f"the server still runs after {seconds:.0f} s")
            time.sleep(0.25)

    def freeze(self, title: str, index: int = 0) -> None:
        """Stops one of its processes: the hang that a check must find."""
        _signal(self._member(title, index), signal.SIGSTOP)

    def thaw(self, title: str, index: int = 0) -> None:
        """Lets it go on where it was."""
        _signal(self._member(title, index), signal.SIGCONT)

    def kill(self, title: str, index: int = 0) -> None:
        """Ends it the hard way, as the kernel does when memory is out."""
        _signal(self._member(title, index), signal.SIGKILL)

    def freeze_main(self) -> None:
        """Stops the process that was started, which answers HTTP unless there are several that do."""
        assert self._process is not None
        _signal(self._process.pid, signal.SIGSTOP)

    def thaw_main(self) -> None:
        """Lets it go on."""
        assert self._process is not None
        _signal(self._process.pid, signal.SIGCONT)

    def post(self, path: str) -> int:
        """Posts nothing to a path of the server, and returns the HTTP status (0: no answer)."""
        return status(f"{self.url}{path}", method="POST", seconds=30)

    def answered(self, path: str) -> int:
        """How many requests to a path its own access log shows as answered."""
        mark = f'"POST {path} HTTP'.encode()
        return self._log.read_bytes().count(mark)

    def _member(self, title: str, index: int) -> int:
        """The pid of one of its processes, by the beginning of what it calls itself."""
        called = self._called()
        fitting = sorted((name, pid) for pid, name in called.items() if name.startswith(title))
        if index >= len(fitting):
            raise LabError(f"there is no process {index} called {title}, only {sorted(called.values())}")
        return fitting[index][1]

    def _called(self) -> dict[int, str]:
        """What each of its processes calls itself."""
        assert self._process is not None
        return {pid: process_title(pid) for pid in session_members(self._process.pid)}

    def _tail(self) -> str:
        """The end of its log."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-25:])


@contextlib.contextmanager
def running(server: Server) -> Iterator[Server]:
    """Starts a server, waits until it serves, and ends it whatever happens inside."""
    server.start()
    try:
        server.wait_ready()
        yield server
    finally:
        server.stop()


def free_port() -> int:
    """A port that nothing listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


def status(url: str, method: str = "GET", seconds: float = 5.0) -> int:
    """The HTTP status of one request, 0 where none came."""
    request = urllib.request.Request(url, method=method, data=b"" if method == "POST" else None)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=seconds) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def process_title(pid: int) -> str:
    """What a process calls itself, without its arguments; empty where it is gone."""
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except OSError:
        return ""


def _signal(pid: int, number: signal.Signals) -> None:
    """Sends a signal; a process that is gone already needs none."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
