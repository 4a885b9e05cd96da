"""A least-connection proxy over several servers, as nginx or HAProxy in front of a pool.

It forwards everything, GET /metrics too, to the backend with the fewest open connections, in turn among equals:
so two reads of its /metrics may come from two servers.  It has no metrics of its own.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

from .counts import CLIENT_GONE, COMPLETION_PATHS, FAILED, FINISHED, GENERATION_PATHS
from .exchange import BadRequestError, Exchange
from .listener import ClientWatch
from .process import Process

CHUNK = 65536
CONNECT_SECONDS = 5
NOT_FORWARDED = ("connection", "host", "keep-alive")


class Backend:
    """One server behind the proxy."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 80
        self.open = 0
        self.last_turn = 0


class Proxy:
    """Answers exchanges by asking a backend."""

    def __init__(self, urls: list[str], process: Process) -> None:
        self.backends = [Backend(url) for url in urls]
        self.counts = process.server.counts
        self.watch = ClientWatch()
        self.watch.start()
        self._lock = threading.Lock()
        self._turns = itertools.count(1)

    def connected(self) -> None:
        """Count a connection."""
        self.counts.connection()

    def answer(self, exchange: Exchange) -> None:
        """Forward one exchange.  Only GET /sim/counts is the proxy's own."""
        if exchange.route == "/sim/counts":
            exchange.send_json(200, self.counts.as_dict())
            return
        self.counts.request(exchange.command, exchange.route)
        ticket = self._begin(exchange)
        outcome = FAILED
        try:
            with self._chosen() as backend:
                outcome = self._forward(exchange, backend)
        finally:
            self.counts.end(ticket, outcome)

    def _begin(self, exchange: Exchange) -> int:
        if exchange.route not in GENERATION_PATHS or exchange.command != "POST":
            return 0
        try:
            body = exchange.json() if exchange.route in COMPLETION_PATHS else {}
        except BadRequestError:
            body = {}
        return self.counts.begin(exchange.route, body)

    @contextlib.contextmanager
    def _chosen(self) -> Iterator[Backend]:
        with self._lock:
            backend = min(self.backends, key=lambda each: (each.open, each.last_turn))
            backend.open += 1
            backend.last_turn = next(self._turns)
        try:
            yield backend
        finally:
            with self._lock:
                backend.open -= 1

    def _forward(self, exchange: Exchange, backend: Backend) -> str:
        try:
            upstream = socket.create_connection((backend.host, backend.port), timeout=CONNECT_SECONDS)
        except OSError:
            exchange.send(502, b"<html><body><h1>502 Bad Gateway</h1></body></html>\n", "text/html")
            return FAILED
        upstream.settimeout(None)
        gone = threading.Event()

        def client_gone() -> None:
            gone.set()
            with contextlib.suppress(OSError):
                upstream.shutdown(socket.SHUT_RDWR)

        # The answer is passed on as it comes, so its end is the end of the connection.
        exchange.hang_up()
        with upstream, exchange.watched(client_gone):
            upstream.sendall(self._head(exchange, backend) + exchange.content)
            self._pipe(upstream, exchange)
        return CLIENT_GONE if gone.is_set() else FINISHED

    @staticmethod
    def _head(exchange: Exchange, backend: Backend) -> bytes:
        lines = [f"{exchange.command} {exchange.path} HTTP/1.1", f"Host: {backend.host}:{backend.port}"]
        lines += [f"{name}: {value}" for name, value in exchange.headers.items()
                  if name.lower() not in NOT_FORWARDED]
        return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")

    @staticmethod
    def _pipe(upstream: socket.socket, exchange: Exchange) -> None:
        while True:
            data = upstream.recv(CHUNK)
            if not data:
                return
            exchange.wfile.write(data)
            exchange.wfile.flush()
