"""Start scripts are read for the server they start, never run."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery import commandline, scripts

SCRIPT = """\
#!/bin/bash
set -e
# vllm serve old/model --port 1
PORT=8005
export MODEL="org/model"
exec /opt/vllm/bin/vllm serve "$MODEL" \\
    --port ${PORT} \\
    --host ${HOST:-0.0.0.0}
"""


def test_the_server_a_script_starts():
    (found,) = scripts.servers(SCRIPT)
    said = commandline.read_arguments(found.arguments)
    assert (said.model, said.port, said.host) == ("org/model", 8005, "0.0.0.0")


def test_a_variable_that_is_not_known_leaves_the_port_unclear():
    (found,) = scripts.servers('vllm serve m --port "$PORT"\n')
    assert commandline.read_arguments(found.arguments).unclear == ("port",)


def test_no_server():
    assert scripts.servers("#!/bin/sh\necho vllm\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "cd /opt/vllm && vllm serve m --port 8005",
        "vllm serve m --port 8005; echo it has ended",
        "vllm serve m --port 8005 & wait",
        "vllm serve m --port 8005 | tee /var/log/vllm.log",
    ],
)
def test_a_command_ends_where_the_next_one_begins(line):
    (found,) = scripts.servers(line)
    assert commandline.read_arguments(found.arguments).port == 8005


def test_two_servers_in_one_line():
    found = scripts.servers("vllm serve a --port 1 & vllm serve b --port 2")
    assert [commandline.read_arguments(one.arguments).model for one in found] == ["a", "b"]
