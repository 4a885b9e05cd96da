"""Every reader comes back, whatever it reads."""

import os
import sys
import threading

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import bounded


def test_a_file_is_read(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    assert bounded.read_file(str(tmp_path / "a")) == bounded.Text("one\ntwo\n")


def test_a_file_longer_than_the_limit_is_cut_and_says_so(tmp_path):
    (tmp_path / "a").write_text("x" * 100)
    assert bounded.read_file(str(tmp_path / "a"), limit=10) == bounded.Text("x" * 10, cut=True)


def test_a_file_exactly_as_long_as_the_limit_is_whole(tmp_path):
    (tmp_path / "a").write_text("x" * 10)
    assert bounded.read_file(str(tmp_path / "a"), limit=10) == bounded.Text("x" * 10)


def test_what_is_missing_says_so(tmp_path):
    answer = bounded.read_file(str(tmp_path / "no"))
    assert isinstance(answer, bounded.Unreadable) and answer.missing


def test_a_named_pipe_and_a_folder_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        answer = bounded.read_file(str(path))
        assert isinstance(answer, bounded.Unreadable) and answer.why == "not a regular file"


def test_a_reader_that_hangs_is_left_behind_and_the_next_one_works(tmp_path):
    never = threading.Event()
    answer = bounded.within(0.01, "a file", never.wait)
    assert isinstance(answer, bounded.Unreadable) and "no answer within" in answer.why
    assert bounded.within(5, "a file", lambda: 7) == 7
    never.set()


def test_bytes_that_are_no_text_are_replaced(tmp_path):
    (tmp_path / "a").write_bytes(b"a\xffb")
    assert bounded.read_file(str(tmp_path / "a")) == bounded.Text("a\ufffdb")


def test_the_output_of_a_command():
    assert bounded.run([sys.executable, "-c", "print('hello')"]) == bounded.Text("hello\n")


def test_a_command_that_does_not_exist_is_missing():
    answer = bounded.run(["/nonexistent/command"])
    assert isinstance(answer, bounded.Unreadable) and answer.missing


def test_a_command_that_fails_says_why():
    answer = bounded.run([sys.executable, "-c", "import sys; sys.exit('not allowed')"])
    assert isinstance(answer, bounded.Unreadable) and answer.why == "not allowed"


def test_a_command_that_never_ends_is_ended():
    answer = bounded.run([sys.executable, "-c", "import time; time.sleep(600)"], timeout=0.2)
    assert isinstance(answer, bounded.Unreadable) and answer.why == "no answer in time"


def test_a_command_that_prints_for_ever_is_cut():
    answer = bounded.run([sys.executable, "-c", "while True: print('x' * 1000)"], limit=5000)
    assert answer == bounded.Text(answer.text, cut=True) and len(answer.text) == 5000


@pytest.mark.parametrize("name", ["SSH_AUTH_SOCK", "LD_PRELOAD", "SECRET"])
def test_a_command_sees_nothing_of_the_environment(monkeypatch, name):
    monkeypatch.setenv(name, "x")
    answer = bounded.run([sys.executable, "-c", f"import os; print({name!r} in os.environ)"])
    assert answer == bounded.Text("False\n")


def test_the_names_in_a_folder_with_and_without_folders(tmp_path):
    (tmp_path / "b").write_text("")
    (tmp_path / "a").mkdir()
    assert bounded.list_directory(str(tmp_path)) == ["a", "b"]
    assert bounded.list_directory(str(tmp_path), files_only=True) == ["b"]
