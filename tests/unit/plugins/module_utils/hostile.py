"""Servers on 127.0.0.1 that behave as no server should."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import typing as t
from pathlib import Path

CERTIFICATES = Path(__file__).with_name("certificates")

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

Behaviour = t.Callable[["Server", socket.socket], None]


class Server:
    """Listens on a free port and gives every connection to `behave`, each in a thread of its own.

    requests: what the clients sent, headers and body. hung_up: set once a client has closed its connection on a
    server that was not done. over: set when the test is done with this server; until then it never gives up.
    """

    def __init__(self, behave: Behaviour, certificate: t.Optional[str] = None) -> None:
        self.requests: t.List[bytes] = []
        self.connections = 0
        self.hung_up = threading.Event()
        self.over = threading.Event()
        self._behave = behave
        self._tls = None
        if certificate is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(CERTIFICATES / certificate)
        self._open: t.List[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return "%s://127.0.0.1:%d" % ("http" if self._tls is None else "https", self.port)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_error: object) -> None:
        self.over.set()
        for one in (self._listener, *self._open):
            # Wakes the thread that waits in it; closing alone does not.
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self.over.is_set():
                connection, _peer = self._listener.accept()
                self._open.append(connection)
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection:
                self._behave(self, connection)
        except (OSError, ValueError):
            self.hung_up.set()

    def take_request(self, connection: socket.socket) -> None:
        """Read a whole request: unread bytes would turn the close at the end into a reset."""
        request = b""
        while not _whole(request):
            got = connection.recv(65536)
            if not got:
                break
            request += got
        self.requests.append(request)


def _whole(request: bytes) -> bool:
    head, end, body = request.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return bool(end) and len(body) >= sum(int(length) for length in lengths)


def says(answer: bytes) -> Behaviour:
    """Sends this answer, whatever it is worth, and closes the connection."""

    def behave(server: Server, connection: socket.socket) -> None:
        server.take_request(connection)
        connection.sendall(answer)

    return behave


def answers(body: bytes = b"fine\n", status: str = "200 OK", **headers: str) -> Behaviour:
    """Sends a proper answer."""
    named = {"Content-Length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = "".join("%s: %s\r\n" % header for header in named.items())
    return says(("HTTP/1.1 %s\r\n%s\r\n" % (status, lines)).encode("utf-8") + body)


def drips(answer: bytes, drop: bytes = b"x") -> Behaviour:
    """Sends the beginning of an answer, then one drop after another for ever: no single read ever times out."""

    def behave(server: Server, connection: socket.socket) -> None:
        server.take_request(connection)
        connection.sendall(answer)
        while not server.over.wait(0.01):
            connection.sendall(drop)

    return behave


def pours(answer: bytes, part: bytes) -> Behaviour:
    """Sends the beginning of an answer, then the same part over and over, as fast as it is taken, for ever."""

    def behave(server: Server, connection: socket.socket) -> None:
        server.take_request(connection)
        connection.sendall(answer)
        while not server.over.is_set():
            connection.sendall(part)

    return behave


def resets(answer: bytes) -> Behaviour:
    """Sends the beginning of an answer and resets the connection."""

    def behave(server: Server, connection: socket.socket) -> None:
        server.take_request(connection)
        connection.sendall(answer)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return behave


def says_nothing(server: Server, connection: socket.socket) -> None:
    """Takes the request and is silent for ever."""
    server.take_request(connection)
    server.over.wait()


def refuses_what_it_does_not_understand(server: Server, connection: socket.socket) -> None:
    """Answers whatever comes first as an HTTP server answers what is not HTTP."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def drips_a_handshake(server: Server, connection: socket.socket) -> None:
    """Begins a TLS handshake and sends one byte of it after another for ever."""
    connection.recv(65536)
    connection.sendall(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc")  # a ServerHello of 16 kB
    while not server.over.wait(0.01):
        connection.sendall(b"\x00")
