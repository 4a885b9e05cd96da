"""What the simulator answers over HTTP, rightly and wrongly."""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
import urllib.error

import pytest

from tests.integration.simulator.waiting import refuses, wait_until

SILENT = 0.2  # seconds after which something that does not answer is taken to be silent


def sample(page, name, engine=0):
    found = re.search(rf'^vllm:{name}{{engine="{engine}"[^}}]*}} (\S+)$', page, re.MULTILINE)
    return float(found.group(1))


def running(server):
    return sample(server.get("/metrics")[1], "num_requests_running")


def is_silent(server, path):
    try:
        server.get(path, timeout=SILENT)
    except (TimeoutError, OSError):
        return True
    return False


@pytest.mark.parametrize("path", ["/metrics", "/health", "/ping", "/version", "/load", "/v1/models",
                                  "/is_paused", "/is_sleeping"])
def test_a_server_answers(make_server, path):
    assert make_server().get(path)[0] == 200


def test_a_completion_is_answered(make_server):
    status, text = make_server().post("/v1/completions", {"prompt": "hello there", "max_tokens": 3})
    answer = json.loads(text)
    assert status == 200
    assert answer["usage"]["completion_tokens"] == 3
    assert answer["choices"][0]["finish_reason"] == "length"


def test_a_chat_is_answered(make_server):
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}
    status, text = make_server().post("/v1/chat/completions", body)
    assert status == 200
    assert json.loads(text)["choices"][0]["message"]["role"] == "assistant"


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_an_answer_can_be_streamed(make_server, path):
    status, text = make_server().post(path, {"max_tokens": 4, "stream": True})
    events = [line[len("data: "):] for line in text.splitlines() if line]
    assert (status, events[-1]) == (200, "[DONE]")
    assert json.loads(events[-2])["choices"][0]["finish_reason"] == "length"
    assert text.count("x ") == 4


@pytest.mark.parametrize(("body", "status"), [
    ({"model": "other"}, 404), ({"max_tokens": 0}, 400), ({"max_tokens": "many"}, 400), ({"prompt": 7}, 400)])
def test_a_wrong_request_is_refused_in_vllm_s_words(make_server, body, status):
    answered, text = make_server().post("/v1/completions", body)
    assert (answered, json.loads(text)["error"]["code"]) == (status, status)


def test_old_releases_word_errors_without_a_lid(make_server):
    _, text = make_server("--release", "0.8.5-v0").post("/v1/completions", {"model": "other"})
    assert json.loads(text)["type"] == "NotFoundError"


@pytest.mark.parametrize(("method", "path", "status"), [
    ("GET", "/nothing", 404), ("GET", "/v1/completions", 404), ("POST", "/metrics", 405)])
def test_what_does_not_exist(make_server, method, path, status):
    server = make_server()
    assert (server.get(path) if method == "GET" else server.post(path))[0] == status


def test_models_are_listed_with_their_adapters(make_server):
    server = make_server("--served-model-name", "base", "alias", "--lora", "tuned")
    cards = json.loads(server.get("/v1/models")[1])["data"]
    assert [(card["id"], card["parent"]) for card in cards] == [("base", None), ("alias", None), ("tuned", "base")]
    for card in cards:
        assert server.post("/v1/completions", {"model": card["id"], "max_tokens": 1})[0] == 200
    assert 'model_name="alias"' not in server.get("/metrics")[1]


def test_with_a_key_only_v1_is_closed(make_server):
    server = make_server("--api-key", "secret")
    for path in ("/metrics", "/health", "/version", "/ping", "/load"):
        assert server.get(path)[0] == 200
    assert server.get("/v1/models")[0] == 401
    assert server.post("/v1/completions", {"max_tokens": 1})[0] == 401
    assert server.get("/v1/models", Authorization="Bearer wrong")[0] == 401
    assert server.get("/v1/models", Authorization="Bearer secret")[0] == 200


def test_a_root_path_is_answered_with_and_without(make_server):
    server = make_server("--root-path", "/x")
    for path in ("/metrics", "/x/metrics", "/health", "/x/health", "/v1/models", "/x/v1/models"):
        assert server.get(path)[0] == 200


