"""What the report says was done, for every end that a restart can have."""

import json

import pytest
import yaml
from ansible_collections.fleetcheck.vllm.plugins.filter import heal_report as plugin
from ansible_collections.fleetcheck.vllm.plugins.filter.fleet_alarm import fleet_alarm
from ansible_collections.fleetcheck.vllm.plugins.filter.heal_report import heal_report
from ansible_collections.fleetcheck.vllm.plugins.module_utils import verdicts

RESTARTED = {"changed": True, "skipped_because": "", "message": "vllm.service was restarted", "evidence": "/kept"}
OF = {"name": "x", "unit": "x", "engines": []}
SERVES = {**OF, "verdict": "idle", "reason": "answered", "healthy": True, "message": "answered in 0.1 s"}
FROZEN = {**OF, "verdict": "stalled", "reason": "too_young", "healthy": False, "message": "silent for 10 s"}


def row(host="a", verdict="stuck", place=0):
    judged = {"verdict": verdict, "reason": verdicts.REASONS[verdict][0], "healthy": verdicts.healthy(verdict)}
    return {"host": host, "place": place, "name": "vllm.service", "unit": "vllm.service", "message": "before", **judged}


def result(restart=RESTARTED, seen=SERVES, **more):
    usual = {"place": 0, "failed": False, "dry_run": False, "judged": "stuck", "error": "", "seconds_down": 12.345}
    return {**usual, "restart": restart, "seen": seen, **more}


def report(*results, rows=None, held=(), results_of=None):
    """The report of a fleet of one host whose first server was planned for a restart."""
    planned = {"host": "a", "place": 0, "name": "vllm.service", "pool": "chat"}
    fleet = {"schema": 1, "servers": rows or [row()], "healthy": False, "counts": {}}
    plan = {"restart": [planned], "held": list(held), "hosts": ["a"]}
    return heal_report(fleet, plan, {"a": {"vllm_restart_results": list(results)} if results else {}, **(results_of or {})})


def only(*results, **more):
    (one,) = report(*results, **more)["servers"]
    return one


def test_a_restart_that_went_well():
    one = only(result())
    assert (one["action"], one["action_message"]) == ("restarted", "vllm.service was restarted")
    assert (one["verdict_before"], one["verdict"], one["healthy"], one["message"]) == ("stuck", "idle", True, "answered in 0.1 s")
    assert (one["seconds_down"], one["evidence"], one["pool"]) == (12.3, "/kept", "chat")
    assert (one["name"], one["unit"]) == ("vllm.service", "vllm.service")


@pytest.mark.parametrize("word", ["locked", "restarted_already", "paused", "too_soon", "quarantined", "gpu_lost", "recovered"])
def test_a_host_that_says_no(word):
    no = {"changed": False, "skipped_because": word, "message": "vllm.service was left alone: why"}
    one = only(result(no, seen={}, seconds_down=None))
    assert (one["action"], one["action_message"]) == (word, "vllm.service was left alone: why")
    assert (one["verdict"], one["message"], one["seconds_down"]) == ("stuck", "before", None)


def test_a_dry_run():
    assert only(result(dry_run=True, seen={}, seconds_down=None))["action"] == "would_restart"


@pytest.mark.parametrize("down", [None, "", 0])
def test_no_seconds_down_are_none(down):
    assert only(result(seconds_down=down))["seconds_down"] is None


def test_a_server_that_does_not_come_back():
    one = only(result(seen=FROZEN, failed=True))
    assert one["action"] == "restart_failed"
    assert one["action_message"] == "vllm.service was restarted, but does not serve: it is stalled, silent for 10 s"
    assert (one["verdict"], one["evidence"]) == ("stalled", "/kept")


def test_a_connection_that_is_lost_during_the_wait():
    one = only(result(seen={}, failed=True))
    assert one["action"] == "restart_failed"
    expected = "vllm.service was restarted, but: the connection to the host was lost while it was awaited"
    assert one["action_message"] == expected
    assert (one["verdict_before"], one["verdict"], one["healthy"]) == ("stuck", "unknown", None)


def test_a_connection_that_is_lost_during_the_restart():
    one = only(result({"unreachable": True, "msg": "no route"}, seen={}, failed=True))
    assert (one["action"], one["verdict"]) == ("restart_failed", "unknown")
    assert one["action_message"] == "the connection to the host was lost: look whether it was restarted"


def test_a_wait_that_ends_with_an_error():
    one = only(result(seen={}, failed=True, error="no such option"))
    assert one["action_message"] == "vllm.service was restarted, but: no such option"
    assert one["verdict"] == "unknown"


def test_an_error_before_anything_was_done():
    one = only(result({"failed": True, "msg": "Missing sudo password"}, seen={}, failed=True, error="Missing sudo password"))
    assert (one["action"], one["action_message"], one["verdict"]) == ("restart_failed", "Missing sudo password", "stuck")


def test_a_run_that_stopped_before_its_turn():
    one = only(result({"skipped": True}, seen={}, seconds_down=None))
    assert (one["action"], one["verdict"]) == ("run_stopped", "stuck")


def test_a_server_that_is_something_else_beside_the_engine():
    one = only(result({"skipped": True}, seen={}, judged="busy", seconds_down=None))
    assert (one["action"], one["action_message"]) == ("not_confirmed", "beside the engine it is busy")
    assert only()["action"] == "not_confirmed"


@pytest.mark.parametrize(("reason", "action"), [("not_stuck", "none"), ("not_judged", "none"), ("common_cause", "common_cause")])
def test_what_the_plan_held_back(reason, action):
    held = {"host": "b", "place": 0, "pool": "chat", "reason": reason, "message": "why"}
    servers = report(result(), rows=[row(), row("b", "busy")], held=[held])["servers"]
    (other,) = [one for one in servers if one["host"] == "b"]
    assert (other["action"], other["action_message"], other["verdict"]) == (action, "why", "busy")


def test_the_whole_is_counted_anew_and_sorted_anew():
    held = {"host": "b", "place": 0, "pool": "", "reason": "paused", "message": "why"}
    made = report(result(), rows=[row(), row("b")], held=[held])
    assert [one["host"] for one in made["servers"]] == ["b", "a"]
    assert made["counts"] == {"stuck": 1, "idle": 1} and made["healthy"] is False
    assert made["restarts"] == {"restarted": 1, "would_restart": 0, "failed": 0, "held": 1}
    assert report(result())["healthy"] is True


def test_a_look_that_cannot_be_read_does_not_end_the_report():
    one = only(result(seen={**SERVES, "verdict": "********"}, failed=True))
    assert (one["action"], one["verdict"]) == ("restart_failed", "unknown")


def test_a_restart_that_failed_fails_the_run_whatever_is_seen_after_it():
    for seen in ({}, FROZEN):
        assert fleet_alarm(report(result(seen=seen, failed=True)), [])


def test_it_is_plain_data_and_documented():
    made = report(result())
    assert json.loads(json.dumps(made)) == made
    assert yaml.safe_load(plugin.DOCUMENTATION)["name"] == "heal_report"
