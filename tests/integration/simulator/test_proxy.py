"""The least-connection proxy in front of two servers."""

from __future__ import annotations

import re

import pytest

from tests.integration.simulator.waiting import wait_until


@pytest.fixture
def pair(make_server):
    backends = [make_server("--served-model-name", "same"), make_server("--served-model-name", "same")]
    proxy = make_server("--proxy", *(backend.url for backend in backends))
    return proxy, backends


def start_time(page):
    return re.search(r"^process_start_time_seconds (\S+)$", page, re.MULTILINE).group(1)


def test_reads_of_the_metrics_come_from_either_server(pair):
    proxy, backends = pair
    backends[0].server.page.started_at -= 1000
    times = [start_time(proxy.get("/metrics")[1]) for _ in range(4)]
    assert times[0] == times[2] != times[1] == times[3]


def test_everything_is_forwarded(pair):
    proxy, _ = pair
    assert '"same"' in proxy.get("/v1/models")[1]
    assert proxy.post("/v1/completions", {"max_tokens": 2})[0] == 200
    assert proxy.post("/v1/completions", {"model": "other"})[0] == 404
    status, text = proxy.post("/v1/completions", {"max_tokens": 2, "stream": True})
    assert (status, text.count("x ")) == (200, 2)


def test_the_proxy_counts_what_it_is_asked(pair):
    proxy, backends = pair
    proxy.get("/v1/models")
    proxy.post("/v1/completions", {"max_tokens": 1})
    counts = proxy.counts()
    assert counts["requests"] == {"GET /v1/models": 1, "POST /v1/completions": 1}
    assert (counts["probes"], sum(backend.counts()["probes"] for backend in backends)) == (1, 1)


def test_open_requests_spread_over_the_servers(pair, open_request):
    proxy, backends = pair
    for _ in range(4):
        open_request(proxy)
    wait_until(lambda: [backend.counts()["open"] for backend in backends] == [2, 2])


def test_a_client_that_leaves_is_noticed_behind_the_proxy(pair, open_request):
    proxy, backends = pair
    connection = open_request(proxy)
    wait_until(lambda: sum(backend.counts()["open"] for backend in backends) == 1)
    connection.close()
    wait_until(lambda: sum(backend.counts()["client_gone"] for backend in backends) == 1)
    wait_until(lambda: proxy.counts()["client_gone"] == 1)


def test_a_server_that_is_gone_is_a_bad_gateway(make_server):
    backend = make_server()
    proxy = make_server("--proxy", backend.url)
    backend.stop()
    assert proxy.get("/metrics")[0] == 502
