"""One address in front of a server: what a tunnel, a service address or a load balancer is to a check.

It holds a connection until the server behind it listens, so a restart shows as
silence and not as a closed port, and it can be led to another server.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

from . import lab

HOLD_SECONDS = lab.START_SECONDS


class Relay:
    """Passes connections on, byte by byte, to the port it leads to."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server((lab.ADDRESS, 0))
        self._open: set[socket.socket] = set()
        self._closed = False
        self.called = threading.Event()
        """Set by the first connection."""
        self.url = f"http://{lab.ADDRESS}:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def switch(self, port: int) -> None:
        """Leads to another port from now on; connections that are open break."""
        self._target = port
        self._break()

    def close(self) -> None:
        """Stops listening and breaks what is open."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._break()

    def _break(self) -> None:
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.called.set()
                threading.Thread(target=self._join, args=(client,), daemon=True).start()

    def _join(self, client: socket.socket) -> None:
        """Connects a client to the target, one thread a direction."""
        server = self._reach()
        if server is None:
            client.close()
            return
        self._open |= {client, server}
        threading.Thread(target=self._pass_on, args=(server, client), daemon=True).start()
        self._pass_on(client, server)

    def _reach(self) -> socket.socket | None:
        """A connection to the target, once there is one to be had."""
        deadline = time.monotonic() + HOLD_SECONDS
        while not self._closed and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                return socket.create_connection((lab.ADDRESS, self._target))
            time.sleep(0.25)
        return None

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        """Copies one direction until either side ends, and then ends both."""
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open.discard(source)
        source.close()


@contextlib.contextmanager
def leading_to(port: int) -> Iterator[Relay]:
    """A relay that is closed at the end."""
    relay = Relay(port)
    try:
        yield relay
    finally:
        relay.close()
