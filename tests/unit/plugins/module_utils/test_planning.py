"""What is restarted in one run, and the one word for each server that is not."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import verdicts
from ansible_collections.fleetcheck.vllm.plugins.module_utils.planning import Guards, make_plan

DEFAULT = Guards()
ALL = Guards(verdicts=("stuck", "dead", "unresponsive"))


def row(host, verdict="stuck", **fields):
    """One server of a report; its host is its name."""
    reason = verdicts.REASONS[verdict][0]
    return {"host": host, "verdict": verdict, "reason": reason, "unit": "vllm.service", "models": ["llama"], **fields}


def lost(host, why="unreachable"):
    """A host that could not be checked."""
    return {"host": host, "name": "-", "verdict": "unknown", "reason": why, "healthy": None, "engines": []}


def well(*hosts):
    return [row(host, "busy") for host in hosts]


def words(rows, guards=DEFAULT, **pools):
    """What becomes of each server: restart, or the word that holds it."""
    plan = make_plan(rows, pools, guards)
    placed = [(chosen, "restart") for chosen, _pool in plan.restart] + [(held.row, held.reason) for held in plan.held]
    assert len(placed) == len(rows)
    return [next(word for chosen, word in placed if chosen is row) for row in rows]


# Candidates


@pytest.mark.parametrize("verdict", verdicts.VERDICTS)
def test_only_what_is_stuck_goes(verdict):
    assert words([row("a", verdict), *well("b", "c")])[0] == ("restart" if verdict == "stuck" else "not_stuck")


@pytest.mark.parametrize("verdict", verdicts.VERDICTS)
def test_an_operator_may_name_more(verdict):
    asked = words([row("a", verdict), *well("b", "c")], ALL)[0]
    assert asked == ("restart" if verdict in verdicts.RESTARTABLE else "not_stuck")


def test_an_operator_who_names_dead_alone_gets_no_hang_restarted():
    assert words([row("a"), row("b", "dead"), *well("c", "d")], Guards(verdicts=("dead",)))[:2] == ["not_stuck", "restart"]


@pytest.mark.parametrize("why", ["unreachable", "check_failed"])
def test_what_could_not_be_judged_stays(why):
    assert words([lost("a", why), *well("b", "c")])[0] == "not_judged"


def test_a_proxy_stays_whatever_is_said_of_it():
    assert words([row("a", "dead", kind="proxy"), *well("b", "c")], ALL)[0] == "not_stuck"


@pytest.mark.parametrize("unit", [None, ""])
def test_without_a_unit_there_is_nothing_to_restart(unit):
    assert words([row("a", unit=unit), *well("b", "c")])[0] == "no_unit"


def test_a_unit_that_cannot_be_read_is_not_known_to_be_the_one_that_was_judged():
    rows = [row("a", systemd={"error": "systemctl did not answer within 5 s"}), *well("b", "c")]
    assert words(rows)[0] == "unit_unreadable"
    assert words([row("a", systemd={"error": None}), *well("b", "c")])[0] == "restart"


def test_an_empty_fleet_has_an_empty_plan():
    assert words([]) == []


# One cause for all


@pytest.mark.parametrize(
    ("stuck", "fleet", "goes"),
    [(1, 1, True), (2, 2, True), (2, 3, True), (3, 3, False), (3, 4, False), (3, 6, True), (4, 7, False), (4, 8, True)],
)
def test_more_than_half_and_at_least_three_have_one_cause(stuck, fleet, goes):
    rows = [row("s%d" % number) for number in range(stuck)] + well(*("w%d" % number for number in range(fleet - stuck)))
    expected = ["restart"] * min(stuck, 3) + ["over_run_limit"] * (stuck - 3) if goes else ["common_cause"] * stuck
    assert words(rows)[:stuck] == expected


def test_what_says_nothing_of_the_fleet_is_not_counted():
    stuck = [row("a"), row("b"), row("c")]
    silent = [row("d", "unknown"), lost("e"), row("f", "serving", kind="proxy"), row("g", "serving", kind="proxy")]
    assert words([*stuck, *silent, *well("h", "i")], Guards(min_judged_share=0.0))[:3] == ["common_cause"] * 3


def test_both_numbers_of_one_cause_can_be_changed():
    rows = [row("a"), row("b"), *well("c", "d", "e")]
    assert words(rows, Guards(common_cause_least=2, common_cause_share=0.3))[:2] == ["common_cause"] * 2
    assert words(rows, Guards(common_cause_least=2, common_cause_share=0.4))[:2] == ["restart"] * 2
    assert words([row(name) for name in "abc"], Guards(common_cause_share=1.0)) == ["restart"] * 3


def test_all_that_would_be_restarted_counts_together():
    rows = [row("a"), row("b", "dead"), row("c", "unresponsive"), *well("d", "e")]
    assert words(rows, ALL)[:3] == ["common_cause"] * 3
    assert words(rows)[0] == "restart"


@pytest.mark.parametrize(("judged", "asked", "word"), [(1, 2, "restart"), (1, 3, "too_few_judged"), (2, 4, "restart")])
def test_half_of_the_hosts_must_have_been_judged(judged, asked, word):
    rows = [row("a"), *well(*"bcd"[: judged - 1]), *(lost("x%d" % number) for number in range(asked - judged))]
    assert words(rows)[0] == word


def test_a_host_of_which_one_server_was_judged_is_judged():
    rows = [row("a"), row("a", "unknown", reason="unreachable", unit="b.service"), lost("b")]
    assert words(rows)[0] == "restart"


# Pools


def test_a_pool_in_which_a_server_starts_waits():
    assert words([row("a"), row("b", "starting"), *well("c")])[0] == "pool_busy"
    assert words([row("a"), row("b", "starting", models=["other"]), *well("c")])[0] == "restart"


def test_a_pool_in_which_a_server_hangs_again_right_after_its_start_waits():
    assert words([row("a"), row("b", "stalled", reason="too_young"), *well("c")])[0] == "pool_busy"
    assert words([row("a"), row("b", "stalled", reason="reads_lost"), *well("c")])[0] == "restart"


def test_the_inventory_says_what_a_pool_is():
    rows = [row("a"), row("b", "starting"), *well("c")]
    assert words(rows, a="chat", b="code")[0] == "restart"
    assert words([row("a"), row("b", "starting", models=["other"]), *well("c")], a="chat", b="chat")[0] == "pool_busy"


def test_a_server_that_starts_does_not_say_its_model_and_may_be_of_any_pool():
    rows = [row("a"), row("b", "starting", models=[]), *well("c")]
    assert words(rows)[0] == "pool_busy"
    assert words(rows, b="code")[0] == "restart"
    assert words(rows, a="chat")[0] == "pool_busy"


def test_one_after_another_a_pool_may_have_several_restarts_in_one_run():
    assert words([row("a"), row("b"), *well("c", "d")])[:2] == ["restart", "restart"]


def test_at_the_same_time_a_pool_has_one():
    guards = Guards(at_once=2)
    assert words([row("a"), row("b"), *well("c", "d")], guards)[:2] == ["restart", "pool_busy"]
    assert words([row("a"), row("b", models=["other"]), *well("c", "d")], guards)[:2] == ["restart", "restart"]
    unknown = [row("a", "dead", models=[]), row("b"), *well("c", "d")]
    assert words(unknown, Guards(("stuck", "dead"), at_once=2))[:2] == ["restart", "pool_busy"]


def test_the_last_one_of_a_pool_goes_only_if_it_surely_serves_nobody():
    assert words([row("a")]) == ["restart"]
    assert words([row("a", "dead")], ALL) == ["restart"]
    assert words([row("a", "unresponsive")], ALL) == ["pool_would_be_empty"]
    assert words([row("a", "unresponsive"), *well("b")], ALL)[0] == "restart"
    assert words([row("a", "unresponsive"), row("b", "idle", models=["other"])], ALL)[0] == "pool_would_be_empty"
    assert words([row("a", "unresponsive"), row("b", "stalled", reason="reads_lost"), row("c", "sleeping")], ALL)[0] == "pool_would_be_empty"


def test_a_proxy_stands_in_for_nobody():
    rows = [row("a", "unresponsive"), row("p", "serving", kind="proxy")]
    assert words(rows, ALL)[0] == "pool_would_be_empty"


# Units


@pytest.mark.parametrize("verdict", [word for word in verdicts.VERDICTS if word != "stuck"])
def test_a_unit_that_runs_anything_else_stays(verdict):
    rows = [row("a"), row("a", verdict, models=["other"]), *well("b", "c")]
    expected = "pool_busy" if verdict == "starting" else "unit_serves_others"
    assert words(rows)[0] in (expected, "unit_serves_others")


def test_a_unit_whose_servers_all_hang_goes_once():
    assert words([row("a"), row("a"), *well("b", "c")])[:2] == ["restart", "same_unit"]


def test_the_same_unit_on_another_host_is_another():
    assert words([row("a"), row("b", "busy"), *well("c")])[0] == "restart"


def test_units_of_one_name_that_are_the_systems_and_a_users_are_two():
    rows = [row("a"), row("a", "busy", scope="user"), *well("b")]
    assert words(rows)[0] == "restart"


def test_a_unit_is_known_under_another_name_by_its_invocation():
    one, other = {"invocation_id": "5c0ee6c2"}, {"invocation_id": "6d1ff7d3"}
    alias = {"unit": "llm.service", "models": ["other"]}
    assert words([row("a", systemd=one), row("a", "busy", systemd=one, **alias)])[0] == "unit_serves_others"
    assert words([row("a", systemd=one), row("a", "busy", systemd=other, **alias)])[0] == "restart"
    assert words([row("a", systemd={}), row("a", "busy", systemd={}, **alias)])[0] == "restart"
    assert words([row("a", systemd=None), row("a", "busy", systemd={"error": "no answer"}, **alias)])[0] == "restart"


def test_a_unit_without_its_suffix_is_the_service():
    assert words([row("a"), row("a", "busy", unit="vllm", models=["other"])])[0] == "unit_serves_others"
    assert words([row("a"), row("a", "busy", unit="vllm.socket", models=["other"])])[0] == "restart"
    dotted = [row("a", unit="qwen2.5"), row("a", "busy", unit="qwen2.5.service", models=["other"])]
    assert words(dotted)[0] == "unit_serves_others"


# The limit of one run


def test_the_worst_come_first_and_the_rest_waits():
    rows = [*(row(name) for name in "abcde"), row("f", "dead"), *well(*"ghijklm")]
    assert words(rows, ALL) == ["restart"] * 3 + ["over_run_limit"] * 3 + ["not_stuck"] * 7


def test_a_limit_of_none_restarts_none():
    assert words([row("a"), *well("b")], Guards(max_per_run=0))[0] == "over_run_limit"


def test_what_is_held_for_another_reason_takes_no_place():
    rows = [row("a", unit=None), row("b"), row("b", "busy", models=["x"]), row("c"), *well("d", "e", "f")]
    assert words(rows, Guards(max_per_run=1))[:4] == ["no_unit", "unit_serves_others", "not_stuck", "restart"]


# What is said


def test_each_held_server_has_its_pool_and_a_sentence():
    plan = make_plan([row("a"), row("b", "starting"), lost("c"), *well("d")], {"d": "code"}, Guards())
    assert [(held.pool, held.reason) for held in plan.held] == [
        ("llama", "pool_busy"),
        ("llama", "not_stuck"),
        ("", "not_judged"),
        ("code", "not_stuck"),
    ]
    assert all(held.message for held in plan.held)
    assert plan.held[1].message == "it is starting"
