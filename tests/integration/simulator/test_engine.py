"""The engine steps, queues, reports after a step, and stands still when frozen."""

from __future__ import annotations

import time

import pytest

from tests.integration.simulator.waiting import wait_until
from tests.simulator.vllm_sim.engine import ENGINE_DIED
from tests.simulator.vllm_sim.requests import Request

LONG = 1_000_000


def gauges(engine):
    return engine.stats.get("num_requests_running"), engine.stats.get("num_requests_waiting")


def kv_usage(engine):
    name = "gpu_cache_usage_perc" if engine.settings.release.is_v0 else "kv_cache_usage_perc"
    return engine.stats.get(name)


def counters(engine):
    """The counters a check reads as signs of life."""
    stats = engine.stats
    return {
        "steps": stats.histograms["iteration_tokens_total"].count,
        "tokens": stats.get("generation_tokens_total"),
        "prompts": stats.get("prompt_tokens_total"),
    }


def everything(engine):
    with engine.changed:
        histograms = {name: (each.count, each.sum) for name, each in engine.stats.histograms.items()}
        return dict(engine.stats.numbers), histograms


def end_of(request, seconds=5):
    """Wait for the end of a request; the tokens of a stream are passed over."""
    while True:
        news = request.outbox.get(timeout=seconds)
        if isinstance(news, str):
            return news


def submit(engine, count=1, **values):
    requests = [Request(**values) for _ in range(count)]
    for request in requests:
        engine.submit(request)
    return requests


def test_a_request_decodes_token_by_token(make_engine):
    engine = make_engine()
    request = Request(prompt_tokens=10, max_tokens=5, stream=True)
    engine.submit(request)
    assert [request.outbox.get(timeout=5) for _ in range(6)] == [1, 1, 1, 1, 1, "length"]
    assert counters(engine) == {"steps": 5, "tokens": 5, "prompts": 10}
    assert engine.stats.get("request_success_total", "length") == 1


def test_a_request_waits_for_a_slot_in_order_of_arrival(make_engine):
    engine = make_engine(max_num_seqs=1)
    first, second, third = submit(engine, 3, max_tokens=5)
    assert end_of(third) == "length"
    assert first.last_token_at < second.admitted_at
    assert second.last_token_at < third.admitted_at


def test_more_requests_than_slots_are_shown_as_waiting(make_engine):
    engine = make_engine(max_num_seqs=12)
    submit(engine, 52, max_tokens=LONG)
    wait_until(lambda: gauges(engine) == (12, 40))
    assert engine.stats.get("num_requests_waiting_by_reason", "capacity") == 40


def test_nothing_moves_during_the_first_step_after_idle(make_engine):
    engine = make_engine()
    before = everything(engine)
    submit(engine, prompt_tokens=100, max_tokens=1, chunk_tokens=100, chunk_seconds=60)
    wait_until(lambda: engine.truth()["running"] == 1)
    assert everything(engine) == before


def test_the_first_step_ever_may_take_longer(make_engine):
    engine = make_engine(first_step_seconds=60)
    submit(engine, max_tokens=1)
    wait_until(lambda: engine.truth()["running"] == 1)
    assert (gauges(engine), engine.steps) == ((0, 0), 0)


def test_kv_usage_follows_the_tokens_held(make_engine):
    engine = make_engine(block_size=16, blocks=100, step_seconds=0.02)
    request, = submit(engine, prompt_tokens=160, max_tokens=LONG)
    wait_until(lambda: kv_usage(engine) == pytest.approx(0.11))
    engine.abort(request)
    wait_until(lambda: kv_usage(engine) == 0)


def test_a_full_cache_preempts_the_youngest(make_engine):
    engine = make_engine(block_size=16, blocks=10)
    submit(engine, 2, prompt_tokens=75, max_tokens=40)
    wait_until(lambda: engine.stats.get("num_preemptions_total") >= 1)


