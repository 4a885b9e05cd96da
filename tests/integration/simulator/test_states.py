"""Every state a simulator can start in is what it is called."""

from __future__ import annotations

import re

import pytest

from tests.integration.simulator.waiting import wait_until
from tests.simulator.vllm_sim.states import STATES

READS = 15  # in a row; they take longer than a step


def shown(server, engine=0):
    """Running, waiting and steps as the metrics show them."""
    page = server.get("/metrics")[1]
    return tuple(
        int(float(re.search(rf'^vllm:{name}{{engine="{engine}"[^}}]*}} (\S+)$', page, re.MULTILINE).group(1)))
        for name in ("num_requests_running", "num_requests_waiting", "iteration_tokens_total_count"))


def assert_works(server, engine=0):
    before = shown(server, engine)
    wait_until(lambda: shown(server, engine) != before)


def assert_stands_still(server, engine=0):
    before = shown(server, engine)
    assert [shown(server, engine) for _ in range(READS)] == [before] * READS


@pytest.mark.parametrize(("state", "running", "waiting", "works"), [
    ("busy", 3, 0, True), ("queued", 12, 8, True), ("frozen-busy", 3, 0, False), ("frozen-queued", 12, 8, False),
    ("frozen-idle", 0, 0, False), ("idle", 0, 0, False), ("not-admitted", 0, 3, False),
    ("paused-keep", 3, 0, False), ("stale", 3, 0, False), ("dead-engine", 3, 0, False)])
def test_a_state_shows_on_the_page(make_server, state, running, waiting, works):
    server = make_server("--state", state, "--step-seconds", "0.005")
    assert shown(server)[:2] == (running, waiting)
    (assert_works if works else assert_stands_still)(server)


def test_a_fresh_server_was_never_asked(make_server):
    assert shown(make_server("--state", "fresh")) == (0, 0, 0)


def test_one_of_two_engines_is_frozen(make_server):
    server = make_server("--state", "one-frozen", "--data-parallel-size", "2", "--step-seconds", "0.005")
    assert_works(server, 0)
    assert_stands_still(server, 1)
    assert shown(server, 1)[0] == 3


def test_a_load_may_be_chosen(make_server):
    assert shown(make_server("--state", "frozen-busy", "--load", "7"))[:2] == (7, 0)


@pytest.mark.parametrize(("state", "path", "says"), [
    ("sleeping", "/metrics", 'sleep_state="awake"} 0.0'), ("sleeping", "/is_sleeping", "true"),
    ("paused", "/is_paused", "true"), ("paused-keep", "/is_paused", "true"), ("busy", "/is_paused", "false")])
def test_sleep_and_pause_are_told(make_server, state, path, says):
    assert says in make_server("--state", state).get(path)[1]


def test_a_dead_engine_is_told_by_health(make_server):
    assert make_server("--state", "dead-engine").get("/health")[0] == 503


def test_a_frozen_http_side_answers_nothing(make_server):
    server = make_server("--state", "http-frozen")
    with pytest.raises((TimeoutError, OSError)):
        server.get("/health", timeout=0.1)


def test_a_long_step_after_idle_shows_nothing(make_server):
    server = make_server("--state", "long-step")
    assert shown(server)[:2] == (0, 0)
    assert server.server.engines[0].truth()["open"] == 1


def test_a_long_prefill_shows_one_request_and_no_step(make_server):
    server = make_server("--state", "prefill")
    steps = shown(server)[2]
    server.get("/health")
    assert shown(server) == (1, 0, steps)


@pytest.mark.parametrize("state", ["busy", "frozen-busy", "frozen-idle", "sleeping"])
def test_a_pooling_server_shows_no_load_in_any_state(make_server, state):
    server = make_server("--state", state, "--runner", "pooling", "--step-seconds", "0.005")
    assert shown(server)[:2] == (0, 0)
    (assert_works if state == "busy" else assert_stands_still)(server)


def test_every_state_is_named_after_its_function():
    assert [name.replace("-", "_") for name in STATES] == [enter.__name__[1:] for enter in STATES.values()]
