"""The words of a verdict, their order, and what is healthy."""

import itertools

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import verdicts

WORST_FIRST = [
    "stuck",
    "dead",
    "unresponsive",
    "stalled",
    "unknown",
    "starting",
    "paused",
    "sleeping",
    "busy",
    "idle",
    "serving",
]


def test_the_verdicts_are_known_worst_first():
    assert list(verdicts.VERDICTS) == WORST_FIRST


@pytest.mark.parametrize("pair", list(itertools.combinations(WORST_FIRST, 2)), ids="-".join)
def test_of_two_verdicts_the_earlier_one_is_the_worst(pair):
    assert verdicts.worst(pair) == verdicts.worst(reversed(pair)) == pair[0]
    assert verdicts.rank(pair[0]) < verdicts.rank(pair[1])


def test_the_worst_of_one_is_that_one():
    assert verdicts.worst(["idle"]) == "idle"


@pytest.mark.parametrize("none", [[], ["fine"], ["busy", "fine"]])
def test_there_is_no_worst_of_nothing_and_of_what_is_no_verdict(none):
    with pytest.raises(ValueError):
        verdicts.worst(none)


@pytest.mark.parametrize(
    ("healthy", "words"),
    [
        (False, {"stuck", "dead", "unresponsive", "stalled"}),
        (None, {"unknown", "starting", "paused", "sleeping"}),
        (True, {"busy", "idle", "serving"}),
    ],
)
def test_healthy_is_yes_no_or_open(healthy, words):
    assert {verdict for verdict in WORST_FIRST if verdicts.healthy(verdict) is healthy} == words


def test_every_verdict_has_reasons_and_each_reason_belongs_to_one_verdict():
    assert list(verdicts.REASONS) == WORST_FIRST
    assert all(verdicts.REASONS.values())
    reasons = list(itertools.chain.from_iterable(verdicts.REASONS.values()))
    # An idle server may go unprobed, and a silent one may.
    assert {reason for reason in reasons if reasons.count(reason) > 1} == {"not_probed"}


def test_counts_are_worst_first_and_leave_out_what_does_not_occur():
    assert list(verdicts.counts(["idle", "busy", "stuck", "busy"]).items()) == [("stuck", 1), ("busy", 2), ("idle", 1)]
    assert verdicts.counts(word for word in ("idle",)) == {"idle": 1}
    assert verdicts.counts([]) == {}
