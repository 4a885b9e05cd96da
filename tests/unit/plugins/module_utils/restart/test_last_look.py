"""The last look: any sign that the server is no longer as it was judged keeps it from being restarted."""

import dataclasses
import itertools
import threading
from unittest.mock import create_autospec

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import vllm_api
from ansible_collections.fleetcheck.vllm.plugins.module_utils.exposition import Page, Sample
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import FAILED_LOOKS, PROBE_OUTCOMES, Look
from ansible_collections.fleetcheck.vllm.plugins.module_utils.reading import Endpoint
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart import last_look
from ansible_collections.fleetcheck.vllm.plugins.module_utils.systemd import UnitFacts

LOOK, PROBE = vllm_api.look_at_backend, vllm_api.send_probe
SERVER = vllm_api.Server(Endpoint("http://127.0.0.1:8000"), unit="vllm.service")
START = 1795988000.12
COUNTERS = {"generation_tokens_total": 2116.0, "iteration_tokens_total_count": 1059.0, "prompt_tokens_total": 90.0}
BUSY = Sample(COUNTERS, 3.0, 2.0, 0.05, False)
IDLE = Sample(COUNTERS, 0.0, 0.0, 0.0, False)
UP = UnitFacts("loaded", "active", "running", "5c0ee6c2", 4711, 0, -5000.0)


def judged(*frozen, start=START, **engines):
    """What the check returns as last_sample; engines by label, and those of them that were frozen."""
    engines = engines or {"0": BUSY}
    return {
        "process_start_time": start,
        "frozen_engines": list(frozen),
        "engines": {
            label.lstrip("e"): {
                "counters": dict(sample.counters),
                "running": sample.running,
                "waiting": sample.waiting,
                "kv_cache_usage": sample.kv_cache_usage,
            }
            for label, sample in engines.items()
        },
    }


def page(start=START, **engines):
    return Page(True, start, {label.lstrip("e"): sample for label, sample in (engines or {"e0": BUSY}).items()}, ("tiny",))


def changed(sample, **fields):
    counters = {**sample.counters, **fields.pop("counters", {})}
    return dataclasses.replace(sample, counters=counters, **fields)


# The numbers


def test_the_same_numbers_are_no_difference():
    assert last_look.differences(judged("0"), page()) is None


def test_requests_that_arrive_and_wait_are_no_difference():
    assert last_look.differences(judged("0"), page(e0=changed(BUSY, waiting=9.0))) is None


@pytest.mark.parametrize("name", [*COUNTERS, "num_preemptions_total", "spec_decode_num_drafts_total"])
@pytest.mark.parametrize("by", [1.0, -1.0, 0.001])
def test_any_counter_that_moved_is_a_difference(name, by):
    moved = changed(BUSY, counters={name: COUNTERS.get(name, 0.0) + by})
    assert last_look.differences(judged("0"), page(e0=moved)) == "engine 0 moved meanwhile (%s)" % name


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_that_is_gone_is_a_difference(name):
    left = {key: value for key, value in COUNTERS.items() if key != name}
    assert name in last_look.differences(judged("0"), page(e0=dataclasses.replace(BUSY, counters=left)))


@pytest.mark.parametrize("fields", [{"running": 2.0}, {"running": None}, {"kv_cache_usage": 0.06}, {"kv_cache_usage": None}])
def test_a_gauge_that_only_the_engine_sets_is_a_difference(fields):
    assert "moved meanwhile" in last_look.differences(judged("0"), page(e0=changed(BUSY, **fields)))


@pytest.mark.parametrize("start", [START + 60, START - 0.01, None])
def test_another_process_is_a_difference(start):
    assert last_look.differences(judged("0"), page(start)) == "the process was restarted meanwhile"


def test_a_process_that_does_not_say_when_it_started_is_known_by_its_numbers():
    assert last_look.differences(judged("0", start=None), page(None)) is None
    assert last_look.differences(judged("0", start=None), page(None, e0=IDLE)) is not None


