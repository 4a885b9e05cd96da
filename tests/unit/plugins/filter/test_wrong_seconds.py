"""A setting that is no number is named, with what is right."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.filter.wrong_seconds import wrong_seconds


@pytest.mark.parametrize("value", [30, 0.5, "30", "1e2", -1])
def test_numbers_and_text_that_is_one_are_left_to_the_module(value):
    assert wrong_seconds({"vllm_check_patience": value}) == ""


@pytest.mark.parametrize("value", ["soon", "", None, True, [], "nan", "inf"])
def test_anything_else_is_named(value):
    sentence = wrong_seconds({"vllm_check_patience": value, "vllm_check_timeout": 10})
    assert sentence == f"vllm_check_patience is '{value}': give a number of seconds, like 120."


def test_all_that_are_wrong_are_named_at_once():
    assert wrong_seconds({"a": "x", "b": "y"}).startswith("a is 'x', b is 'y': ")
