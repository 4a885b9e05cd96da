"""The verdicts that fail a run, as operators write them."""

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.fleetcheck.vllm.plugins.filter.fail_on import fail_on


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["stuck", "dead"], ["stuck", "dead"]),
        ("stuck,dead", ["stuck", "dead"]),
        (" stuck , dead ", ["stuck", "dead"]),
        ("stuck", ["stuck"]),
        ("none", []),
        ([], []),
    ],
)
def test_a_list_and_a_line_mean_the_same(given, meant):
    assert fail_on(given) == meant


@pytest.mark.parametrize("given", ["", " ", " , ", [""], None])
def test_a_field_left_empty_means_the_default(given):
    assert fail_on(given) == ["stuck", "dead", "unresponsive"]


@pytest.mark.parametrize("given", ["stuk,dead", ["stuk", "dead"]])
def test_a_wrong_word_is_named_with_the_right_ones(given):
    with pytest.raises(AnsibleFilterError, match=r"vllm_fail_on: 'stuk' is no verdict. Give some of stuck, dead, .*serving"):
        fail_on(given)


@pytest.mark.parametrize("given", [False, 3, {"stuck": True}])
def test_what_is_no_list_is_named(given):
    with pytest.raises(AnsibleFilterError, match=r"vllm_fail_on is .*: Give some of stuck, dead, .*serving"):
        fail_on(given)