def test_a_frozen_engine_changes_nothing_at_all(make_engine):
    engine = make_engine()
    submit(engine, 3, max_tokens=LONG)
    wait_until(lambda: engine.steps > 5)
    engine.freeze()
    before = everything(engine)
    late, = submit(engine)
    engine.abort(late)
    time.sleep(20 * engine.settings.step_seconds)
    assert everything(engine) == before
    assert gauges(engine) == (3, 0)


def test_an_engine_frozen_while_idle_never_shows_a_request(make_engine):
    engine = make_engine()
    assert end_of(submit(engine)[0]) == "length"
    engine.freeze()
    request, = submit(engine)
    time.sleep(20 * engine.settings.step_seconds)
    assert gauges(engine) == (0, 0)
    assert request.outbox.empty()
    assert engine.truth()["unseen"] == 1


def test_a_thawed_engine_goes_on_where_it_stood(make_engine):
    engine = make_engine()
    request, = submit(engine, max_tokens=50)
    wait_until(lambda: engine.steps > 5)
    engine.freeze()
    engine.thaw()
    assert end_of(request) == "length"
    assert counters(engine)["tokens"] == 50


def test_an_abort_brings_the_gauges_down(make_engine):
    engine = make_engine()
    requests = submit(engine, 3, max_tokens=LONG)
    wait_until(lambda: gauges(engine) == (3, 0))
    for request in requests:
        engine.abort(request)
    wait_until(lambda: gauges(engine) == (0, 0))
    assert engine.stats.get("request_success_total", "abort") == 0


def test_gauges_stay_when_the_clients_of_a_frozen_engine_leave(make_engine):
    engine = make_engine()
    requests = submit(engine, 3, max_tokens=LONG)
    wait_until(lambda: gauges(engine) == (3, 0))
    engine.freeze()
    for request in requests:
        engine.abort(request)
    time.sleep(0.02)
    assert gauges(engine) == (3, 0)


def test_stale_gauges_stay_while_the_engine_works(make_engine):
    engine = make_engine()
    engine.make_stale(3)
    assert end_of(submit(engine)[0]) == "length"
    assert gauges(engine) == (3, 0)
    engine.make_stale(None)
    assert gauges(engine) == (0, 0)


def long_prompt(engine):
    submit(engine, prompt_tokens=32_000, max_tokens=1, chunk_tokens=160, chunk_seconds=0.005)


@pytest.mark.parametrize("name", ["0.10.2", "0.12.0", "0.25.1", "0.32.0"])
def test_a_long_prompt_moves_only_the_kv_usage_on_v1(make_engine, name):
    engine = make_engine(name)
    long_prompt(engine)
    wait_until(lambda: gauges(engine) == (1, 0))
    usage = kv_usage(engine)
    before = counters(engine)
    wait_until(lambda: kv_usage(engine) > usage)
    assert counters(engine) == before == {"steps": 0, "tokens": 0, "prompts": 0}


def test_a_long_prompt_moves_steps_and_prompt_tokens_on_v0_but_not_the_kv_usage(make_engine):
    engine = make_engine("0.8.5-v0")
    long_prompt(engine)
    wait_until(lambda: gauges(engine) == (1, 0))
    usage, before = kv_usage(engine), counters(engine)
    wait_until(lambda: counters(engine)["steps"] > before["steps"])
    assert counters(engine)["prompts"] > before["prompts"]
    assert kv_usage(engine) == usage > 0


def test_a_long_step_among_decoding_requests_moves_nothing(make_engine):
    engine = make_engine()
    submit(engine, 2, max_tokens=LONG)
    wait_until(lambda: gauges(engine) == (2, 0))
    submit(engine, prompt_tokens=4000, max_tokens=1, chunk_tokens=4000, chunk_seconds=60)
    wait_until(lambda: engine.truth()["running"] == 3)
    before = everything(engine)
    time.sleep(0.02)
    assert everything(engine) == before
    assert gauges(engine) == (2, 0)


