"""Waiting for what another thread brings about."""

from __future__ import annotations

import socket
import time


def wait_until(condition, seconds=5):
    """Wait for something another thread brings about; fails the test if it does not happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.001)


def refuses(port):
    """Whether nobody listens on a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return True
    return False
