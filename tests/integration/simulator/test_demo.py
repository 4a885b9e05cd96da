"""The demo: its fleet is that of its inventory, and its conclusion is strict."""

from __future__ import annotations

import configparser
import re
import socket
from pathlib import Path

import pytest

from tests.simulator import demo
from tests.simulator.vllm_sim.states import STATES

HOSTS = (demo.INVENTORY / "hosts").read_text(encoding="utf-8")
VARIABLES = (demo.INVENTORY / "group_vars" / "vllm.yml").read_text(encoding="utf-8")
PROXY_HOST = (demo.INVENTORY / "host_vars" / "demo-proxy.yml").read_text(encoding="utf-8")


def row(port, verdict, reason):
    return {"host": f"host-{port}", "name": "server", "url": f"http://127.0.0.1:{demo.FIRST_PORT + port}",
            "verdict": verdict, "reason": reason, "message": "what it says"}


def true_report():
    rows = [row(place.port, place.verdict, place.reason) for place in demo.FLEET]
    return {"servers": rows}


def test_the_inventory_names_the_ports_of_the_fleet():
    in_hosts = {int(port) for port in re.findall(r"demo_port=(\d+)", HOSTS)}
    in_proxy_host = {int(port) for port in re.findall(r"\+ (\d+) }}", PROXY_HOST)}
    assert in_hosts | in_proxy_host == set(demo.PORTS)


def test_the_inventory_can_be_read_as_ini():
    parser = configparser.ConfigParser(allow_no_value=True, delimiters=("=",))
    parser.read_string(HOSTS)
    assert parser.sections() == ["vllm"]


def test_the_default_ports_are_those_of_the_inventory():
    assert f"demo_first_port: {demo.FIRST_PORT}\n" in VARIABLES


def test_every_place_starts_in_a_known_state():
    options = [place.options for place in demo.FLEET if place.options and "proxy" not in place.options]
    assert {each["state"] for each in options} <= set(STATES)


def test_a_run_with_true_verdicts_is_right():
    right, text = demo.conclusion(2, true_report(), demo.FIRST_PORT)
    assert right
    assert "3 stuck, 1 dead, 1 unresponsive" in text


def test_one_wrong_verdict_spoils_it():
    report = true_report()
    report["servers"][0]["verdict"] = "stuck"
    right, text = demo.conclusion(2, report, demo.FIRST_PORT)
    assert not right
    assert "host-0 server: stuck (progress), but is busy (progress)" in text


def test_a_missing_server_spoils_it():
    report = true_report()
    report["servers"].pop()
    assert demo.conclusion(2, report, demo.FIRST_PORT) == (
        False, "Wrong verdicts:\n  1 servers are missing in the report")


def test_a_host_that_could_not_be_checked_spoils_it():
    report = true_report()
    report["servers"][0] = {"host": "demo-busy", "name": "-", "verdict": "unknown", "message": "no Python there"}
    assert "demo-busy: no Python there" in demo.conclusion(2, report, demo.FIRST_PORT)[1]


def test_a_run_that_does_not_fail_is_not_right():
    assert demo.conclusion(0, true_report(), demo.FIRST_PORT)[0] is False


def test_a_port_that_is_taken_is_named(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(demo, "PORTS", [0])
        with pytest.raises(demo.DemoError, match=f"Port {port} is taken"):
            demo.check_ports(port)


def test_a_command_may_run_instead_of_the_check():
    assert demo.parse(["--first-port", "5", "--", "bash", "-c", "true"]).command == ["bash", "-c", "true"]


def test_the_playbook_is_there():
    assert Path(demo.PLAYBOOK).is_file()
