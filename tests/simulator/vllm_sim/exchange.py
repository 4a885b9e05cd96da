"""One HTTP exchange: what was asked, and the ways to answer it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any, Callable, Protocol
from urllib.parse import parse_qs, urlsplit

from .listener import ClientWatch


class Application(Protocol):
    """What answers exchanges: a server or a proxy."""

    watch: ClientWatch

    def connected(self) -> None:
        """A connection was accepted."""

    def answer(self, exchange: Exchange) -> None:
        """Answer one exchange, or let its connection end without an answer."""


class BadRequestError(ValueError):
    """The body of a request is not what it should be."""


def _nothing(status: int, size: int) -> None:
    """Nobody wants to know."""


class Exchange(BaseHTTPRequestHandler):
    """The requests of one connection, one after the other."""

    protocol_version = "HTTP/1.1"
    server_version = "uvicorn"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one packet

    def __init__(self, sock: Any, address: tuple, application: Application) -> None:
        self.application = application
        self.status = 0  # of the answer given
        self.content = b""  # the body of the request
        self.started_at = 0.0
        self.in_engine = False  # whether an engine took the request: then it is counted by its end there
        # Called with the status and the bytes of the body before an answer is sent.
        self.before_answer: Callable[[int, int], None] = _nothing
        application.connected()
        super().__init__(sock, address, None)  # type: ignore[arg-type]  # no socketserver around it

    def _answer(self) -> None:
        self.status = 0
        self.before_answer = _nothing
        self.in_engine = False
        self.started_at = time.monotonic()
        self.content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        self.route, self.query = parts.path, parse_qs(parts.query)
        try:
            self.application.answer(self)
        except OSError:
            self.close_connection = True

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the counts and the request log tell what happened."""

    def json(self) -> dict:
        """The body as a JSON object; empty is {}.  Raises BadRequestError."""
        try:
            body = json.loads(self.content or b"{}")
        except ValueError as error:
            raise BadRequestError(f"the body is not JSON: {error}") from error
        if not isinstance(body, dict):
            raise BadRequestError("the body is not a JSON object")
        return body

    def send(self, status: int, body: bytes = b"", content_type: str = "application/json", **headers: str) -> None:
        """Answer with a whole body."""
        self.before_answer(status, len(body))
        self.status = status
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        if body:
            self.send_header("content-type", content_type)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_json(self, status: int, value: Any) -> None:
        """Answer with JSON."""
        self.send(status, json.dumps(value, separators=(",", ":")).encode())

    def begin_stream(self) -> None:
        """Begin an answer of server-sent events."""
        self.status = 200
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def send_events(self, events: list[str]) -> None:
        """Send some events of a stream; none ends it."""
        data = "".join(f"data: {event}\n\n" for event in events).encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def hang_up(self) -> None:
        """Close the connection after this exchange, answered or not."""
        self.close_connection = True

    @contextlib.contextmanager
    def watched(self, on_gone: Callable[[], None]) -> Iterator[None]:
        """Call `on_gone` if the client closes the connection inside the block."""
        with self.application.watch.watching(self.connection, on_gone):
            yield
