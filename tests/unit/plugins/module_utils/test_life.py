"""What moves only where an engine works, and what tells one process from the next."""

import dataclasses

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.exposition import Page, Sample, parse
from ansible_collections.fleetcheck.vllm.plugins.module_utils.life import continues, signs_of_life

COUNTERS = {
    "iteration_tokens_total_count": 100.0,
    "generation_tokens_total": 1000.0,
    "prompt_tokens_total": 500.0,
    "num_preemptions_total": 0.0,
    "request_success_total": 7.0,
    "spec_decode_num_drafts_total": 3.0,
    "estimated_flops_per_gpu_total": 1e15,
}
FROZEN = Sample(COUNTERS, running=2.0, waiting=1.0, kv_cache_usage=0.5, asleep=False)


def with_counter(name, value):
    return dataclasses.replace(FROZEN, counters={**COUNTERS, name: value})


def test_equal_samples_show_no_life():
    assert signs_of_life(FROZEN, FROZEN) == {}


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_that_rises_is_a_sign_of_life(name):
    assert signs_of_life(FROZEN, with_counter(name, COUNTERS[name] + 1)) == {name: 1.0}


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_that_falls_is_none(name):
    assert signs_of_life(FROZEN, with_counter(name, COUNTERS[name] - 1)) == {}


def test_a_counter_that_only_one_sample_has_says_nothing():
    fresh = dataclasses.replace(FROZEN, counters={})
    assert signs_of_life(fresh, FROZEN) == {}
    assert signs_of_life(FROZEN, fresh) == {}


@pytest.mark.parametrize(("before", "after"), [(2.0, 3.0), (3.0, 2.0), (0.0, 1.0), (1.0, 0.0)])
def test_any_change_of_running_is_a_sign_of_life(before, after):
    signs = signs_of_life(dataclasses.replace(FROZEN, running=before), dataclasses.replace(FROZEN, running=after))
    assert signs == {"num_requests_running": after - before}


@pytest.mark.parametrize(("before", "after"), [(0.5, 0.75), (0.75, 0.5), (0.0, 0.25)])
def test_any_change_of_the_cache_is_a_sign_of_life(before, after):
    signs = signs_of_life(dataclasses.replace(FROZEN, kv_cache_usage=before), dataclasses.replace(FROZEN, kv_cache_usage=after))
    assert signs == {"kv_cache_usage_perc": after - before}


@pytest.mark.parametrize("waiting", [0.0, 2.0, 400.0, None])
def test_arrivals_are_no_sign_of_life(waiting):
    assert signs_of_life(FROZEN, dataclasses.replace(FROZEN, waiting=waiting)) == {}


def test_running_that_appears_is_a_sign_of_life_unless_it_appears_as_zero():
    absent = dataclasses.replace(FROZEN, running=None)
    assert signs_of_life(absent, FROZEN) == {"num_requests_running": 2.0}
    assert signs_of_life(absent, dataclasses.replace(FROZEN, running=0.0)) == {}


def test_gauges_that_vanish_or_appear_otherwise_say_nothing():
    assert signs_of_life(FROZEN, dataclasses.replace(FROZEN, running=None, kv_cache_usage=None)) == {}
    assert signs_of_life(dataclasses.replace(FROZEN, kv_cache_usage=None), FROZEN) == {}


def test_all_signs_are_named_with_their_change():
    after = Sample({**COUNTERS, "generation_tokens_total": 1107.0}, running=3.0, waiting=9.0, kv_cache_usage=0.25)
    assert signs_of_life(FROZEN, after) == {
        "generation_tokens_total": 107.0,
        "num_requests_running": 1.0,
        "kv_cache_usage_perc": -0.25,
    }


@pytest.mark.parametrize(
    "series",
    [
        'vllm:num_requests_waiting{engine="0"}',
        'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"}',
        'vllm:request_success_total{engine="0",finished_reason="abort"}',
        'vllm:generation_tokens_created{engine="0"}',
        'vllm:time_to_first_token_seconds_count{engine="0"}',
        "http_requests_total",
        "process_cpu_seconds_total",
        'python_gc_objects_collected_total{generation="0"}',
    ],
)
def test_what_has_no_engine_behind_it_shows_no_life(series):
    other = 'vllm:generation_tokens_total{engine="0"} 5\n'
    before, after = (parse(("%s%s %d\n" % (other, series, value)).encode()) for value in (1, 2))
    assert signs_of_life(before.engines["0"], after.engines["0"]) == {}
    assert continues(before, after) and continues(after, before)


# One process or two


def page(*samples, start=None):
    return Page(True, start, {str(at): sample for at, sample in enumerate(samples)})


def test_a_page_continues_itself():
    assert continues(page(FROZEN, start=100.0), page(FROZEN, start=100.0))


def test_another_start_time_is_another_process():
    assert not continues(page(FROZEN, start=100.0), page(FROZEN, start=200.0))
    assert not continues(page(FROZEN, start=200.0), page(FROZEN, start=100.0))


@pytest.mark.parametrize(("before", "after"), [(100.0, None), (None, 100.0), (None, None)])
def test_a_start_time_that_is_not_exported_says_nothing(before, after):
    assert continues(page(FROZEN, start=before), page(FROZEN, start=after))


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_that_rises_or_stands_still_may_be_of_one_process(name):
    assert continues(page(FROZEN), page(with_counter(name, COUNTERS[name] + 1)))


@pytest.mark.parametrize("name", [name for name, value in COUNTERS.items() if value])
def test_a_counter_that_falls_is_of_another_process(name):
    assert not continues(page(FROZEN), page(with_counter(name, COUNTERS[name] - 1)))


def test_counters_that_are_gone_are_of_another_process():
    assert not continues(page(FROZEN), page(Sample({})))


def test_counters_that_appear_may_be_of_one_process():
    assert continues(page(Sample({})), page(FROZEN))


def test_gauges_may_do_what_they_like():
    assert continues(page(FROZEN), page(Sample(COUNTERS)))


def test_one_engine_whose_counters_fell_is_enough():
    fallen = with_counter("generation_tokens_total", 1.0)
    risen = with_counter("generation_tokens_total", 2000.0)
    assert not continues(page(FROZEN, FROZEN), page(risen, fallen))


def test_engines_that_only_one_page_has_are_not_compared():
    assert continues(page(FROZEN), page(FROZEN, FROZEN))
    assert continues(page(FROZEN, FROZEN), page(FROZEN))
