"""Rows of reports, whoever wrote them, become servers that can be shown."""

import math

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.verdicts import VERDICTS
from ansible_collections.fleetcheck.vllm.plugins.plugin_utils.page.view import (
    BAD,
    FINE,
    RESTING,
    UNSURE,
    duration,
    level,
    moment,
    servers,
)

from tests.unit.plugins.plugin_utils.page.samples import engine, fleet, row, unreachable


def only(*arguments, **more):
    (server,) = servers(fleet(row(*arguments, **more)))
    return server


def test_every_verdict_matters_in_one_of_four_ways():
    assert {verdict: level(verdict) for verdict in VERDICTS} == {
        "stuck": BAD, "dead": BAD, "unresponsive": BAD, "stalled": BAD, "unknown": UNSURE, "starting": RESTING,
        "paused": RESTING, "sleeping": RESTING, "busy": FINE, "idle": FINE, "serving": FINE,
    }  # fmt: skip
    assert level("a verdict of a later release") == UNSURE


def test_servers_come_worst_first_and_what_was_touched_before_what_was_not():
    shown = servers(fleet(
        row("idle", "a"), row("idle", "b", action="restarted", verdict_before="stuck", verdict_after="idle"), row("starting", "c"),
        row("stuck", "d"), row("dead", "e"), unreachable("f"),
    ))
    assert [server.host for server in shown] == ["d", "e", "f", "c", "b", "a"]


def test_after_a_restart_the_newer_verdict_counts_and_the_old_reason_is_gone():
    server = only("stuck", action="restarted", action_message="it serves", verdict_before="stuck", verdict_after="idle",
                  seconds_down=94.2, evidence="/var/lib/x")
    assert (server.verdict, server.level, server.reason, server.noteworthy) == ("idle", FINE, "", True)
    assert (server.deed.action, server.deed.before, server.deed.seconds_down) == ("restarted", "stuck", 94.2)


def test_a_report_of_heal_has_the_newer_verdict_and_its_sentence_already():
    server = only("idle", message="it answered", action="restarted", verdict_before="stuck", seconds_down=94.2, evidence=None)
    assert (server.verdict, server.reason, server.message) == ("idle", "answered", "it answered")
    assert (server.deed.before, server.deed.after) == ("stuck", "idle")


def test_a_server_that_was_left_alone_has_no_course():
    deed = only("stuck", action="too_soon", verdict_before="stuck", seconds_down=None, evidence=None).deed
    assert (deed.action, deed.before, deed.after) == ("too_soon", "", "")


@pytest.mark.parametrize("action", [None, "", "none", "not_stuck"])
def test_a_server_about_which_nothing_was_to_be_done_has_no_deed(action):
    assert only(action=action, verdict_before="busy", seconds_down=None, evidence=None).deed is None


def test_a_server_that_works_is_not_noteworthy():
    assert not only("busy").noteworthy
    assert only("sleeping").noteworthy


def test_a_host_that_was_not_reached_has_no_name_of_a_server():
    (server,) = servers(fleet(unreachable("gpu-09")))
    assert (server.label, server.checked) == ("gpu-09", False)


@pytest.mark.parametrize("wrong", [None, "many", math.nan, math.inf, True, [1]])
def test_what_is_no_number_is_not_known(wrong):
    (shown,) = only(engines=[engine(running=wrong)]).engines
    assert shown.running is None


@pytest.mark.parametrize("rows", [None, "busy", [None], [[]], [7]])
def test_rows_that_are_none_are_left_out(rows):
    assert servers({"servers": rows}) == []


def test_a_row_with_nothing_in_it_is_shown_as_not_judged():
    (server,) = servers({"servers": [{}]})
    assert (server.host, server.verdict, server.level, server.engines) == ("?", "unknown", UNSURE, ())


def test_details_say_how_it_runs_and_what_the_check_took():
    facts = {"active_state": "active", "sub_state": "running", "started_at": "2026-11-29T08:12:44Z", "restarts": 2}
    server = only(systemd=facts, models=["a", "b", "c", "d", "e"], reads=14, probes=1, elapsed=121.4)
    assert dict(server.details) == {
        "Address": "http://127.0.0.1:8000",
        "Unit": "vllm.service, active (running), since 2026-11-29 08:12:44 UTC, restarted 2 times by systemd",
        "Models": "a, b, c and 2 more",
        "vLLM": "0.32.0",
        "Check": "14 reads in 121 s, 1 request sent",
    }
    assert dict(only(systemd={"error": "no systemctl"}).details)["Unit"] == "vllm.service: no systemctl"


def test_times_are_written_for_people():
    assert [duration(value) for value in (0.27, 42, 121.4, 900, 7200)] == ["0.27 s", "42 s", "121 s", "15 min", "2 h"]
    assert moment("2026-11-29T22:00:00Z") == "2026-11-29 22:00:00 UTC"
    assert moment("yesterday") == "yesterday"
