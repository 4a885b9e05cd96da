"""A command line is a vLLM server or not, and says where it listens."""

import shlex

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery import commandline
from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery.commandline import (
    read_arguments,
    read_configuration,
    recognise,
    recognise_within,
)

SERVERS = [
    "vllm serve org/model --port 8001",
    "/opt/vllm/bin/vllm serve org/model",
    "/opt/vllm/bin/python3 /opt/vllm/bin/vllm serve org/model",
    "/opt/vllm/bin/python3.12 -u -X dev /usr/local/bin/vllm serve --config /etc/vllm.yaml",
    "python -m vllm.entrypoints.openai.api_server --model org/model",
    "python3 -um vllm.entrypoints.openai.api_server --model org/model",
    "python3 -m vllm.entrypoints.cli.main serve org/model",
    "python3 -mvllm.entrypoints.openai.api_server --model org/model",
    "python3 /src/vllm/entrypoints/openai/api_server.py --model org/model",
]
OTHERS = [
    "",
    "vllm",
    "vllm bench serve --model x",
    "vllm chat",
    "vllm-bench serve m",
    "grep vllm serve",
    "vim /opt/vllm/bin/vllm serve",
    "python3 -c 'import vllm' serve",
    "python3 train.py vllm serve",
    "VLLM::EngineCore",
    "/bin/sh -c 'vllm serve org/model'",
    "python3 -m vllm.entrypoints.cli.main bench",
    "tail -f /var/log/vllm serve",
]


@pytest.mark.parametrize("line", SERVERS)
def test_these_are_servers(line):
    assert recognise(shlex.split(line))


@pytest.mark.parametrize("line", OTHERS)
def test_these_are_not(line):
    assert recognise(shlex.split(line)) is None


@pytest.mark.parametrize(
    "line",
    [
        "numactl --cpunodebind=0 vllm serve org/model --port 9",
        "/usr/bin/env VAR=1 vllm serve org/model --port 9",
        "/bin/sh -c exec vllm serve org/model --port 9",
        "/usr/bin/uv run --with vllm vllm serve org/model --port 9",
        "/usr/bin/uvx vllm@0.11.0 serve org/model --port 9",
        "/usr/bin/uvx vllm[audio]==0.11.0 serve org/model --port 9",
    ],
)
def test_a_server_behind_another_command_is_found(line):
    found = recognise_within(line.split())
    assert found and read_arguments(found.arguments).port == 9


def test_the_interpreter_is_the_one_the_server_was_called_with():
    found = recognise(["/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "m"])
    assert (found.interpreter, found.script) == ("/opt/vllm/bin/python3", "/opt/vllm/bin/vllm")


def test_everything_a_command_line_says():
    said = read_arguments(
        shlex.split(
            "org/model --port 8001 --host=0.0.0.0 --root-path /llm --ssl-certfile /etc/c.pem --ssl_keyfile /etc/k.pem "
            "--served-model-name one two -dp 4 --api-server-count=2 --config c.yaml --max-model-len 4096"
        )
    )
    assert said == commandline.Serving(
        port=8001,
        host="0.0.0.0",
        root_path="/llm",
        tls=True,
        model="org/model",
        served_model_names=("one", "two"),
        data_parallel_size=4,
        api_server_count=2,
        config="c.yaml",
    )


def test_a_silent_command_line_says_nothing():
    assert read_arguments(["org/model"]) == commandline.Serving(model="org/model")


def test_underscores_count_as_dashes_and_the_last_one_wins():
    assert read_arguments(["--root_path", "/a", "--root-path=/b", "--data_parallel_size=2"]) == commandline.Serving(
        root_path="/b", data_parallel_size=2
    )


@pytest.mark.parametrize("words", [["--api-key", "geheim"], ["--api_key=geheim"], ["--api-key", "a", "geheim"]])
def test_a_key_is_noticed_and_not_kept(words):
    said = read_arguments(words)
    assert said.api_key is True
    assert "geheim" not in repr(said)


@pytest.mark.parametrize("port", ["${PORT}", "x", "0", "70000", "-1", "8000 ", ""])
def test_a_port_that_is_none_is_unclear(port):
    said = read_arguments([f"--port={port}"])
    assert said.port is None and said.unclear == ("port",)


def test_servers_without_http():
    assert read_arguments(["m", "--headless"]).headless
    assert read_arguments(["m", "--grpc"]).grpc
    assert read_arguments(["m", "--uds", "/run/vllm.sock"]).uds == "/run/vllm.sock"


CONFIG = """\
# the fleet's server
model: org/model
host: "127.0.0.1"   # only here
port: 6379
served-model-name: [one, 'two']
uvicorn-log-level: info
api-key: geheim
headless: false
ssl_certfile: /etc/c.pem
compilation-config:
  level: 3
"""


def test_a_configuration_file_is_read_for_the_same_facts():
    said = read_configuration(CONFIG)
    assert said == commandline.Serving(
        model="org/model",
        host="127.0.0.1",
        port=6379,
        served_model_names=("one", "two"),
        api_key=True,
        tls=True,
    )
    assert "geheim" not in repr(said)


def test_a_list_over_several_lines():
    assert read_configuration("served-model-name:\n  - one\n  - two\nport: 1\n") == commandline.Serving(
        served_model_names=("one", "two"), port=1
    )


@pytest.mark.parametrize("text", ["", ":", "- a\n- b", "port:\n", "\x00\xff{{", "a" * 100_000])
def test_a_configuration_file_that_is_none_says_nothing(text):
    assert read_configuration(text) == commandline.Serving()


def test_the_command_line_goes_before_the_file():
    merged = commandline.over(read_arguments(["m", "--port", "1"]), read_configuration("port: 2\nhost: h\n"))
    assert (merged.port, merged.host, merged.model) == (1, "h", "m")
