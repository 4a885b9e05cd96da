"""The lock: one holder at a time, and none that is dead."""

import fcntl
import os
import signal
import subprocess
import sys
import threading

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart import locking

HOLDER = "import fcntl, sys, time\nfile = open(sys.argv[1], 'w')\nfcntl.flock(file, fcntl.LOCK_EX)\nprint('held', flush=True)\ntime.sleep(60)"


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "vllm.service.lock")


@pytest.fixture
def other(path):
    """Another process, which holds the lock."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_lock_that_is_free_is_held_inside_and_free_after(path):
    with locking.lock(path), pytest.raises(locking.Held), locking.lock(path):
        pass
    with locking.lock(path):
        pass


def test_a_lock_that_another_process_holds_is_not_waited_for(path, other):
    with pytest.raises(locking.Held), locking.lock(path):
        pytest.fail("two hold it")


def test_a_lock_of_a_process_that_was_killed_is_free_though_its_file_is_there(path, other):
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert os.path.exists(path)
    with locking.lock(path):
        pass


def test_the_lock_is_free_after_an_error(path):
    with pytest.raises(ZeroDivisionError), locking.lock(path):
        raise ZeroDivisionError
    with locking.lock(path):
        pass


def test_the_file_stays_as_another_process_may_have_it_open(path):
    with locking.lock(path):
        pass
    assert os.path.exists(path)


def test_only_its_owner_can_open_the_file(path):
    with locking.lock(path):
        assert os.stat(path).st_mode & 0o777 == 0o600


def test_what_the_holder_starts_does_not_keep_the_lock(path):
    with locking.lock(path):
        child = subprocess.Popen(["sleep", "60"])
    try:
        with locking.lock(path):
            pass
    finally:
        child.kill()
        child.wait()


def test_of_many_at_once_one_gets_it(path):
    held, refused, everybody = [], [], threading.Barrier(8)

    def go():
        everybody.wait()
        try:
            with locking.lock(path):
                held.append(1)
                decided.wait(10)
        except locking.Held:
            refused.append(1)
            if len(refused) == 7:
                decided.set()

    decided = threading.Event()
    threads = [threading.Thread(target=go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (1, 7)


def test_a_folder_that_is_not_there_is_an_error_of_its_own(tmp_path):
    with pytest.raises(FileNotFoundError), locking.lock(str(tmp_path / "no" / "lock")):
        pass


def test_a_lock_that_this_process_took_in_another_way_counts_too(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(locking.Held), locking.lock(path):
            pass