def test_a_pooling_server_has_no_completions(make_server):
    server = make_server("--runner", "pooling")
    assert server.post("/v1/completions", {"max_tokens": 1})[0] == 404
    assert server.post("/v1/chat/completions", {"max_tokens": 1})[0] == 404
    assert server.post("/v1/embeddings", {"input": "text"})[0] == 200
    assert server.post("/pooling", {"input": "text"})[0] == 200
    page = server.get("/metrics")[1]
    assert sample(page, "iteration_tokens_total_count") == 2


def test_without_development_mode_nothing_can_be_paused(make_server):
    server = make_server("--no-dev-mode")
    assert server.get("/is_paused")[0] == 404
    assert server.post("/sleep")[0] == 404


def test_sleep_and_pause_over_http(make_server):
    server = make_server()
    assert server.post("/sleep?level=1")[0] == 200
    assert 'sleep_state="awake"} 0.0' in server.get("/metrics")[1]
    assert server.post("/wake_up")[0] == 200
    assert server.post("/pause?mode=keep") == (200, '{"status":"paused"}')
    assert server.get("/is_paused")[1] == '{"is_paused":true}'
    assert server.post("/resume")[0] == 200
    assert server.get("/is_paused")[1] == '{"is_paused":false}'
    assert server.post("/v1/completions", {"max_tokens": 1})[0] == 200


def test_the_rank_names_the_engine(make_server):
    server = make_server("--data-parallel-size", "2")
    for _ in range(3):
        assert server.post("/v1/completions", {"max_tokens": 2}, X_data_parallel_rank="1")[0] == 200
    page = server.get("/metrics")[1]
    assert sample(page, "generation_tokens_total", 0) == 0
    assert sample(page, "generation_tokens_total", 1) == 6


@pytest.mark.parametrize("rank", ["2", "-1", "first"])
def test_an_unknown_rank_is_refused(make_server, rank):
    server = make_server("--data-parallel-size", "2")
    assert server.post("/v1/completions", {"max_tokens": 1}, X_data_parallel_rank=rank)[0] == 400


def test_an_old_release_ignores_the_rank_and_freezes_as_a_whole(make_server):
    server = make_server("--data-parallel-size", "2", "--release", "0.10.2")
    assert server.post("/v1/completions", {"max_tokens": 1}, X_data_parallel_rank="7")[0] == 200
    server.control("freeze", engine=0)
    assert all(engine["frozen"] for engine in server.server.truth()["engines"])


def test_requests_spread_over_engines(make_server, open_request):
    server = make_server("--data-parallel-size", "2")
    connections = [open_request(server) for _ in range(4)]
    wait_until(lambda: [engine.open_requests() for engine in server.server.engines] == [2, 2])
    for connection in connections:
        connection.close()


def test_one_frozen_engine_does_not_hold_up_the_other(make_server):
    server = make_server("--data-parallel-size", "2")
    server.control("freeze", engine=1)
    assert server.post("/v1/completions", {"max_tokens": 1}, X_data_parallel_rank="0")[0] == 200
    with pytest.raises((TimeoutError, urllib.error.URLError)):
        server.post("/v1/completions", {"max_tokens": 1}, timeout=SILENT, X_data_parallel_rank="1")


def test_a_frozen_engine_leaves_the_http_side_alone(make_server):
    server = make_server("--load", "2")
    server.control("freeze")
    first = server.get("/metrics")[1]
    assert server.get("/health")[0] == 200
    assert server.get("/v1/models")[0] == 200
    assert sample(first, "iteration_tokens_total_count") == sample(
        server.get("/metrics")[1], "iteration_tokens_total_count")


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_ends_its_request(make_server, open_request, stream):
    server = make_server()
    connection = open_request(server, stream=stream)
    wait_until(lambda: running(server) == 1)
    connection.close()
    wait_until(lambda: running(server) == 0)
    wait_until(lambda: server.counts()["client_gone"] == 1)
    assert server.counts()["failed_in_flight"] == 0


