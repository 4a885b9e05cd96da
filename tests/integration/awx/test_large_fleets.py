"""What a job of many hosts leaves behind: complete artifacts, and little output."""

from __future__ import annotations

import json
import typing as t
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.integration.awx.conftest import Launched, at, fleet_of
from tests.simulator.running import Simulator

pytestmark = pytest.mark.awx

CHECK = "playbooks/check.yml"
LIMIT = 200_000  # bytes for 200 servers; a job that prints much more may be marked failed though it ended well


# For all releases together, which pytest would otherwise start fifty servers for each.
@pytest.fixture(scope="session")
def fifty() -> t.Iterator[list[Simulator]]:
    """Fifty servers, every fifth of them at work, in steps slow enough for a small machine."""
    idle: dict[str, t.Any] = {"state": "idle"}
    kinds = [idle, idle, idle, idle, {"state": "busy", "step_seconds": 0.2}] * 10
    with ExitStack() as stack:
        with ThreadPoolExecutor(8) as starting:  # each is waited for until it serves
            servers = list(starting.map(lambda options: stack.enter_context(Simulator(**options)), kinds))
        yield servers


def test_fifty_servers_are_all_in_the_artifacts_without_a_warning(core: str, launched: Launched, fifty: list[Simulator]):
    # Names as long as those of real hosts, with ten servers on each.
    hosts = {f"gpu-{number:03}.rack-{number % 3:02}.example.com": at(*fifty[number::5]) for number in range(5)}
    job = launched(core, fleet_of(hosts, core), CHECK)
    assert (job.status, job.rc) == ("successful", 0), job.output
    assert job.fleet["hosts"] == {"checked": 5, "unreachable": 0, "failed": 0}
    verdicts = {row["url"]: row["verdict"] for row in job.fleet["servers"]}
    assert set(verdicts) == {server.url for server in fifty}
    assert {url for url, verdict in verdicts.items() if verdict == "busy"} >= {server.url for server in fifty[4::5]}
    # On a slow machine an idle server may be seen at work on the one token that it was asked for: busy, then.
    assert set(verdicts.values()) <= {"idle", "busy"}
    assert all(row["healthy"] and row["message"] and row["engines"] and row["reads"] for row in job.fleet["servers"])
    assert job.warnings == []
    print(f"{len(job.raw_output.encode())} bytes shown, {len(json.dumps(job.artifacts))} bytes of artifacts")


def test_the_output_of_two_hundred_servers_is_small(usual: str, launched: Launched, fifty: list[Simulator]):
    hosts = {f"gpu-{number:03}.example.com": at(*fifty[number % 2 :: 2][:20]) for number in range(10)}
    job = launched(usual, fleet_of(hosts, usual), CHECK)
    assert len(job.fleet["servers"]) == 200
    assert len(job.raw_output.encode()) < LIMIT
