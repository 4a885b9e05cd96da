"""What a job of many hosts leaves behind: complete artifacts, and little output."""

from __future__ import annotations

import json

import pytest

from tests.integration.awx.conftest import Launched, Servers, at, fleet_of

pytestmark = pytest.mark.awx

CHECK = "playbooks/check.yml"
LIMIT = 200_000  # bytes; a job that prints much more may be marked failed though it ended well


def test_fifty_servers_are_all_in_the_artifacts_without_a_warning(core: str, launched: Launched, servers: Servers):
    hosts = {f"gpu-{number:02}": at(servers.busy if number % 2 else servers.idle) for number in range(50)}
    job = launched(core, fleet_of(hosts, core), CHECK)
    assert (job.status, job.rc) == ("successful", 0), job.output
    assert job.verdicts == {host: "busy" if int(host[-2:]) % 2 else "idle" for host in hosts}
    assert job.fleet["counts"] == {"busy": 25, "idle": 25}
    assert all(row["message"] and row["engines"] and row["reads"] for row in job.fleet["servers"])
    assert job.warnings == []


@pytest.fixture(scope="module")
def two_hundred(servers: Servers) -> dict:
    """Names as long as those of real hosts."""
    kinds = (servers.busy, servers.idle, servers.busy, servers.idle)
    return {f"gpu-{number:03}.rack-{number % 17:02}.example.com": at(kinds[number % 4]) for number in range(200)}


def test_the_output_of_two_hundred_servers_is_small(usual: str, launched: Launched, servers: Servers, two_hundred: dict):
    job = launched(usual, fleet_of(two_hundred, usual), CHECK)
    print(f"{len(job.raw_output.encode())} bytes shown, {len(json.dumps(job.events))} bytes of events")
    assert len(job.raw_output.encode()) < LIMIT
    assert len(job.fleet["servers"]) == 200
