"""The control channel: POST /sim/<command> with a JSON object, GET /sim/counts and /sim/state.

Commands answer when they have taken effect, with {"ok": true} and the state.  See COMMANDS at the end of the file.
"""

from __future__ import annotations

from typing import Any, Callable

from .counts import COMPLETION_PATHS, POOLING_PATHS
from .exchange import BadRequestError, Exchange
from .faults import Fault
from .process import Process
from .requests import Request
from .server import Server


class Control:
    """Carries out commands on a server and on the process around it."""

    def __init__(self, server: Server, process: Process) -> None:
        self.server = server
        self.process = process

    def answer(self, exchange: Exchange) -> None:
        """Answer an exchange whose path begins with /sim/."""
        name = exchange.route[len("/sim/"):]
        if exchange.command == "GET" and name == "counts":
            exchange.send_json(200, self.server.counts.as_dict())
        elif exchange.command == "GET" and name == "state":
            exchange.send_json(200, self.server.truth())
        elif exchange.command == "POST" and name in COMMANDS:
            self._command(exchange, COMMANDS[name])
        else:
            exchange.send_json(404, {"ok": False, "error": f"no such command: {exchange.command} {name}"})

    def _command(self, exchange: Exchange, command: Callable[..., None]) -> None:
        try:
            body = exchange.json()
            if command is _restart:
                body["keep"] = exchange.connection
            command(self, **body)
        except (BadRequestError, TypeError, ValueError) as error:
            exchange.send_json(400, {"ok": False, "error": str(error)})
            return
        exchange.send_json(200, {"ok": True, **self.server.truth()})


def _freeze(control: Control, engine: int | None = None) -> None:
    control.server.freeze(engine)


def _thaw(control: Control, engine: int | None = None) -> None:
    control.server.thaw(engine)


def _freeze_http(control: Control) -> None:
    control.server.gate.set(shut=True)


def _thaw_http(control: Control) -> None:
    control.server.gate.set(shut=False)


def _kill(control: Control, health_after: float = 0.0, exit_after: float | None = 1.0,
          status: int | None = None, with_next_request: bool = False) -> None:
    """`exit_after` null: the process stays; `with_next_request`: until a completion is asked for, as V0 did."""
    control.server.kill_engine(health_after, status)
    control.process.ends_with_next_request = with_next_request
    if exit_after is not None:
        control.process.exit_later(exit_after)


def _exit(control: Control, code: int = 0, after: float = 0.05) -> None:
    control.process.exit_later(after, code)


def _restart(control: Control, down: float = 0.0, keep: Any = None) -> None:
    control.process.restart(down, keep)


def _stale(control: Control, running: int | None, engine: int = 0) -> None:
    control.server.engine(engine).make_stale(running)


def _load(control: Control, requests: int, engine: int | None = None) -> None:
    control.server.load.set(requests, engine)


def _prefill(control: Control, tokens: int = 100_000, chunk_tokens: int | None = 512,
             chunk_seconds: float = 0.5, max_tokens: int = 1, engine: int | None = None) -> None:
    """A long prompt in chunks; `chunk_tokens` null: in one single step of `chunk_seconds`."""
    control.server.submit(Request(prompt_tokens=tokens, max_tokens=max_tokens, chunk_tokens=chunk_tokens or tokens,
                                  chunk_seconds=chunk_seconds), engine)


def _fault(control: Control, path: str = "/metrics", **what: Any) -> None:
    control.server.faults.set(Fault(path, **what))


def _reject(control: Control, status: int = 503, times: int | None = None) -> None:
    for path in COMPLETION_PATHS + POOLING_PATHS:
        control.server.faults.set(Fault(path, status=status, times=times))


def _heal(control: Control, path: str | None = None) -> None:
    control.server.faults.clear(path)


def _admission(control: Control, admits: bool, engine: int = 0) -> None:
    control.server.engine(engine).admit(admits)


def _pause(control: Control, mode: str = "keep") -> None:
    for engine in control.server.engines:
        engine.pause(mode)


def _resume(control: Control) -> None:
    for engine in control.server.engines:
        engine.resume()


def _sleep(control: Control, level: int = 1) -> None:
    for engine in control.server.engines:
        engine.sleep(level)


def _wake(control: Control) -> None:
    _sleep(control, 0)


def _reset_counts(control: Control) -> None:
    control.server.counts.reset()


COMMANDS: dict[str, Callable[..., None]] = {
    "freeze": _freeze, "thaw": _thaw, "freeze-http": _freeze_http, "thaw-http": _thaw_http, "kill": _kill,
    "exit": _exit, "restart": _restart, "stale": _stale, "load": _load, "prefill": _prefill, "fault": _fault,
    "reject": _reject, "heal": _heal, "admission": _admission, "pause": _pause, "resume": _resume,
    "sleep": _sleep, "wake": _wake, "reset-counts": _reset_counts,
}
