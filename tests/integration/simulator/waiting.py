"""Waiting for what another thread brings about."""

from __future__ import annotations

import time


def wait_until(condition, seconds=5):
    """Wait for something another thread brings about; fails the test if it does not happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.001)
