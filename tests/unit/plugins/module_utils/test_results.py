"""What the module returns: plain data, in the order asked, the same keys for every server."""

import json
import time

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import results
from ansible_collections.fleetcheck.vllm.plugins.module_utils.driving import Target
from ansible_collections.fleetcheck.vllm.plugins.module_utils.exposition import Page, Sample
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import EngineEvidence, Judgement, Limits
from ansible_collections.fleetcheck.vllm.plugins.module_utils.reading import Endpoint
from ansible_collections.fleetcheck.vllm.plugins.module_utils.systemd import UnitFacts
from ansible_collections.fleetcheck.vllm.plugins.module_utils.vllm_api import Server

KEY = "geheim-4711"
COUNTERS = {"iteration_tokens_total_count": 1059.0, "generation_tokens_total": 2116.0}
SAMPLE = Sample(COUNTERS, 2.0, 0.0, 0.05, False)
PAGE = Page(True, 1795988000.12, {"0": SAMPLE}, ("llama",))
MOVING = EngineEvidence("0", SAMPLE, 0.5, 107.0, {"num_requests_running": 1.0, "generation_tokens_total": 107.0}, 0.0)
FROZEN = EngineEvidence("0", SAMPLE, 15.0, 0.0, {}, 120.0123456, "open", "", 60.0)
QUIET = EngineEvidence("0", Sample({}), 0.0, None, {}, 0.25, "answered", "HTTP 200", 0.04)
RUNNING = UnitFacts("loaded", "active", "running", "5c0ee6c2", 4711, 2, 100.0)


def target(kind="backend", unit=None):
    return Target(Server(Endpoint("http://127.0.0.1:8000", KEY), unit=unit), Limits(), kind)


def busy(**more):
    return Judgement(
        "busy",
        "progress",
        0.2681234,
        Limits(),
        engines=(MOVING,),
        reads=2,
        page=PAGE,
        models=("llama",),
        version="0.32.0",
        **more,
    )


def stuck(*engines):
    return Judgement("stuck", "no_progress", 120.0, Limits(), engines=engines or (FROZEN,), reads=12, probes=1, page=PAGE)


def dead():
    return Judgement("dead", "refused", 1.8, Limits(), failed=3, detail="connection refused", failing_for=1.8)


def row(judgement, **how):
    return results.report(["chat"], [target(**how)], [judgement])["servers"][0]


def test_a_busy_server():
    assert row(busy(), unit=None) == {
        "name": "chat",
        "url": "http://127.0.0.1:8000",
        "unit": None,
        "kind": "backend",
        "verdict": "busy",
        "reason": "progress",
        "healthy": True,
        "message": "2 running, 0 waiting, 107 tokens in 0.5 s (214 tokens/s); no request was sent",
        "engines": [
            {
                "engine": "0",
                "running": 2.0,
                "waiting": 0.0,
                "steps": 1059.0,
                "tokens": 2116.0,
                "tokens_per_second": 214.0,
                "kv_cache_usage": 0.05,
                "signs_of_life": ["generation_tokens_total", "num_requests_running"],
                "silent_for": 0.0,
            }
        ],
        "reads": 2,
        "probes": 0,
        "elapsed": 0.268,
        "restarted_meanwhile": False,
        "vllm_version": "0.32.0",
        "models": ["llama"],
        "process_start_time": 1795988000.12,
        "systemd": None,
        "last_sample": {
            "process_start_time": 1795988000.12,
            "frozen_engines": [],
            "engines": {"0": {"counters": COUNTERS, "running": 2.0, "waiting": 0.0, "kv_cache_usage": 0.05}},
        },
    }


def test_a_server_that_was_never_read_has_the_same_keys():
    nothing = row(dead())
    assert nothing.keys() == row(busy()).keys()
    assert nothing["engines"] == nothing["models"] == []
    assert nothing["last_sample"] is nothing["process_start_time"] is nothing["vllm_version"] is None


def test_an_engine_whose_series_are_absent():
    (engine,) = row(Judgement("idle", "answered", 0.3, Limits(), engines=(QUIET,), page=PAGE))["engines"]
    assert engine == {
        "engine": "0",
        "running": 0.0,
        "waiting": 0.0,
        "steps": None,
        "tokens": None,
        "tokens_per_second": None,
        "kv_cache_usage": None,
        "signs_of_life": [],
        "silent_for": 0.25,
    }


