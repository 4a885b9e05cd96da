"""No process of a session is left behind, whatever happens to the one that started it."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.real import guard

# A leader with a child, as a server has.
FAMILY = ["sh", "-c", "sleep 600 & echo started; wait"]

# Starts a family with a guard, says who leads it, and is then killed outright.
KILLED = """
import os, subprocess, sys
from tests.real.guard import Guard
family = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, start_new_session=True)
family.stdout.readline()
Guard(family.pid)
print(family.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def family():
    process = subprocess.Popen(FAMILY, stdout=subprocess.PIPE, start_new_session=True)
    process.stdout.readline()
    yield process
    guard.end_session(process.pid)
    process.communicate()


def left(leader: int) -> list[int]:
    """The session's processes, once they have had time to go."""
    deadline = time.monotonic() + 5
    while guard.session_members(leader) and time.monotonic() < deadline:
        time.sleep(0.01)
    return guard.session_members(leader)


def test_the_members_are_the_leader_and_its_children(family):
    assert family.pid in guard.session_members(family.pid)
    assert len(guard.session_members(family.pid)) == 2


def test_the_end_of_a_guard_is_the_end_of_its_session(family):
    guard.Guard(family.pid).end()
    family.wait(timeout=5)
    assert left(family.pid) == []


def test_the_session_ends_when_whoever_started_it_is_killed():
    killed = subprocess.run([sys.executable, "-c", KILLED, *FAMILY], stdout=subprocess.PIPE, check=False)
    assert killed.returncode == -9
    assert left(int(killed.stdout)) == []