def test_a_prompt_is_computed_within_the_budget_of_a_step(make_engine):
    engine = make_engine(max_num_batched_tokens=10)
    request, = submit(engine, prompt_tokens=35, max_tokens=1)
    assert end_of(request) == "length"
    assert engine.steps == 4


def test_pooling_shows_no_load_but_its_counters_move(make_engine):
    engine = make_engine(pooling=True)
    for request in submit(engine, 20, prompt_tokens=7, max_tokens=1, pooling=True):
        assert end_of(request) == "stop"
        assert gauges(engine) == (0, 0)
    assert counters(engine)["tokens"] == 0
    assert counters(engine)["prompts"] == 140
    assert counters(engine)["steps"] >= 1
    assert engine.stats.get("request_success_total", "stop") == 20


def test_a_sleeping_engine_keeps_requests_until_it_wakes(make_engine):
    engine = make_engine()
    engine.sleep(1)
    assert engine.stats.get("engine_sleep_state", "awake") == 0
    assert engine.stats.get("engine_sleep_state", "weights_offloaded") == 1
    request, = submit(engine)
    wait_until(lambda: engine.truth()["waiting"] == 1)
    assert gauges(engine) == (0, 0)
    engine.sleep(0)
    assert end_of(request) == "length"


def test_an_old_release_goes_on_answering_while_asleep(make_engine):
    engine = make_engine("0.10.2")
    engine.sleep(1)
    assert end_of(submit(engine)[0]) == "length"


def test_pause_abort_ends_everything_and_takes_nothing_new(make_engine):
    engine = make_engine(max_num_seqs=2)
    requests = submit(engine, 4, max_tokens=LONG)
    wait_until(lambda: gauges(engine) == (2, 2))
    engine.pause("abort")
    assert [end_of(request) for request in requests] == ["abort"] * 4
    assert gauges(engine) == (0, 0)
    assert engine.stats.get("request_success_total", "abort") == 4
    late, = submit(engine)
    wait_until(lambda: gauges(engine) == (0, 1))
    engine.resume()
    assert end_of(late) == "length"


def test_pause_wait_goes_on_with_what_runs(make_engine):
    engine = make_engine(max_num_seqs=2)
    submit(engine, 4, max_tokens=LONG)
    wait_until(lambda: gauges(engine) == (2, 2))
    engine.pause("wait")
    before = counters(engine)["tokens"]
    submit(engine)
    wait_until(lambda: gauges(engine) == (2, 3) and counters(engine)["tokens"] > before)


def test_pause_keep_holds_everything_until_a_request_comes(make_engine):
    engine = make_engine(max_num_seqs=2)
    submit(engine, 4, max_tokens=LONG)
    wait_until(lambda: gauges(engine) == (2, 2))
    engine.pause("keep")
    wait_until(lambda: engine.truth()["paused"] == "keep")
    probe, = submit(engine)
    wait_until(lambda: gauges(engine) == (0, 5))
    engine.abort(probe)
    wait_until(lambda: gauges(engine) == (0, 4))
    assert engine.stats.get("num_preemptions_total") == 0
    engine.resume()
    wait_until(lambda: gauges(engine) == (2, 2))
    assert engine.stats.get("num_preemptions_total") == 2


def test_without_admission_requests_wait_for_ever(make_engine):
    engine = make_engine()
    engine.admit(False)
    submit(engine, 4)
    wait_until(lambda: gauges(engine) == (0, 4))
    engine.admit(True)
    wait_until(lambda: gauges(engine) == (0, 0))


def test_a_dead_engine_fails_its_requests_and_keeps_its_numbers(make_engine):
    engine = make_engine()
    request, = submit(engine, max_tokens=LONG)
    wait_until(lambda: gauges(engine) == (1, 0))
    engine.kill()
    late, = submit(engine)
    assert (end_of(request), end_of(late)) == (ENGINE_DIED, ENGINE_DIED)
    assert gauges(engine) == (1, 0)