def test_probes_and_completions_are_counted(make_server):
    server = make_server()
    server.post("/v1/completions", {"max_tokens": 1})
    server.post("/v1/chat/completions", {"max_completion_tokens": 1})
    server.post("/v1/completions", {"max_tokens": 2})
    server.get("/metrics")
    counts = server.counts()
    assert (counts["completions"], counts["probes"], counts["finished"]) == (3, 2, 3)
    assert counts["requests"] == {
        "POST /v1/completions": 2, "POST /v1/chat/completions": 1, "GET /metrics": 1}
    assert counts["cpu_seconds"] > 0


def test_neither_self_made_load_nor_control_is_counted(make_server):
    server = make_server("--load", "3")
    wait_until(lambda: running(server) == 3)
    server.control("load", requests=0)
    wait_until(lambda: running(server) == 0)
    assert server.counts()["completions"] == 0
    assert set(server.counts()["requests"]) == {"GET /metrics"}


def test_counts_can_be_set_to_zero(make_server):
    server = make_server()
    server.post("/v1/completions", {"max_tokens": 1})
    server.control("reset-counts")
    assert server.counts()["completions"] == 0


def test_a_frozen_http_side_accepts_and_does_not_answer(make_server):
    server = make_server()
    server.control("freeze-http")
    assert is_silent(server, "/health")
    assert is_silent(server, "/metrics")
    server.control("thaw-http")
    assert server.get("/health")[0] == 200


def test_a_request_held_by_the_http_side_is_answered_after_it(make_server):
    server = make_server()
    server.control("freeze-http")
    answers = []
    thread = threading.Thread(target=lambda: answers.append(server.get("/health")[0]))
    thread.start()
    time.sleep(0.02)
    server.control("thaw-http")
    thread.join(5)
    assert answers == [200]


@pytest.mark.parametrize(("fault", "status", "part"), [
    ({"status": 500}, 500, "as ordered"), ({"mode": "html"}, 200, "<html>"), ({"mode": "empty"}, 200, ""),
    ({"mode": "garbage"}, 200, "\x00\x01"), ({"delay": 0.01}, 200, "vllm:"),
    ({"mode": "html", "status": 403}, 403, "<html>")])
def test_metrics_can_be_answered_wrongly(make_server, fault, status, part):
    server = make_server()
    server.control("fault", path="/metrics", **fault)
    answered, text = server.get("/metrics")
    assert answered == status
    assert part in text
    server.control("heal")
    assert "vllm:" in server.get("/metrics")[1]


def test_metrics_can_be_cut_off(make_server):
    server = make_server()
    server.control("fault", mode="truncated")
    with pytest.raises(http.client.IncompleteRead):
        server.get("/metrics")


@pytest.mark.parametrize("mode", ["silent", "drip"])
def test_metrics_can_be_without_an_end(make_server, mode):
    server = make_server()
    server.control("fault", mode=mode)
    assert is_silent(server, "/metrics")


def test_a_connection_can_be_reset(make_server):
    server = make_server()
    server.control("fault", mode="reset")
    with pytest.raises((ConnectionResetError, urllib.error.URLError)):
        server.get("/metrics")


def test_metrics_can_redirect(make_server):
    server = make_server()
    server.control("fault", mode="redirect", location=server.url + "/health")
    connection = http.client.HTTPConnection("127.0.0.1", server.listener.port, timeout=5)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["location"]) == (302, server.url + "/health")
    connection.close()


def test_a_fault_can_be_for_some_requests_only(make_server):
    server = make_server()
    server.control("fault", path="/health", status=503, times=2)
    assert [server.get("/health")[0] for _ in range(3)] == [503, 503, 200]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_completions_can_be_rejected(make_server, status):
    server = make_server()
    server.control("reject", status=status)
    assert server.post("/v1/completions", {"max_tokens": 1})[0] == status
    counts = server.counts()
    assert (counts["probes"], counts["rejected"], counts["failed_in_flight"]) == (1, 1, 0)


def test_a_dead_engine_shows_on_health_and_fails_what_was_open(make_server, open_request):
    server = make_server()
    connection = open_request(server)
    wait_until(lambda: running(server) == 1)
    server.control("kill", exit_after=None)
    assert connection.getresponse().status == 500
    connection.close()
    assert server.get("/health")[0] == 503
    assert running(server) == 1
    assert server.counts()["failed_in_flight"] == 1
    assert server.post("/v1/completions", {"max_tokens": 1})[0] == 500


