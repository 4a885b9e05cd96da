"""A check of no host is an error."""

import pytest
from ansible import context
from ansible.errors import AnsibleFilterError
from ansible.module_utils.common.collections import ImmutableDict
from ansible_collections.fleetcheck.vllm.plugins.filter.hosts_to_check import hosts_to_check

GROUPS = {"all": ["a", "b", "c"], "ungrouped": [], "vllm": ["a", "b"], "web": ["c"]}


@pytest.fixture(autouse=True)
def _command_line(monkeypatch):
    monkeypatch.setattr(context, "CLIARGS", ImmutableDict())


@pytest.mark.parametrize(("pattern", "limit"), [("vllm", ""), ("vllm", "a"), ("a,c", "c"), (["vllm", "!a"], ""), ("all", "web")])
def test_a_pattern_that_matches_is_returned_as_it_is(pattern, limit):
    assert hosts_to_check(pattern, GROUPS, limit) == pattern


@pytest.mark.parametrize(("pattern", "limit"), [("gpu", ""), ("vllm", "web"), ("vllm", "all:!vllm"), ("vllm:&web", "")])
def test_a_pattern_that_matches_nothing_is_an_error_that_helps(pattern, limit):
    with pytest.raises(AnsibleFilterError, match=r"matches no host.*group 'vllm'.*vllm_hosts=PATTERN"):
        hosts_to_check(pattern, GROUPS, limit)


def test_a_limit_may_stand_in_a_file(tmp_path):
    retry = tmp_path / "check.retry"
    retry.write_text("b\n")
    assert hosts_to_check("vllm", GROUPS, f"@{retry}") == "vllm"
    retry.write_text("c\n")
    with pytest.raises(AnsibleFilterError, match="--limit"):
        hosts_to_check("vllm", GROUPS, f"@{retry}")


def test_a_syntax_check_has_no_inventory_and_passes(monkeypatch):
    monkeypatch.setattr(context, "CLIARGS", ImmutableDict(syntax=True))
    assert hosts_to_check("vllm", {"all": []}) == "vllm"
