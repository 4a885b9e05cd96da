"""A working server is never sent a request, and answered with the first read that shows life."""

from __future__ import annotations

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import driving

from tests.integration.check.test_verdicts_over_http import target
from tests.simulator.running import Simulator


@pytest.mark.parametrize("requests", [1, 12, 52], ids=["1 of 12", "12 of 12", "12 and 40 queued"])
def test_no_request_is_sent_to_a_working_server(requests: int) -> None:
    with Simulator(max_num_seqs=12) as simulator:
        simulator.control("load", requests=requests)
        simulator.until(lambda sim: _in_flight(sim) >= requests, what="the load")
        simulator.control("reset-counts")
        for _again in range(3):
            (judgement,) = driving.check([target(simulator.url)])
            assert (judgement.verdict, judgement.probes) == ("busy", 0)
        counts = simulator.counts()
    assert counts["probes"] == 0
    assert counts["completions"] == 0
    assert counts["failed_in_flight"] == 0


@pytest.mark.parametrize("release", ["0.10.2", "0.32.0"])
def test_no_request_is_sent_to_a_server_that_sleeps(release: str) -> None:
    """0.10.2 does not show in its metrics that it sleeps."""
    with Simulator(release=release, state="sleeping") as simulator:
        (judgement,) = driving.check([target(simulator.url)])
        counts = simulator.counts()
    assert (judgement.verdict, judgement.reason, judgement.probes) == ("sleeping", "sleep_mode", 0)
    assert counts["probes"] == counts["completions"] == 0


def _in_flight(simulator: Simulator) -> int:
    return sum(engine["running"] + engine["waiting"] for engine in simulator.state()["engines"])


def test_idle_server_is_sent_one_request_of_one_token() -> None:
    with Simulator(state="idle") as simulator:
        (judgement,) = driving.check([target(simulator.url)])
        counts = simulator.counts()
    assert (judgement.verdict, judgement.probes) == ("idle", 1)
    assert counts["probes"] == 1


def test_named_engine_is_the_one_that_is_asked() -> None:
    with Simulator(data_parallel_size=2, state="idle") as simulator:
        simulator.control("freeze", engine=1)
        (judgement,) = driving.check([target(simulator.url)])
    assert (judgement.verdict, judgement.reason) == ("stuck", "no_answer")
    assert {row.engine: row.probe for row in judgement.engines} == {"0": "answered", "1": "open"}

