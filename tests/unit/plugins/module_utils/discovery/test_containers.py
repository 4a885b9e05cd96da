"""Commands that start containers, as quadlet and people write them."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery import commandline, containers
from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery.containers import Published, publication

QUADLET = (
    "/usr/bin/podman run --name=systemd-vllm --cidfile=/run/vllm.cid --replace --rm --cgroups=split --sdnotify=conmon "
    "-d --device=nvidia.com/gpu=all -v /models:/models --publish 8080:8000 --env HF_HOME=/models "
    "docker.io/vllm/vllm-openai:v0.11.0 --model org/model --served-model-name one"
)
DOCKER = (
    "/usr/bin/docker run --rm --gpus all --ipc=host -e VLLM_API_KEY=geheim --name vllm -p 127.0.0.1:9000:8001 "
    "vllm/vllm-openai:latest org/model --port 8001"
)


def test_a_quadlet():
    found = containers.recognise(QUADLET.split())
    assert (found.engine, found.name) == ("podman", "systemd-vllm")
    assert found.image == "docker.io/vllm/vllm-openai:v0.11.0"
    assert found.published == (Published(8000, 8080),)
    assert commandline.read_arguments(found.command.arguments).served_model_names == ("one",)


def test_docker_with_a_key_that_is_not_kept():
    found = containers.recognise(DOCKER.split())
    assert found.published == (Published(8001, 9000, "127.0.0.1"),)
    assert found.api_key is True
    assert "geheim" not in repr(found)
    assert commandline.read_arguments(found.command.arguments).port == 8001


def test_the_network_of_the_host():
    assert containers.recognise(["docker", "run", "--network", "host", "vllm/vllm-openai", "m"]).host_network
    assert containers.recognise(["docker", "run", "--net=host", "vllm/vllm-openai", "m"]).host_network


def test_an_image_of_another_name_that_runs_vllm():
    line = "podman run --rm registry.example/llm:1 vllm serve m --port 7"
    found = containers.recognise(line.split())
    assert commandline.read_arguments(found.command.arguments).port == 7


def test_an_entry_point_of_its_own():
    found = containers.recognise(
        ["podman", "run", "--entrypoint", '["python3","-m","vllm.entrypoints.openai.api_server"]', "img", "--port=7"]
    )
    assert commandline.read_arguments(found.command.arguments).port == 7


@pytest.mark.parametrize(
    "line",
    [
        "podman run --rm docker.io/library/postgres:16",
        "docker run",
        "docker run --rm -e A=b",
        "docker exec vllm ls",
        "/usr/bin/vllm serve m",
        "",
    ],
)
def test_no_vllm_container(line):
    assert containers.recognise(line.split()) is None


@pytest.mark.parametrize(
    "text, expected",
    [
        ("8080:8000", [Published(8000, 8080)]),
        ("8080:8000/tcp", [Published(8000, 8080)]),
        ("127.0.0.1:8080:8000", [Published(8000, 8080, "127.0.0.1")]),
        ("[::1]:8080:8000", [Published(8000, 8080, "::1")]),
        ("8000", [Published(8000, None)]),
        ("127.0.0.1::8000", [Published(8000, None, "127.0.0.1")]),
        ("8000-8001:9000-9001", [Published(9000, 8000), Published(9001, 8001)]),
        ("8080:8000/udp", []),
        ("nonsense", []),
    ],
)
def test_published_ports(text, expected):
    assert list(publication(text)) == expected


def test_the_list_of_docker():
    text = (
        '{"ID":"abc","Image":"vllm/vllm-openai","Names":"vllm","Ports":"0.0.0.0:8080->8000/tcp, :::8080->8000/tcp"}\n'
        "garbage\n[]\n"
    )
    (found,) = containers.listed(text)
    assert (found.ident, found.name) == ("abc", "vllm")
    assert found.published == (Published(8000, 8080, "0.0.0.0"), Published(8000, 8080, "::"))


@pytest.mark.parametrize(
    "more",
    [
        "--health-cmd curl -sf http://localhost:8000/health || exit 1",
        "-e X=a b",
        "--label owner=the team",
        "-u1000:1000 --read-only-tmpfs",
        "--unsetenv-all --passwd",
    ],
)
def test_an_image_behind_what_hides_it_is_found_by_its_name(more):
    line = f"/usr/bin/podman run --name my-vllm {more} -p 9000:8000 docker.io/vllm/vllm-openai:v0.9 --model org/m"
    found = containers.recognise(line.split())
    assert (found.image, found.name) == ("docker.io/vllm/vllm-openai:v0.9", "my-vllm")
    assert found.published == (containers.Published(8000, 9000),)
    assert found.command.arguments == ("--model", "org/m")


@pytest.mark.parametrize(
    "line",
    [
        "docker run --name team/vllm:1 docker.io/library/postgres:16",
        "docker run -e URL=http://vllm:8000 --health-cmd curl -f http://vllm:8000/health docker.io/open/webui:1",
        "docker run -v vllm:/data --label a b redis:7",
    ],
)
def test_a_name_that_looks_like_an_image_is_none(line):
    assert containers.recognise(line.split()) is None
