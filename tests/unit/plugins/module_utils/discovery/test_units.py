"""The output of `systemctl show`, as Debian 12's systemd 252 prints it."""

from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery import units

SHOW = """\
Id=vllm.service
LoadState=loaded
ActiveState=active
UnitFileState=enabled
MainPID=812
ExecStart={ path=/opt/vllm/bin/vllm ; argv[]=/opt/vllm/bin/vllm serve ${MODEL} --port 8000 ; ignore_errors=no ; start_time=[n/a] }
Environment=MODEL=org/model "GREETING=hello world"
EnvironmentFiles=/etc/default/vllm (ignore_errors=yes)
FragmentPath=/etc/systemd/system/vllm.service

Id=two.service
ActiveState=inactive
UnitFileState=disabled
MainPID=0
ExecStart={ path=/bin/true ; argv[]=/bin/true ; ignore_errors=no ; start_time=[n/a] }
ExecStart={ path=/bin/false ; argv[]=/bin/false x ; ignore_errors=yes ; start_time=[n/a] }

Id=a.timer
ActiveState=active
"""


def test_each_service_is_one():
    first, second = units.services(SHOW)
    assert first.name == "vllm.service"
    assert first.main_pid == 812
    assert first.commands == (("/opt/vllm/bin/vllm", "serve", "${MODEL}", "--port", "8000"),)
    assert first.environment == (("MODEL", "org/model"), ("GREETING", "hello world"))
    assert first.environment_files == ("/etc/default/vllm",)
    assert (first.running, first.wanted, first.scope) == (True, True, "system")
    assert second.commands == (("/bin/true",), ("/bin/false", "x"))
    assert (second.running, second.wanted) == (False, False)


def test_variables_are_put_in_as_systemd_does_it():
    argv = ("vllm", "serve", "${MODEL}", "$EXTRA", "--port=${PORT}")
    assert units.expanded(argv, {"MODEL": "m", "EXTRA": "--a b"}) == (
        "vllm",
        "serve",
        "m",
        "--a",
        "b",
        "--port=${PORT}",
    )


def test_two_dollars_are_one():
    assert units.expanded(("sh", "-c", "vllm serve m --port $$PORT $${X}"), {"PORT": "1", "X": "2"}) == (
        "sh",
        "-c",
        "vllm serve m --port $PORT ${X}",
    )


def test_a_file_of_variables():
    text = "# comment\nPORT=8001\nNAME='a b'\nnot a pair\n"
    assert dict(units.environment_file(text)) == {"PORT": "8001", "NAME": "a b"}


def test_text_that_makes_no_sense_gives_no_service():
    assert units.services("") == []
    assert units.services("Failed to connect to bus\n\n===\n") == []


def test_a_quote_too_many_does_no_harm():
    assert units.words("a 'b c") == ["a", "'b", "c"]