def test_an_engine_that_is_gone_or_asleep_is_a_difference():
    assert last_look.differences(judged("0"), page(e1=BUSY)) == "engine 0 is gone from /metrics"
    assert last_look.differences(judged("0"), Page(False, START, {})) == "engine 0 is gone from /metrics"
    assert "put to sleep" in last_look.differences(judged("0"), page(e0=changed(BUSY, asleep=True)))


def test_of_several_engines_those_that_were_frozen_count():
    before = judged("1", e0=BUSY, e1=IDLE)
    working = changed(BUSY, counters={"generation_tokens_total": 9999.0})
    assert last_look.differences(before, page(e0=working, e1=IDLE)) is None
    assert "engine 1 moved" in last_look.differences(before, page(e0=BUSY, e1=BUSY))


@pytest.mark.parametrize("last_sample", [None, {}, judged()])
def test_a_verdict_without_a_frozen_engine_proves_nothing(last_sample):
    assert last_look.differences(last_sample, page()) == "the verdict names no frozen engine"


# Stuck


@pytest.fixture
def server(monkeypatch):
    """A server that looks so, one look after another (the last one stays), and answers probes so."""

    def build(*looks, outcome=("unanswered", "no complete answer within 10 s"), outcomes=None):
        shown = itertools.chain(looks, itertools.repeat(looks[-1]))
        probes = []

        def probe(_server, model, rank, timeout):
            probes.append((model, rank, timeout))
            return (outcomes or {}).get(rank, outcome)

        monkeypatch.setattr(vllm_api, "look_at_backend", create_autospec(LOOK, side_effect=lambda *_, **__: next(shown)))
        monkeypatch.setattr(vllm_api, "send_probe", create_autospec(PROBE, side_effect=probe))
        return probes

    return build


def look(shown=None, **more):
    return Look(0.0, 0.1, page=shown, models=("tiny",), health=200, unit=UP, **more)


@pytest.mark.parametrize("sample", [BUSY, IDLE])
def test_a_server_with_the_same_numbers_that_does_not_answer_is_still_stuck(server, sample):
    probes = server(look(page(e0=sample)))
    assert last_look.objection("stuck", judged("0", e0=sample), SERVER) is None
    assert probes == [("tiny", None, last_look.ANSWER_WITHIN)]


@pytest.mark.parametrize("outcome", [word for word in PROBE_OUTCOMES if word != "unanswered"])
@pytest.mark.parametrize("sample", [BUSY, IDLE])
def test_a_server_with_the_same_numbers_that_does_anything_with_a_request_is_left_alone(server, sample, outcome):
    server(look(page(e0=sample)), outcome=(outcome, "HTTP 200"))
    assert "not silent any more" in last_look.objection("stuck", judged("0", e0=sample), SERVER)


def test_a_server_that_moved_is_left_alone_and_not_asked(server):
    probes = server(look(page(e0=IDLE)))
    assert "moved meanwhile" in last_look.objection("stuck", judged("0"), SERVER)
    assert probes == []


def test_a_server_that_moves_while_it_is_asked_is_left_alone(server):
    server(look(page()), look(page(e0=changed(BUSY, counters={"prompt_tokens_total": 91.0}))))
    assert "moved meanwhile" in last_look.objection("stuck", judged("0"), SERVER)


@pytest.mark.parametrize("failure", FAILED_LOOKS)
def test_a_server_whose_metrics_are_gone_is_left_alone(server, failure):
    server(look(failure=failure, detail="in words"))
    assert "cannot be read any more (in words)" in last_look.objection("stuck", judged("0"), SERVER)
    server(look(page()), look(failure=failure, detail="in words"))
    assert "cannot be read any more (in words)" in last_look.objection("stuck", judged("0"), SERVER)


def test_a_server_that_was_paused_is_left_alone(server):
    server(look(page(), paused=True))
    assert "paused" in last_look.objection("stuck", judged("0"), SERVER)


def test_a_server_that_was_put_to_sleep_unseen_by_its_metrics_is_left_alone(server):
    server(look(page(), sleeping=True))
    assert "sleep" in last_look.objection("stuck", judged("0"), SERVER)


