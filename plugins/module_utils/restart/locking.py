# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One process at a time: a lock per unit that the kernel releases whatever becomes of its holder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import typing as t


class Held(Exception):
    """Another process has the lock."""


@contextlib.contextmanager
def lock(path: str) -> t.Iterator[None]:
    """Hold the lock at path. Raises Held, or OSError where the file cannot be opened.

    The file stays: a file that is left behind by a dead process is not locked, and removing it would let two
    processes lock two files of one name.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Held(path) from None
        yield
    finally:
        os.close(handle)
