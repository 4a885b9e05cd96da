"""Start scripts are read for the server they start, never run."""

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
