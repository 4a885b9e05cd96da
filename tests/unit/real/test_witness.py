"""The second pair of eyes reads a page without the module's help."""

from __future__ import annotations

import pytest

from tests.real import witness

PAGE = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 2.0
vllm:num_requests_running{engine="1",model_name="tiny"} 0.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="tiny"} 3.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} 4.0
vllm:iteration_tokens_total_bucket{engine="0",le="1.0",model_name="tiny"} 9.0
vllm:iteration_tokens_total_created{engine="0",model_name="tiny"} 1.79e+09
process_cpu_seconds_total 12.5
"""


def page(**values: float) -> witness.Reading:
    return {(f"vllm:{name}", "0"): value for name, value in values.items()}


def test_values_are_told_apart_by_engine():
    reading = witness.parse(PAGE)
    assert witness.by_engine(reading, witness.RUNNING) == {"0": 2.0, "1": 0.0}
    assert witness.total(reading, witness.RUNNING) == 2.0


def test_values_that_differ_in_other_labels_are_added_up():
    assert witness.total(witness.parse(PAGE), "vllm:request_success_total") == 7.0


def test_buckets_creation_times_and_the_process_are_left_out():
    names = {name for name, _ in witness.parse(PAGE)}
    assert names == {witness.RUNNING, "vllm:request_success_total"}


def test_a_series_that_is_absent_counts_as_nothing():
    assert witness.total({}, witness.RUNNING) == 0.0


def test_arrivals_are_no_work():
    assert witness.worked(page(num_requests_waiting=1), page(num_requests_waiting=5)) == set()


def test_a_counter_that_appears_is_work():
    assert witness.worked({}, page(generation_tokens_total=3)) == {"0"}


@pytest.mark.parametrize(
    ("steps", "longest"),
    [
        ([], 0.0),
        ([(0, 1)], 0.0),
        ([(0, 1), (1, 2), (2, 3)], 1.0),
        ([(0, 1), (1, 1), (2, 1), (3, 2), (4, 3)], 3.0),
        ([(0, 1), (1, 2), (2, 2), (6, 2)], 5.0),
    ],
    ids=["no reading", "one reading", "steps all the time", "a long step first", "a long step that is not over"],
)
def test_the_longest_silence_is_the_longest_time_between_two_readings_that_moved(steps, longest):
    readings = [(float(at), page(generation_tokens_total=count)) for at, count in steps]
    assert witness.longest_silence(readings) == longest
