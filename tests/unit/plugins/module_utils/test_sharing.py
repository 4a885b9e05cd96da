"""Work over processes gives what it gives in one, in the same order, and says so when it cannot."""

import os
import types

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import sharing


def double(items):
    return [2 * item for item in items]


@pytest.mark.parametrize("number", [2, 3, 7])
def test_the_results_come_in_the_order_of_the_items(number):
    assert sharing.over_processes(number, double, range(7)) == double(range(7))


def test_each_process_has_its_share():
    assert len(set(sharing.over_processes(3, lambda items: [os.getpid() for _item in items], range(9))) - {os.getpid()}) == 3


def test_more_than_a_pipe_holds_comes_through():
    assert sharing.over_processes(2, lambda items: [item * 1_000_000 for item in items], ["a", "b", "c"])[2] == "c" * 1_000_000


def test_a_view_of_a_dict_travels():
    view = types.MappingProxyType({"a": types.MappingProxyType({"b": 1.0})})
    assert sharing.over_processes(2, lambda items: items, [view, view]) == [view, view]


def test_a_fault_of_the_work_is_raised():
    with pytest.raises(ZeroDivisionError):
        sharing.over_processes(2, lambda items: [1 // item for item in items], [1, 0])


def test_a_process_that_is_killed_is_no_result():
    with pytest.raises(RuntimeError, match="was ended before it had its results"):
        sharing.over_processes(2, lambda items: os._exit(9), [1, 2])


@pytest.mark.parametrize(
    ("number", "cpus", "processes"), [(0, 8, 1), (64, 8, 1), (65, 8, 2), (1000, 8, 8), (1000, 64, 16), (1000, 1, 1)]
)
def test_few_items_are_not_worth_a_process(monkeypatch, number, cpus, processes):
    monkeypatch.setattr(sharing, "_cpus", lambda: cpus)
    assert sharing.processes_for(number, 64) == processes


def test_without_fork_there_is_one_process(monkeypatch):
    monkeypatch.delattr(sharing.os, "fork")
    assert sharing.processes_for(1000, 64) == 1
