"""An answer is compared with the truth in every respect that was fixed beforehand."""

from __future__ import annotations

import dataclasses

import pytest

from tests.real.truth import Outcome, Right, contradictions, outcome

SAID = Outcome("stuck", "no_progress", probes=1, elapsed=20.1, message="nothing moved", restarted=False)


@pytest.mark.parametrize("pattern", ["stuck/no_progress", "stuck/*", "*"])
def test_an_answer_may_be_fixed_by_verdict_and_reason_or_by_the_verdict_alone(pattern):
    assert contradictions(Right((pattern,), probes=(1, 1)), SAID) == []


def test_a_verdict_that_was_not_foreseen_is_named_with_what_would_be_right():
    found = contradictions(Right(("busy/progress", "idle/*"), probes=(0, 1)), SAID)
    assert found == ["said stuck/no_progress, right is busy/progress or idle/*"]


def test_a_right_verdict_with_a_wrong_reason_is_wrong():
    assert contradictions(Right(("stuck/no_answer",), probes=(1, 1)), SAID)


@pytest.mark.parametrize(
    ("allowed", "text"),
    [((0, 0), "sent 1 probes, right is 0"), ((2, 4), "sent 1 probes, right is 2 to 4")],
    ids=["too many", "too few"],
)
def test_the_number_of_probes_counts(allowed, text):
    assert contradictions(Right(("*",), probes=allowed), SAID) == [text]


def test_a_request_that_the_module_does_not_own_up_to_is_found():
    found = contradictions(Right(("*",), probes=(0, 1)), dataclasses.replace(SAID, seen=2))
    assert found == ["the server answered 2 requests that no client sent, the module owns up to 1"]


def test_a_probe_that_was_never_answered_need_not_have_been_seen():
    assert contradictions(Right(("*",), probes=(1, 1)), dataclasses.replace(SAID, seen=0)) == []


@pytest.mark.parametrize(("wanted", "wrong"), [(None, False), (False, False), (True, True)])
def test_a_restart_is_compared_only_where_the_truth_says_something_of_it(wanted, wrong):
    assert bool(contradictions(Right(("*",), probes=(1, 1), restarted=wanted), SAID)) is wrong


def test_an_outcome_is_taken_from_the_entry_of_a_server():
    entry = {
        "verdict": "idle",
        "reason": "answered",
        "probes": 1,
        "elapsed": 0.4,
        "message": "answered in 0.1 s",
        "restarted_meanwhile": True,
        "engines": [],
    }
    got = outcome(entry, seen=1)
    assert (got.answer, got.probes, got.restarted, got.seen) == ("idle/answered", 1, True, 1)
