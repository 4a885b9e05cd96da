"""The listening socket, a thread for each connection, and a watch over clients that leave."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Callable

BACKLOG = 1024
HANDSHAKE_SECONDS = 30
CLOSED = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR  # the same bits as poll's


class ClientWatch(threading.Thread):
    """Tells at once when a client closes its connection while its request is still open."""

    def __init__(self) -> None:
        super().__init__(name="client-watch", daemon=True)
        self._poll = select.epoll()
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], None]] = {}

    @contextlib.contextmanager
    def watching(self, sock: socket.socket, on_gone: Callable[[], None]) -> Iterator[None]:
        """Call `on_gone` (once, from another thread) if the client leaves inside the block."""
        fileno = sock.fileno()
        with self._lock:
            self._callbacks[fileno] = on_gone
            self._poll.register(fileno, CLOSED | select.EPOLLONESHOT)
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.pop(fileno, None)
                self._poll.unregister(fileno)

    def run(self) -> None:
        """Wait for clients to leave."""
        while True:
            for fileno, _ in self._poll.poll():
                on_gone = self._take(fileno)
                if on_gone:
                    on_gone()

    def _take(self, fileno: int) -> Callable[[], None] | None:
        """The callback of a connection that is closed.

        The event may be an old one, of another connection that had the same number: so look again.
        """
        with self._lock:
            if fileno not in self._callbacks:
                return None
            if not is_closed(fileno):
                self._poll.modify(fileno, CLOSED | select.EPOLLONESHOT)
                return None
            return self._callbacks.pop(fileno)


def is_closed(fileno: int) -> bool:
    """Whether the other side has closed a connection."""
    now = select.poll()
    now.register(fileno, CLOSED)
    return bool(now.poll(0))


class Listener:
    """Accepts connections and runs `handle(socket, address)` for each in a daemon thread.

    Bound but not listening, it holds the port and refuses connections: that is how a server looks that starts.
    """

    def __init__(self, host: str, port: int, handle: Callable, tls: ssl.SSLContext | None = None) -> None:
        self._handle = handle
        self._tls = tls
        self._lock = threading.Lock()
        self._connections: set = set()
        self._socket = self._bind(host, port)
        self.host, self.port = host, self._socket.getsockname()[1]

    @staticmethod
    def _bind(host: str, port: int) -> socket.socket:
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        return sock

    def listen(self) -> None:
        """Open the port."""
        self._socket.listen(BACKLOG)
        threading.Thread(target=self._accept, args=(self._socket,), name="accept", daemon=True).start()

    def close(self, keep: socket.socket | None = None) -> None:
        """Shut the port (connections are refused then) and cut all connections but one."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()
        self.cut_connections(keep)

    def hold(self) -> None:
        """Take the port again after close(), without opening it."""
        self._socket = self._bind(self.host, self.port)

    def cut_connections(self, keep: socket.socket | None = None) -> None:
        """Cut all connections but one, as the end of a process does."""
        with self._lock:
            connections = [sock for sock in self._connections if sock is not keep]
        for sock in connections:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                sock, address = listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock, address), daemon=True).start()

    def _serve(self, sock: socket.socket, address: tuple) -> None:
        with contextlib.suppress(OSError, ValueError):
            sock = self._secured(sock)
            with self._lock:
                self._connections.add(sock)
            self._handle(sock, address)
        with self._lock:
            self._connections.discard(sock)
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()

    def _secured(self, sock: socket.socket) -> socket.socket:
        if self._tls is None:
            return sock
        secured = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        secured.settimeout(HANDSHAKE_SECONDS)
        try:
            secured.do_handshake()
        except OSError:
            _close_quietly(secured)
            raise
        secured.settimeout(None)
        return secured


def _close_quietly(secured: ssl.SSLSocket) -> None:
    """Close without a reset: plain HTTP sent to a TLS port gets an empty answer from a real server."""
    secured.setblocking(False)
    with contextlib.suppress(OSError):
        socket.socket.recv(secured, BACKLOG * 64)  # what was sent and not understood
    secured.close()
