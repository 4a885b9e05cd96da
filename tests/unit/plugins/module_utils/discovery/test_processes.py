"""The files of /proc."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery import processes
from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery.processes import Home, Listener

TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22001 1
   1: 00000000:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22002 1
   2: 0100007F:1F40 0100007F:B3A2 01 00000000:00000000 00:00000000 00000000     0        0 22003 1
"""
TCP6 = """\
  sl  local_address remote_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode
   0: 00000000000000000000000000000000:1F40 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 31 1
   1: 00000000000000000000000001000000:1F42 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 32 1
   2: 0000000000000000FFFF00000100007F:1F43 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 33 1
"""


def test_only_listening_sockets_count():
    assert processes.listeners(TCP) == [Listener("127.0.0.1", 8000, 22001), Listener("0.0.0.0", 8001, 22002)]


def test_ipv6():
    assert processes.listeners(TCP6) == [
        Listener("::", 8000, 31),
        Listener("::1", 8002, 32),
        Listener("127.0.0.1", 8003, 33),
    ]


@pytest.mark.parametrize("text", ["", "sl\n", "sl\n 0: zz:zz x 0A 1 2 3 4 5 6\n", "sl\n 0: 01:1F40 0 0A 0 0 0 0 0 6\n"])
def test_a_table_that_makes_no_sense_has_no_sockets(text):
    assert processes.listeners(text) == []


def test_a_name_with_brackets_and_spaces():
    found = processes.process(7, "7 (a) R 1 (b) S 42 7 7 0", "vllm\0serve\0m\0")
    assert (found.parent, found.comm, found.argv) == (42, "a) R 1 (b", ("vllm", "serve", "m"))


def test_the_owner_is_the_effective_user():
    assert processes.process(7, "7 (a) S 1 7", "a\0", status="Name:\ta\nUid:\t1000\t1001\t1000\t1000\n").uid == 1001


def test_an_unreadable_command_line_is_known_as_such():
    assert processes.process(7, "7 (a) D 1 7", None).argv is None


@pytest.mark.parametrize(
    "cgroup, home",
    [
        ("0::/system.slice/vllm.service\n", Home("vllm.service")),
        ("0::/system.slice/system-vllm.slice/vllm@70b.service\n", Home("vllm@70b.service")),
        ("9:name=systemd:/system.slice/vllm.service\n4:memory:/x\n0::/\n", Home("vllm.service")),
        ("0::/system.slice/vllm.service/libpod-payload-" + "a" * 64 + "\n", Home("vllm.service", None, "a" * 64)),
        ("0::/system.slice/docker-" + "b" * 64 + ".scope\n", Home(None, None, "b" * 64)),
        ("0::/docker/" + "c" * 64 + "\n", Home(None, None, "c" * 64)),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service\n",
            Home("vllm.service", 1000),
        ),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", Home()),
        ("0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", Home()),
        ("", Home()),
    ],
)
def test_the_unit_or_container_of_a_control_group(cgroup, home):
    assert processes.home(processes.systemd_path(cgroup)) == home


def test_of_the_environment_only_names_are_kept():
    names = processes.variable_names("PATH=/bin\0VLLM_API_KEY=geheim\0EMPTY=\0")
    assert names == {"PATH", "VLLM_API_KEY"}


def test_sockets_among_the_open_files():
    assert processes.socket_inode("socket:[22001]") == 22001
    assert processes.socket_inode("/dev/null") is None