def test_each_frozen_engine_is_asked_by_its_name_and_one_that_answers_is_enough(server):
    before, shown = judged("0", "2", e0=BUSY, e1=IDLE, e2=IDLE), page(e0=BUSY, e1=IDLE, e2=IDLE)
    probes = server(look(shown))
    assert last_look.objection("stuck", before, SERVER) is None
    assert sorted(rank for _model, rank, _timeout in probes) == ["0", "2"]
    server(look(shown), outcomes={"2": ("answered", "HTTP 200")})
    assert "engine 2 is not silent" in last_look.objection("stuck", before, SERVER)


def test_all_engines_are_asked_at_the_same_time(server, monkeypatch):
    labels = ["%d" % number for number in range(8)]
    engines = {"e" + label: IDLE for label in labels}
    server(look(page(**engines)))
    together = threading.Barrier(8, timeout=5)

    def probe(*_):
        together.wait()
        return "unanswered", ""

    monkeypatch.setattr(vllm_api, "send_probe", probe)
    assert last_look.objection("stuck", judged(*labels, **engines), SERVER) is None


def test_the_model_is_the_operators_or_one_that_is_served(server):
    def model(named, *looks):
        probes = server(*looks)
        last_look.objection("stuck", judged("0"), dataclasses.replace(SERVER, model=named))
        return probes[0][0]

    assert model("mine", look(page())) == "mine"
    assert model(None, look(page())) == "tiny"
    assert model(None, Look(0.0, 0.1, page=page())) == "tiny"
    assert model(None, Look(0.0, 0.1, page=Page(True, START, {"0": BUSY}))) is None


# Dead and unresponsive


DOWN = dataclasses.replace(UP, active_state="failed", main_pid=0)
STARTING = dataclasses.replace(UP, active_state="activating")


@pytest.mark.parametrize(
    ("verdict", "seen"),
    [
        ("dead", look(failure="refused")),
        ("dead", dataclasses.replace(look(failure="refused"), unit=DOWN)),
        ("dead", dataclasses.replace(look(failure="reset"), unit=DOWN)),
        ("dead", dataclasses.replace(look(failure="timeout"), unit=DOWN)),
        ("dead", dataclasses.replace(look(page()), health=503)),
        ("dead", dataclasses.replace(look(page()), health=500)),
        ("unresponsive", look(failure="timeout")),
    ],
)
def test_what_is_still_dead_or_unresponsive_may_go(server, verdict, seen):
    probes = server(seen)
    assert last_look.objection(verdict, judged(), SERVER) is None
    assert last_look.objection(verdict, None, SERVER) is None
    assert last_look.objection(verdict, {}, SERVER) is None
    assert probes == []


@pytest.mark.parametrize(
    ("verdict", "seen"),
    [
        ("dead", look(page())),
        ("dead", dataclasses.replace(look(page()), health=None)),
        ("dead", dataclasses.replace(look(page()), health=401)),
        ("dead", look(failure="timeout")),
        ("dead", look(failure="reset")),
        ("dead", look(failure="unparseable")),
        ("dead", look(failure="unauthorized")),
        ("dead", look(failure="error")),
        ("dead", look(failure="tls")),
        ("dead", look(failure="unreachable")),
        ("dead", dataclasses.replace(look(failure="refused"), unit=STARTING)),
        ("unresponsive", look(page())),
        ("unresponsive", look(failure="refused")),
        ("unresponsive", dataclasses.replace(look(page()), health=503)),
        ("unresponsive", dataclasses.replace(look(failure="timeout"), unit=STARTING)),
        ("unresponsive", dataclasses.replace(look(failure="timeout"), unit=DOWN)),
    ],
)
def test_what_is_something_else_now_is_left_alone(server, verdict, seen):
    server(seen)
    assert "it was %s, but now it looks" % verdict in last_look.objection(verdict, judged(), SERVER)


def test_an_engine_that_is_called_dead_and_moves_is_left_alone(server):
    server(dataclasses.replace(look(page(e0=changed(BUSY, running=4.0))), health=503))
    assert "moved meanwhile" in last_look.objection("dead", judged(), SERVER)
