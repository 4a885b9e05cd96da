"""The simulated server runs as a unit of a real host, with users whose requests are counted on both sides."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fleet.fleet import fleet
from tests.fleet.simulator import SimulatedServer

pytestmark = pytest.mark.systemd


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedServer]:
    with fleet(tmp_path_factory.mktemp("fleet"), ["h1"]) as hosts:
        simulated = SimulatedServer(hosts["h1"])
        simulated.start("--state", "idle")
        yield simulated


def test_users_of_a_working_server_lose_no_request(server: SimulatedServer) -> None:
    server.send_load(4)
    server.host.run("sleep", "4")
    results = server.load_results()
    assert results
    assert {result["outcome"] for result in results} == {"ok"}
    assert server.counts()["failed_in_flight"] == 0


def test_a_restart_while_frozen_fails_the_open_requests_and_then_serves(server: SimulatedServer) -> None:
    before = server.invocation()
    server.send_load(3)
    server.control("freeze")
    server.host.run("systemctl", "restart", server.unit)
    server.await_models()
    server.send_load(3)
    assert server.invocation() != before
    assert {entry["outcome"] for entry in server.requests() if entry["event"] == "end"} >= {"failed"}
    assert any(result["outcome"] != "ok" for result in server.load_results())


def test_options_hold_from_the_next_start_on(server: SimulatedServer) -> None:
    server.set_options("--state", "frozen-idle")
    server.host.run("systemctl", "restart", server.unit)
    server.await_models()
    assert server.state()["engines"][0]["frozen"]