def test_health_may_notice_later(make_server):
    server = make_server("--release", "0.10.2")
    server.control("kill", exit_after=None, health_after=60)
    assert server.get("/health")[0] == 200
    server.control("kill", exit_after=None, health_after=0)
    assert server.get("/health")[0] == 500


def test_a_restart_begins_at_zero_with_a_new_start_time(make_server):
    server = make_server()
    server.post("/v1/completions", {"max_tokens": 5})
    started_at = server.server.page.started_at
    server.control("restart")
    assert server.server.page.started_at > started_at
    page = server.get("/metrics")[1]
    assert sample(page, "generation_tokens_total") == 0


def test_a_restart_fails_what_was_open_and_cures_what_was_frozen(make_server, open_request):
    server = make_server()
    server.control("freeze")
    connection = open_request(server)
    wait_until(lambda: server.counts()["open"] == 1)
    server.control("restart")
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        connection.getresponse()
    wait_until(lambda: server.counts()["failed_in_flight"] == 1)
    assert server.post("/v1/completions", {"max_tokens": 1})[0] == 200


def test_the_port_refuses_while_a_restart_takes_its_time(make_server):
    server = make_server()
    server.control("restart", down=0.2)
    wait_until(lambda: refuses(server.listener.port))
    wait_until(lambda: not refuses(server.listener.port))
    assert server.get("/health")[0] == 200


def test_a_long_prompt_can_be_ordered(make_server):
    server = make_server()
    server.control("prefill", tokens=16000, chunk_tokens=160, chunk_seconds=0.005)
    wait_until(lambda: running(server) == 1)
    usage = sample(server.get("/metrics")[1], "kv_cache_usage_perc")
    wait_until(lambda: sample(server.get("/metrics")[1], "kv_cache_usage_perc") > usage)
    assert sample(server.get("/metrics")[1], "iteration_tokens_total_count") == 0


def test_a_request_can_bring_its_own_long_prompt(make_server, open_request):
    server = make_server()
    connection = open_request(server, sim={"prompt_tokens": 4000, "chunk_tokens": 4000, "chunk_seconds": 60})
    wait_until(lambda: server.server.engines[0].truth()["running"] == 1)
    assert running(server) == 0
    connection.close()


@pytest.mark.parametrize(("command", "body"), [
    ("freeze", {"engine": 5}), ("freeze", {"wrong": 1}), ("fault", {"mode": "odd"}), ("stale", {})])
def test_a_wrong_command_is_refused(make_server, command, body):
    status, text = make_server().post(f"/sim/{command}", body)
    assert (status, json.loads(text)["ok"]) == (400, False)


def test_an_unknown_command_is_refused(make_server):
    assert make_server().post("/sim/nonsense")[0] == 404


def test_a_hundred_requests_can_be_open_at_once(make_server, open_request):
    server = make_server()
    connections = [open_request(server, stream=True) for _ in range(120)]
    wait_until(lambda: sample(server.get("/metrics")[1], "num_requests_waiting") == 108)
    assert running(server) == 12
    for connection in connections:
        connection.close()
    wait_until(lambda: running(server) == 0)
    wait_until(lambda: server.counts()["client_gone"] == 120)


def test_the_load_endpoint_counts_only_if_asked_to(make_server, open_request):
    for options, load in (([], 0), (["--enable-server-load-tracking"], 1)):
        server = make_server(*options)
        connection = open_request(server)
        wait_until(lambda server=server: running(server) == 1)
        assert json.loads(server.get("/load")[1]) == {"server_load": load}
        connection.close()


def test_the_log_tells_of_every_request(make_server, tmp_path):
    log = tmp_path / "requests.jsonl"
    server = make_server("--log", str(log))
    server.post("/v1/completions", {"max_tokens": 1})
    wait_until(lambda: server.counts()["open"] == 0)
    start, end = (json.loads(line) for line in log.read_text().splitlines())
    assert (start["event"], start["probe"]) == ("start", True)
    assert (end["event"], end["outcome"], end["status"]) == ("end", "finished", 200)
    assert end["end"] >= end["start"] == start["start"]
