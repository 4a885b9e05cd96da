"""Requests the simulator sends to itself, so that a demo needs no load generator."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .engine import FAILURES
from .requests import Request

if TYPE_CHECKING:
    from .server import Server

# Lengths differ so that requests begin and end at different times, as they do in life.
PROMPTS = (12, 180, 75, 640, 33, 410)
ANSWERS = (450, 1300, 700, 2100, 900)


class Load:
    """Keeps requests in flight: each one that ends is followed by the next.

    They reach the engines like any other request, but are neither counted nor logged: nobody sent them.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._streams: dict[int | None, Stream] = {}

    def set(self, size: int, engine: int | None = None) -> None:
        """Keep that many in flight from now on, on one engine or spread over all; 0 ends them."""
        self._streams.setdefault(engine, Stream(self._server, engine)).resize(size)

    def stop(self) -> None:
        """End all of it."""
        for stream in self._streams.values():
            stream.resize(0)

    @property
    def size(self) -> int:
        """How many it keeps in flight."""
        return sum(stream.size for stream in self._streams.values())


class Stream:
    """The load of one engine (None: of all of them)."""

    def __init__(self, server: Server, engine: int | None) -> None:
        self._server = server
        self._engine = engine
        self._lock = threading.Lock()
        self._open: list = []  # (engine, request)
        self._sent = 0
        self.size = 0

    def resize(self, size: int) -> None:
        """Start or end as many as it takes."""
        with self._lock:
            self.size = size
            surplus, self._open = self._open[size:], self._open[:size]
            missing = size - len(self._open)
        for owner, request in surplus:
            owner.abort(request)
            request.end("abort")
        for _ in range(missing):
            threading.Thread(target=self._keep_one_open, daemon=True).start()

    def _keep_one_open(self) -> None:
        while True:
            entry = self._submit_next()
            if entry is None:
                return
            reason = entry[1].outbox.get()
            with self._lock:
                if entry not in self._open:
                    return
                self._open.remove(entry)
            if reason in FAILURES:
                return

    def _submit_next(self) -> tuple | None:
        with self._lock:
            if len(self._open) >= self.size:
                return None
            request = self._next_request()
            entry = (self._server.submit(request, self._engine), request)
            self._open.append(entry)
            return entry

    def _next_request(self) -> Request:
        self._sent += 1
        return Request(
            prompt_tokens=PROMPTS[self._sent % len(PROMPTS)],
            max_tokens=ANSWERS[self._sent % len(ANSWERS)],
            ends_with="stop" if self._sent % 3 else "length",
            pooling=self._server.settings.engine.pooling,
        )
