"""The Python of a running unit is found, and one that others can change is not run as root."""

import json
import os
import sys

import pytest

from roles.vllm_check.files import find_python

SHOWN = {
    "MainPID": "4711",
    "ControlGroup": "/system.slice/vllm.service",
    "ExecStart": "{ path=/opt/vllm/bin/vllm ; argv[]=/opt/vllm/bin/vllm serve m ; ignore_errors=no }",
}


@pytest.fixture
def files(monkeypatch):
    """What the machine's files say, by path."""
    content = {}
    monkeypatch.setattr(find_python, "read_text", lambda path: content.get(path, ""))
    monkeypatch.setattr(find_python, "is_python", lambda path: "python" in path)
    return content


def test_it_is_the_first_word_of_the_main_process(files):
    files["/proc/4711/cmdline"] = "/opt/venv/bin/python\0/opt/venv/bin/vllm\0serve\0"
    assert find_python.interpreters(SHOWN) == ["/opt/venv/bin/python"]


def test_it_may_be_a_child_of_a_shell_script(files):
    files["/proc/4711/cmdline"] = "/bin/bash\0/opt/start.sh\0"
    files["/sys/fs/cgroup/system.slice/vllm.service/cgroup.procs"] = "4711\n4712\n"
    files["/proc/4712/cmdline"] = "/opt/venv/bin/python3\0-m\0vllm\0"
    assert find_python.interpreters(SHOWN) == ["/opt/venv/bin/python3"]


def test_it_may_be_named_by_the_script_where_the_process_has_renamed_itself(files):
    files["/proc/4711/cmdline"] = "VLLM::APIServer"
    files["/opt/vllm/bin/vllm"] = "#!/opt/vllm/bin/python3.12 -sE\nimport sys\n"
    assert find_python.interpreters(SHOWN) == ["/opt/vllm/bin/python3.12"]


def test_a_unit_that_does_not_run_has_none(monkeypatch):
    monkeypatch.setattr(find_python, "output", lambda command: "MainPID=0\nControlGroup=\n")
    assert find_python.find(["vllm.service"]) == {
        "python": "",
        "tried": ["No running Python was found in the unit vllm.service."],
    }


def test_a_unit_may_be_one_of_the_user(monkeypatch):
    monkeypatch.setattr(find_python, "output", lambda command: f"MainPID={4711 * ('--user' in command)}\n")
    assert find_python.facts("vllm.service") == {"MainPID": "4711"}


def test_without_a_unit_it_says_so(capsys):
    find_python.main(["[]"])
    assert json.loads(capsys.readouterr().out) == {
        "python": "",
        "tried": ["No unit is named in vllm_servers, whose Python could be used instead."],
    }


def test_only_a_path_that_can_be_run_is_a_python(tmp_path):
    assert find_python.is_python(sys.executable)
    assert not find_python.is_python("python3")
    assert not find_python.is_python("/bin/sh")
    assert not find_python.is_python(str(tmp_path / "python3"))


def test_as_root_a_python_that_another_user_can_change_is_not_run(tmp_path, monkeypatch):
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    python.parent.chmod(0o777)
    monkeypatch.setattr(find_python.os, "geteuid", lambda: 0)
    monkeypatch.setattr(find_python.subprocess, "run", lambda *_, **__: pytest.fail("it was run"))
    assert "could be changed by another user than root" in find_python.why_not(str(python))


def test_a_python_without_the_packages_will_not_do(tmp_path, monkeypatch):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(find_python.os, "geteuid", lambda: 1000)
    assert find_python.why_not(str(python)) == "has no requests and prometheus-client either"


def test_a_python_with_the_packages_will_do(monkeypatch):
    monkeypatch.setattr(find_python.os, "geteuid", lambda: 1000)
    assert find_python.why_not(sys.executable) is None


@pytest.mark.parametrize(("owner", "mode", "safe"), [(0, 0o755, True), (0, 0o1777, True), (0, 0o775, False), (1000, 0o755, False)])
def test_every_folder_above_it_counts(monkeypatch, owner, mode, safe):
    def stat(path):
        mine = (owner, mode) if path == "/opt" else (0, 0o755)
        return os.stat_result((mine[1], 0, 0, 1, mine[0], 0, 0, 0, 0, 0))

    monkeypatch.setattr(find_python.os, "stat", stat)
    monkeypatch.setattr(find_python.os.path, "realpath", lambda path: "/usr/bin/python3.11")
    assert find_python.only_root_can_change("/opt/vllm/bin/python3") is safe
