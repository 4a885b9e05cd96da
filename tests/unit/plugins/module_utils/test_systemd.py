"""What `systemctl show` says, and what becomes of a systemctl that does not."""

import ast
import os
import sys

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import systemd
from ansible_collections.fleetcheck.vllm.plugins.module_utils.systemd import SystemctlError, UnitFacts

RUNNING = """\
MainPID=4711
NRestarts=2
ExecMainStartTimestampMonotonic=5123456789
LoadState=loaded
ActiveState=active
SubState=running
ActiveEnterTimestampMonotonic=5123999999
InvocationID=5c0ee6c2b5ff4b4e8b1e6f9a6a1c9a52
"""

NOT_FOUND = """\
MainPID=0
NRestarts=0
ExecMainStartTimestampMonotonic=0
LoadState=not-found
ActiveState=inactive
SubState=dead
ActiveEnterTimestampMonotonic=0
InvocationID=
"""


def test_a_running_unit():
    assert systemd.parse(RUNNING) == UnitFacts(
        load_state="loaded",
        active_state="active",
        sub_state="running",
        invocation_id="5c0ee6c2b5ff4b4e8b1e6f9a6a1c9a52",
        main_pid=4711,
        restarts=2,
        started=5123.456789,
    )


def test_a_unit_that_does_not_exist():
    assert systemd.parse(NOT_FOUND) == UnitFacts("not-found", "inactive", "dead", "", 0, 0, None)


def test_a_unit_without_a_main_process_started_when_it_became_active():
    text = RUNNING.replace("ExecMainStartTimestampMonotonic=5123456789", "ExecMainStartTimestampMonotonic=0")
    assert systemd.parse(text).started == 5123.999999


def test_what_an_older_systemd_does_not_know_is_left_out():
    assert systemd.parse("ActiveState=active\n") == UnitFacts("", "active", "", "", 0, 0, None)


@pytest.mark.parametrize("text", ["", "\n", "garbage\n", "=\n", "MainPID=\nNRestarts=[not set]\n", "MainPID=-1\n"])
def test_nonsense_is_as_good_as_nothing(text):
    assert systemd.parse(text) == UnitFacts("", "", "", "", 0, 0, None)


def test_a_value_may_hold_an_equals_sign():
    assert systemd.parse("SubState=a=b\n").sub_state == "a=b"


@pytest.mark.parametrize("name", ["vllm.service", "vllm", "vllm@llama-70b.service", "a:b_c.d", r"vllm@a\x2db.service", "0"])
def test_a_unit_may_be_called_so(name):
    assert systemd.UNIT_NAME.fullmatch(name)


@pytest.mark.parametrize(
    "name", ["", "-p", "--all", "a b", "a/b", "../x", "a;b", "$(x)", "a\n", "vllm*.service", "vllm?", "[v]llm", "\u00fcnit"]
)
def test_no_unit_is_called_so(name):
    assert not systemd.UNIT_NAME.fullmatch(name)


# systemctl itself


@pytest.fixture
def systemctl(tmp_path, monkeypatch):
    """Puts a program in systemctl's place; what it is called with ends up in the file `called`."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)

    def install(code):
        program = tmp_path / "systemctl"
        program.write_text(
            "#!%s -S\nimport os, sys, time\n"
            "open(%r, 'w').write(repr((sys.argv[1:], dict(os.environ))))\n%s\n" % (sys.executable, str(tmp_path / "called"), code)
        )
        program.chmod(0o755)

    return install


def called(tmp_path):
    return ast.literal_eval((tmp_path / "called").read_text())


def test_one_call_brings_all_facts(systemctl, tmp_path):
    systemctl("print(%r, end='')" % RUNNING)
    assert systemd.show("vllm.service") == systemd.parse(RUNNING)
    arguments, environment = called(tmp_path)
    assert arguments[0] == "show" and arguments[-2:] == ["--", "vllm.service"]
    assert set(arguments[1].partition("=")[2].split(",")) == {line.partition("=")[0] for line in RUNNING.splitlines()}
    assert environment["LC_ALL"] == "C"


def test_a_unit_of_the_user_is_asked_for_at_the_users_manager(systemctl, tmp_path):
    systemctl("print(%r, end='')" % RUNNING)
    systemd.show("vllm.service", "user")
    arguments, environment = called(tmp_path)
    assert arguments[:2] == ["--user", "show"]
    assert environment["XDG_RUNTIME_DIR"] == "/run/user/%d" % os.geteuid()


def test_a_runtime_directory_that_is_set_stays(systemctl, tmp_path, monkeypatch):
    systemctl("")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/elsewhere")
    systemd.show("vllm.service", "user")
    assert called(tmp_path)[1]["XDG_RUNTIME_DIR"] == "/elsewhere"


def test_a_unit_has_one_full_name_however_it_is_called(systemctl, tmp_path):
    systemctl("print('Id=vllm.service')")
    assert systemd.full_name("vllm") == "vllm.service"
    assert called(tmp_path)[0] == ["show", "--property=Id", "--", "vllm"]


def test_a_unit_without_a_full_name_keeps_its_own(systemctl):
    systemctl("")
    assert systemd.full_name("vllm") == "vllm"


def test_an_error_of_systemctl_is_told_in_its_own_words(systemctl):
    systemctl("sys.exit('Failed to connect to bus: No medium found')")
    with pytest.raises(SystemctlError, match=r"^Failed to connect to bus: No medium found$"):
        systemd.show("vllm.service")


def test_a_silent_error_is_told_by_its_code(systemctl):
    systemctl("sys.exit(4)")
    with pytest.raises(SystemctlError, match="code 4"):
        systemd.show("vllm.service")


def test_a_long_error_is_cut(systemctl):
    systemctl("sys.exit('x' * 100000)")
    with pytest.raises(SystemctlError) as error:
        systemd.show("vllm.service")
    assert len(str(error.value)) == 300


def test_a_systemctl_that_hangs_is_given_up(systemctl):
    systemctl("time.sleep(600)")
    with pytest.raises(SystemctlError, match=r"did not answer within 0\.05 s"):
        systemd.show("vllm.service", timeout=0.05)


def test_a_host_without_systemctl(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemctlError, match="could not be run: No such file or directory"):
        systemd.show("vllm.service")


def test_what_is_not_utf_8_is_read_all_the_same(systemctl):
    systemctl(r"sys.stdout.buffer.write(b'SubState=\xff\nMainPID=3\n')")
    assert systemd.show("vllm.service").main_pid == 3
