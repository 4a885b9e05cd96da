"""Out of a report comes what Prometheus is told."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.filter.vllm_measures import vllm_measures


def row(host="a", name="vllm.service", verdict="busy", **more):
    return {"host": host, "name": name, "verdict": verdict, "engines": [], "probes": 0, "url": "http://127.0.0.1:8000", **more}


UNREACHABLE = {"host": "b", "name": "-", "verdict": "unknown", "reason": "unreachable", "engines": []}
FLEET = {"servers": [row(), UNREACHABLE, row("c", "x")]}


def measure(**more):
    (only,) = vllm_measures({"servers": [row(**more)]})
    return only


def test_a_server_is_its_verdict_its_probes_and_the_silence_of_its_engines():
    assert measure(verdict="idle", probes=1, engines=[{"engine": "1", "silent_for": 2.5, "running": 1}]) == {
        "host": "a", "server": "vllm.service", "verdict": "idle", "probes": 1, "action": "", "engines": [{"engine": "1", "silent_for": 2.5}],
    }  # fmt: skip


def test_each_server_has_its_host_and_an_unreachable_one_its_verdict():
    assert [(one["host"], one["server"], one["verdict"]) for one in vllm_measures(FLEET)] == [
        ("a", "vllm.service", "busy"), ("b", "-", "unknown"), ("c", "x", "busy"),
    ]  # fmt: skip


def test_two_servers_of_one_name_are_told_apart():
    rows = [row(), row(url="http://127.0.0.1:8001"), row(url="http://127.0.0.1:8001"), row("c")]
    assert [one["server"] for one in vllm_measures({"servers": rows})] == [
        "vllm.service", "vllm.service (http://127.0.0.1:8001)", "vllm.service (http://127.0.0.1:8001) #2", "vllm.service",
    ]  # fmt: skip


def test_after_a_restart_the_newer_verdict_counts():
    told = measure(verdict="stuck", verdict_after="idle", action="restarted")
    assert (told["verdict"], told["action"]) == ("idle", "restarted")


@pytest.mark.parametrize("action", [None, "", "none", "not_stuck", "would_restart"])
def test_where_nothing_was_to_be_done_no_restart_was_held_back(action):
    assert measure(action=action)["action"] == ""


def test_a_verdict_of_a_later_release_is_unknown_to_this_one():
    assert measure(verdict="melted")["verdict"] == "unknown"


def test_what_servers_call_themselves_is_one_short_line():
    told = measure(name="x\n{{ 7 }}" + "y" * 500, engines=[{"engine": "\x1b[0m"}])
    assert told["server"].startswith("x {{ 7 }}y") and len(told["server"]) == 200
    assert told["engines"] == [{"engine": "?[0m", "silent_for": 0.0}]
