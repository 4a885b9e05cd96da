"""From a fleet's report to the plan that the playbook follows, and what a person reads of it."""

import json

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.fleetcheck.vllm.plugins.filter import restart_plan as plugin
from ansible_collections.fleetcheck.vllm.plugins.filter.restart_plan import restart_plan
from ansible_collections.fleetcheck.vllm.plugins.module_utils import verdicts
from ansible_collections.fleetcheck.vllm.plugins.module_utils.planning import Guards

DOCUMENTATION = yaml.safe_load(plugin.DOCUMENTATION)


def row(host, verdict="stuck", place=0, **fields):
    named = {"host": host, "place": place, "name": "vllm.service", "unit": "vllm.service", "kind": "backend"}
    judged = {"verdict": verdict, "reason": verdicts.REASONS[verdict][0], "models": ["llama"]}
    return {**named, **judged, **fields}


def plan(*rows, hostvars=None, **guards):
    hosts = {row["host"]: {} for row in rows}
    return restart_plan({"servers": list(rows)}, {**hosts, **(hostvars or {})}, **guards)


def test_it_names_what_goes_and_what_is_held_and_where():
    made = plan(row("b", place=1), row("a", "busy"), row("c", "busy"))
    assert made["restart"] == [{"host": "b", "place": 1, "name": "vllm.service", "pool": "llama"}]
    assert made["hosts"] == ["b"]
    assert made["held"][0] == {
        "host": "a",
        "place": 0,
        "name": "vllm.service",
        "pool": "llama",
        "reason": "not_stuck",
        "message": "it is busy",
    }


def test_each_host_is_named_once_in_the_order_of_the_report():
    rows = [row("b"), row("a"), row("b", place=1, unit="other.service"), *(row(name, "busy") for name in "cdef")]
    assert plan(*rows)["hosts"] == ["b", "a"]


def test_a_pool_is_what_the_inventory_says_of_the_host():
    made = plan(row("a"), row("b", "busy"), hostvars={"a": {"vllm_pool": "chat"}, "b": {"vllm_pool": 7}})
    assert (made["restart"][0]["pool"], made["held"][0]["pool"]) == ("chat", "7")


def test_a_row_without_a_place_is_the_first_of_its_host():
    lost = {"host": "a", "name": "-", "verdict": "unknown", "reason": "unreachable"}
    assert plan(lost, row("b"))["held"][0]["place"] == 0


def test_a_person_reads_what_goes_and_what_is_kept_from_going_but_not_all_that_is_well():
    rows = [row("a"), row("b", unit=None), row("c", "busy"), {"host": "d", "name": "-", "verdict": "unknown", "reason": "unreachable"}]
    assert plan(*rows)["lines"] == [
        "to be restarted: 1 of 4 servers",
        "  a vllm.service (pool llama)",
        "held back: b vllm.service: its systemd unit is not known; name it in vllm_servers (no_unit)",
    ]


def test_the_plan_is_plain_data():
    made = plan(row("a"), row("b", "busy"))
    assert json.loads(json.dumps(made)) == made


def test_no_server_is_no_plan():
    assert plan() == {"restart": [], "held": [], "hosts": [], "lines": ["to be restarted: 0 of 0 servers"]}


# The guards


def test_the_defaults_are_those_of_the_planner_and_of_the_documentation():
    default = {name: entry["default"] for name, entry in DOCUMENTATION["options"].items() if "default" in entry}
    assert Guards(**{**default, "verdicts": tuple(default["verdicts"])}) == Guards()


def test_the_defaults_of_the_role_are_the_same():
    with open("roles/vllm_restart/defaults/main.yml", encoding="utf-8") as file:
        role = yaml.safe_load(file)
    for name, entry in DOCUMENTATION["options"].items():
        if "default" in entry:
            key = "serial" if name == "at_once" else name
            assert role["vllm_restart_" + key] == entry["default"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["stuck"], ["a"]),
        (["stuck", "dead"], ["a", "b"]),
        (["dead"], ["b"]),
        ("stuck,dead", ["a", "b"]),
        (" stuck , dead ,", ["a", "b"]),
    ],
)
def test_verdicts_may_be_a_list_or_one_line(given, expected):
    rows = [row("a"), row("b", "dead"), *(row(name, "busy") for name in "cdef")]
    assert plan(*rows, verdicts=given)["hosts"] == expected


@pytest.mark.parametrize("given", [[], "", " ", ["busy"], "stuck,idle", ["stalled"], "all", ["Stuck"], [""], 7, None])
def test_other_verdicts_are_an_error_and_no_restart(given):
    with pytest.raises(AnsibleFilterError, match="vllm_restart_verdicts is"):
        plan(row("a"), verdicts=given)


@pytest.mark.parametrize("name", ["max_per_run", "at_once", "common_cause_share", "common_cause_least", "min_judged_share"])
@pytest.mark.parametrize("given", ["many", None, "", [], -1, "-0.5", float("nan"), "nan", float("inf"), 1e9])
def test_a_number_that_cannot_be_right_is_an_error_and_no_restart(name, given):
    with pytest.raises(AnsibleFilterError, match="it must be a number from"):
        plan(row("a"), **{name: given})


def test_numbers_may_be_text_as_from_the_command_line():
    rows = [row("a"), row("b"), *(row(name, "busy") for name in "cdef")]
    assert plan(*rows, max_per_run="1")["hosts"] == ["a"]
    assert plan(*rows, at_once="2")["hosts"] == ["a"]
    assert plan(*rows, common_cause_least="2", common_cause_share="0.1")["hosts"] == []


@pytest.mark.parametrize("given", ["50%", [1, 2]])
def test_hosts_at_the_same_time_are_a_number_as_more_cannot_be_planned_for(given):
    with pytest.raises(AnsibleFilterError, match="vllm_restart_"):
        plan(row("a"), at_once=given)


@pytest.mark.parametrize("name", ["max_per_run", "at_once", "common_cause_least"])
@pytest.mark.parametrize("given", [1.5, True])
def test_half_a_server_or_a_yes_is_no_number(name, given):
    with pytest.raises(AnsibleFilterError, match="it must be a"):
        plan(row("a"), **{name: given})