@pytest.mark.parametrize(
    ("tokens", "interval", "rate"),
    [(107.0, 0.5, 214.0), (1.0, 3.0, 0.3), (0.0, 0.5, 0.0), (107.0, 0.0, None), (None, 0.5, None)],
)
def test_a_rate_needs_tokens_and_an_interval(tokens, interval, rate):
    engine = EngineEvidence("0", SAMPLE, interval, tokens, {"prompt_tokens_total": 1.0}, 0.0)
    judgement = Judgement("busy", "progress", 1.0, Limits(), engines=(engine,), page=PAGE)
    assert row(judgement)["engines"][0]["tokens_per_second"] == rate


def test_the_engines_that_are_frozen_are_named_for_a_later_step():
    working = EngineEvidence("1", SAMPLE, 0.5, 9.0, {"generation_tokens_total": 9.0}, 0.0, "open")
    assert row(stuck(FROZEN, working))["last_sample"]["frozen_engines"] == ["0"]
    assert row(stuck())["engines"][0]["silent_for"] == 120.012


def test_the_worst_verdict_speaks_for_all_and_the_order_stays():
    said = results.report(["a", "b", "c"], [target(), target(), target("proxy")], [busy(), dead(), busy()])
    assert (said["verdict"], said["healthy"]) == ("dead", False)
    assert list(said["counts"].items()) == [("dead", 1), ("busy", 2)]
    assert [(one["name"], one["verdict"], one["kind"]) for one in said["servers"]] == [
        ("a", "busy", "backend"),
        ("b", "dead", "backend"),
        ("c", "busy", "proxy"),
    ]


@pytest.mark.parametrize(("verdict", "healthy"), [("busy", True), ("stuck", False), ("starting", None)])
def test_healthy_is_open_where_the_verdict_is(verdict, healthy):
    reason = {"busy": "progress", "stuck": "no_progress", "starting": "unit_activating"}[verdict]
    engine = MOVING if verdict == "busy" else FROZEN
    said = results.report(["a"], [target()], [Judgement(verdict, reason, 1.0, Limits(), engines=(engine,), unit=RUNNING)])
    assert said["healthy"] is healthy and said["servers"][0]["healthy"] is healthy


# The unit


def test_the_facts_of_a_unit():
    started = time.monotonic() - 3600
    facts = UnitFacts("loaded", "active", "running", "5c0ee6c2", 4711, 2, started)
    said = row(busy(unit=facts), unit="vllm.service")
    assert said["unit"] == "vllm.service"
    at = said["systemd"].pop("started_at")
    assert said["systemd"] == {
        "active_state": "active",
        "sub_state": "running",
        "invocation_id": "5c0ee6c2",
        "main_pid": 4711,
        "restarts": 2,
    }
    # The clocks tick between their readings: a second to either side.
    seconds = {time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600 + off)) for off in (-1, 0, 1)}
    assert at in seconds


def test_a_unit_that_never_started():
    facts = UnitFacts("loaded", "inactive", "dead", "", 0, 0, None)
    said = row(Judgement("dead", "unit_inactive", 1.8, Limits(), unit=facts), unit="vllm.service")
    assert said["systemd"]["started_at"] is None


def test_why_the_facts_of_a_unit_cannot_be_read():
    said = row(busy(unit_error="systemctl did not answer within 5 s"), unit="vllm.service")
    assert said["systemd"] == {"error": "systemctl did not answer within 5 s"}


def test_without_a_unit_there_are_no_facts():
    assert row(busy(unit_error="never mind"))["systemd"] is None


# Whatever goes out


@pytest.mark.parametrize("judgement", [busy(), stuck(), dead()], ids=lambda judgement: judgement.verdict)
def test_what_is_returned_is_plain_json_and_never_the_key(judgement):
    said = results.report(["chat"], [target(unit="vllm.service")], [judgement])
    text = json.dumps(said, allow_nan=False)
    assert json.loads(text) == said
    assert KEY not in text
