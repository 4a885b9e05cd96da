"""What docker and podman do by themselves."""

import json

from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit import enginefacts
from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery import containers

VLLM = {
    "Name": "/llm",
    "State": {"Running": True},
    "Config": {
        "Image": "vllm/vllm-openai:latest",
        "Env": ["HF_TOKEN=geheim"],
        "Labels": {"autoheal": "true"},
        "Healthcheck": {"Test": ["CMD-SHELL", "curl -f http://localhost:8000/health"]},
    },
    "HostConfig": {"RestartPolicy": {"Name": "unless-stopped", "MaximumRetryCount": 0}},
}
AUTOHEAL = {
    "Name": "/autoheal",
    "State": {"Running": True},
    "Config": {"Image": "willfarrell/autoheal:1.2.0", "Env": ["AUTOHEAL_CONTAINER_LABEL=all"]},
    "HostConfig": {"RestartPolicy": {"Name": "always"}},
}
PODMAN = {
    "Name": "systemd-vllm",
    "ImageName": "docker.io/vllm/vllm-openai:latest",
    "State": {"Running": True},
    "Config": {
        "Image": "docker.io/vllm/vllm-openai:latest",
        "Healthcheck": {"Test": ["CMD-SHELL", "true"]},
        "HealthcheckOnFailureAction": "restart",
    },
    "HostConfig": {"RestartPolicy": {"Name": ""}},
}


def found(*rows, names=("llm",), engine="docker"):
    return enginefacts.parties(names, enginefacts.inspected(engine, json.dumps(rows)))


def test_a_restart_policy_and_autoheal():
    policy, healer = found(VLLM, AUTOHEAL)
    assert (policy.kind, policy.name) == ("container", "docker (unless-stopped)")
    assert (healer.kind, healer.name, healer.active) == ("autoheal", "autoheal", True)
    assert "geheim" not in repr((policy, healer))


def test_autoheal_that_looks_for_another_label():
    other = json.loads(json.dumps(AUTOHEAL).replace("=all", "=mine"))
    assert [party.kind for party in found(VLLM, other)] == ["container"]


def test_a_health_check_of_podman_that_restarts():
    (party,) = found(PODMAN, names=("systemd-vllm",), engine="podman")
    assert (party.name, party.action) == ("podman health check", "restart")


def test_containers_of_other_names_do_not_count():
    assert found(VLLM, names=("other",)) == []


def test_text_that_makes_no_sense():
    for text in ("", "{}", "[1, null]", '[{"Config": 7, "HostConfig": [], "State": "x"}]'):
        assert enginefacts.parties(("llm",), enginefacts.inspected("docker", text)) == []


def test_what_the_unit_tells_the_engine():
    command = "podman run --restart=always --health-on-failure kill --name x vllm/vllm-openai m"
    text = "[Service]\nExecStart=/usr/bin/podman run --restart=always \\\n --health-on-failure kill vllm/vllm-openai m\n"
    files = {"/etc/systemd/system/vllm.service": text}
    policy, health = enginefacts.written_in_unit(containers.recognise(command.split()), files)
    assert (policy.name, str(policy.places[0])) == ("podman (always)", "/etc/systemd/system/vllm.service:2")
    assert (health.action, str(health.places[0])) == ("kill", "/etc/systemd/system/vllm.service:3")
