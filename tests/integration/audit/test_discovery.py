"""Servers of all kinds on one host, each found by what it shows: units, processes, sockets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.hosts import Host
from tests.fleet.watchdogs import await_true, start

from .conftest import Module, ansible

pytestmark = pytest.mark.systemd

SERVE = "/opt/vllm/bin/vllm serve org/model"


def service(command: str, more: str = "") -> str:
    return f"[Service]\n{more}\nExecStart={command}\n[Install]\nWantedBy=multi-user.target\n"


@pytest.fixture(scope="module")
def mixed(hosts: dict[str, Host]) -> Host:
    """Two units, a start script, a configuration file, a user's unit, a server without one, and two that are down."""
    host = hosts["mixed"]
    host.write("/etc/systemd/system/second.service", service(f"{SERVE} --port 8002 --root-path /llm --host 127.0.0.1"))
    host.write("/etc/systemd/system/scripted.service", service("/opt/vllm/start.sh"))
    host.write("/opt/vllm/start.sh", f"#!/bin/sh\nPORT=8003\n{SERVE} --port $PORT\n", mode="0755")
    host.write("/etc/systemd/system/configured.service", service("/opt/vllm/bin/vllm serve --config /etc/vllm.yaml"))
    host.write("/etc/vllm.yaml", "model: org/configured\nport: 8004\n")
    host.write("/etc/systemd/system/broken.service", service(f"{SERVE} --port ${{PORT}}", "Environment=PORT=8005"))
    host.write("/etc/systemd/system/broken.service.d/fail.conf", "[Service]\nExecStartPre=/bin/false\n")
    host.write("/etc/systemd/system/retired.service", service(f"{SERVE} --port 8006"))
    host.write("/home/ops/.config/systemd/user/mine.service", service(f"{SERVE} --port 8007"))
    host.run("chown", "-R", "ops:", "/home/ops")
    start(host, "vllm.service", "second.service", "scripted.service", "configured.service")
    host.run("systemctl", "start", "broken.service", check=False)
    host.keep_user_units("ops")
    host.run_as("ops", "systemctl", "--user", "enable", "--now", "mine.service")
    host.run("sh", "-c", f"setsid {SERVE} --port 8008 >/dev/null 2>&1 &")
    listening = "for p in 8000 8002 8003 8004 8007 8008; do ss -Hltn sport = :$p | grep -q . || exit 1; done"
    await_true(lambda: host.run("sh", "-c", listening, check=False).returncode == 0)
    return host


def by_port(answer: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {found["port"]: found for found in answer["found"]}


@pytest.fixture
def found(mixed: Host, run_module: Module) -> dict[str, Any]:
    return run_module("vllm_servers_info", "mixed")


def test_the_list_for_the_check(found: dict[str, Any]) -> None:
    assert [(one["url"], one.get("unit"), one.get("scope")) for one in found["servers"]] == [
        ("http://127.0.0.1:8004", "configured.service", "system"),
        ("http://127.0.0.1:8003", "scripted.service", "system"),
        ("http://127.0.0.1:8002", "second.service", "system"),
        ("http://127.0.0.1:8000", "vllm.service", "system"),
        ("http://127.0.0.1:8007", None, None),
        ("http://127.0.0.1:8008", None, None),
        ("http://127.0.0.1:8005", "broken.service", "system"),
    ]
    assert {key for one in found["servers"] for key in one} == {"url", "name", "unit", "scope", "kind"}
    assert (found["incomplete"], found["notes"]) == (False, [])


def test_the_evidence_of_a_plain_one(found: dict[str, Any]) -> None:
    plain = by_port(found)[8000]
    expected = {
        "model": "org/model",
        "served_model_names": ["llama"],
        "api_key": True,
        "interpreter": "/usr/bin/python3",
        "listening": True,
        "port_from": "command line",
        "user": "vllm",
        "active_state": "active",
        "enabled": "enabled",
        "unit_file": "/etc/systemd/system/vllm.service",
        "notes": [],
    }
    assert {key: plain[key] for key in expected} == expected
    assert "geheim" not in repr(found)


def test_what_is_said_of_the_others(found: dict[str, Any]) -> None:
    said = {port: one["notes"] for port, one in by_port(found).items()}
    assert "belongs to the user ops" in said[8007][0]
    assert said[8008] == ["no systemd unit runs it"]
    assert said[8005][0].startswith("it is not running (")
    assert by_port(found)[8004]["port_from"] == "configuration file"
    assert by_port(found)[8002]["root_path"] == "/llm"
    assert all(not one["listening"] for port, one in by_port(found).items() if port == 8005)


def test_the_user_sees_its_own_unit_and_says_what_stays_dark(mixed: Host, run_module: Module) -> None:
    answer = run_module("vllm_servers_info", "mixed", become=False)
    mine = by_port(answer)[8007]
    assert (mine["scope"], mine["api_key"], mine["listening"]) == ("user", False, True)
    assert {
        "url": "http://127.0.0.1:8007",
        "name": "mine.service",
        "kind": "backend",
        "unit": "mine.service",
        "scope": "user",
    } in (answer["servers"])
    assert answer["incomplete"] is True
    assert any("needs root" in note for note in by_port(answer)[8000]["notes"])


def test_a_server_that_is_stopped_dead_is_found_like_any_other(mixed: Host, run_module: Module) -> None:
    mixed.run("systemctl", "kill", "--signal=SIGSTOP", "vllm.service")
    try:
        frozen = by_port(run_module("vllm_servers_info", "mixed"))[8000]
    finally:
        mixed.run("systemctl", "kill", "--signal=SIGCONT", "vllm.service")
    assert (frozen["running"], frozen["listening"], frozen["model"]) == (True, True, "org/model")


def test_a_server_that_died_does_not_vanish(mixed: Host, run_module: Module) -> None:
    mixed.run("systemctl", "stop", "vllm.service")
    try:
        answer = run_module("vllm_servers_info", "mixed")
    finally:
        mixed.run("systemctl", "start", "vllm.service")
    assert "http://127.0.0.1:8000" in [one["url"] for one in answer["servers"]]
    assert "it is not running (inactive)" in by_port(answer)[8000]["notes"]


def test_auto_gives_the_verdicts_of_a_list_written_by_hand(hosts: dict[str, Host], state: Path, tmp_path: Path) -> None:
    by_hand = [{"unit": "vllm.service", "scope": "system", "kind": "backend", "url": "http://127.0.0.1:8000"}]
    verdicts = []
    for servers in (by_hand, "auto"):
        report = tmp_path / "report.json"
        given = {"vllm_servers": servers, "vllm_hosts": "clean", "vllm_report_file": str(report), "vllm_fail_on": ""}
        done = ansible("ansible-playbook", "-i", str(state / "inventory"), "playbooks/check.yml", "-b", "-e", json.dumps(given))
        assert done.returncode == 0, done.stdout + done.stderr
        (row,) = json.loads(report.read_text())["servers"]
        verdicts.append((row["unit"], row["url"], row["verdict"], row["reason"]))
    assert verdicts[0] == verdicts[1]
