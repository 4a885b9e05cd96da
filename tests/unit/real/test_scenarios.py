"""The scenarios fit the words of the collection, and can be chosen by name."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import verdicts

from tests.real import scenarios

EVERY = [scenario for group in scenarios.GROUPS for scenario in group.scenarios]
WORDS = [f"{verdict}/{reason}" for verdict, reasons in verdicts.REASONS.items() for reason in reasons]


def test_no_name_is_used_twice():
    names = [scenario.name for scenario in EVERY]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("scenario", EVERY, ids=lambda scenario: scenario.name)
def test_an_answer_that_counts_as_right_is_one_that_can_be_given(scenario):
    for pattern in scenario.right.answers:
        assert any(fnmatchcase(word, pattern) for word in WORDS)


@pytest.mark.parametrize("scenario", EVERY, ids=lambda scenario: scenario.name)
def test_stuck_is_right_only_where_it_is_true(scenario):
    says_stuck = any(pattern.startswith("stuck/") for pattern in scenario.right.answers)
    assert says_stuck == (scenario.truth == "stuck")


@pytest.mark.parametrize("scenario", EVERY, ids=lambda scenario: scenario.name)
def test_a_server_that_is_busy_is_right_only_with_an_answer_that_says_healthy(scenario):
    if scenario.truth == "busy":
        said = {pattern.partition("/")[0] for pattern in scenario.right.answers}
        assert all(verdicts.healthy(verdict) for verdict in said)


def test_all_are_chosen_where_none_is_named():
    assert sum(len(picked) for _, picked in scenarios.chosen(set())) == len(EVERY)


def test_a_group_or_a_single_state_can_be_named():
    picked = {group.name: [one.name for one in some] for group, some in scenarios.chosen({"pooling", "frozen-idle"})}
    assert picked == {"plain": ["frozen-idle"], "pooling": ["pooling-idle", "pooling-busy", "pooling-frozen"]}


def test_a_name_that_is_neither_is_refused():
    with pytest.raises(ValueError, match="no such scenario or group: nonsense"):
        scenarios.chosen({"nonsense"})
