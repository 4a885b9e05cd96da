"""Ends a session of processes, also when whoever started it was killed and could not.

As a program: `guard.py LEADER` waits until its standard input ends, as it does with the
process that holds the other end, and then ends the session.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path


class Guard:
    """A process that watches over a session for as long as this process lives."""

    def __init__(self, leader: int) -> None:
        self._process = subprocess.Popen([sys.executable, __file__, str(leader)], stdin=subprocess.PIPE, start_new_session=True)

    def end(self) -> None:
        """Ends the session now, and the watch over it."""
        self._process.communicate()


def end_session(leader: int) -> None:
    """Ends every process of a session, stopped ones too; one that has ended is fine."""
    for pid in session_members(leader):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def session_members(leader: int) -> list[int]:
    """The processes of a session, from /proc; children that made a group of their own are among them."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The name in field 2 may hold blanks and brackets; behind its last bracket: state ppid pgrp session.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader:
                    members.append(int(entry.name))
    return members


if __name__ == "__main__":
    sys.stdin.read()
    end_session(int(sys.argv[1]))
