"""Verdicts become metrics that Prometheus' own parser reads."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import metrics
from ansible_collections.fleetcheck.vllm.plugins.module_utils.verdicts import VERDICTS
from prometheus_client.parser import text_string_to_metric_families

NOON = 1_795_953_600.0


def measure(server="vllm.service", verdict="busy", **more):
    return {"server": server, "verdict": verdict, "probes": 0, "action": "", "engines": [], **more}


def samples(registry):
    text = metrics.text_of(registry).decode("utf-8")
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_of_all_verdicts_the_one_is_1_and_the_others_are_0():
    seen = samples(metrics.of_check([measure(verdict="stuck")], NOON))
    verdicts = {dict(labels)["verdict"]: value for (name, *labels), value in seen.items() if name == metrics.VERDICT}
    assert verdicts == {verdict: float(verdict == "stuck") for verdict in VERDICTS}


def test_a_check_tells_when_it_was_what_it_sent_and_which_engine_was_silent():
    engines = [{"engine": "0", "silent_for": 0.0}, {"engine": "1", "silent_for": 121.4}]
    seen = samples(metrics.of_check([measure(probes=1, engines=engines)], NOON))
    server = ("server", "vllm.service")
    assert seen[metrics.LAST_CHECK,] == NOON
    assert seen[metrics.PROBES, server] == 1
    assert seen[metrics.SILENT, ("engine", "0"), server] == 0
    assert seen[metrics.SILENT, ("engine", "1"), server] == 121.4


def test_why_a_restart_was_held_back_is_told_and_one_that_was_made_is_not_held_back():
    measures = [measure("a", "stuck", action="over_run_limit"), measure("b", "idle", action="restarted"), measure("c")]
    seen = samples(metrics.of_check(measures, NOON))
    assert [key for key in seen if key[0] == metrics.HELD] == [(metrics.HELD, ("reason", "over_run_limit"), ("server", "a"))]


def test_restarts_are_told_with_how_they_went():
    made = metrics.restarts_of([measure("a", action="restarted"), measure("b", action="restart_failed"), measure("c")], NOON)
    seen = samples(metrics.of_restarts(made, metrics.of_check([], NOON)))
    assert seen[metrics.LAST_RESTART, ("result", "restarted"), ("server", "a")] == NOON
    assert seen[metrics.LAST_RESTART, ("result", "restart_failed"), ("server", "b")] == NOON


def text_with_restarts(*servers):
    made = metrics.restarts_of([measure(server, action="restarted") for server in servers], NOON)
    return metrics.text_of(metrics.of_restarts(made, metrics.of_check([], NOON))).decode()


def test_earlier_restarts_of_servers_that_still_exist_are_kept():
    earlier = metrics.earlier_restarts(text_with_restarts("a", "gone", "again"), [measure("a"), measure("again", action="restart_failed")])
    assert earlier == {("a", "restarted"): NOON}


@pytest.mark.parametrize("text", ["", "no metrics at all {", "\x00", 'x{server="a} 1\n'])
def test_an_earlier_text_that_cannot_be_read_tells_of_no_restarts(text):
    assert metrics.earlier_restarts(text, [measure("a")]) == {}


def test_no_name_can_break_the_text():
    names = ['a"b', "a\nb", "a\\b", "{}", "a\ud800b", 'x"} 1\nvllm_fleetcheck_verdict{server="y"} 1']
    seen = samples(metrics.of_check([measure(name) for name in names], NOON))
    assert {dict(labels)["server"] for (name, *labels) in seen if name == metrics.PROBES} == {*names[:4], "a?b", names[5]}


def test_times_are_utc_and_nothing_else():
    assert metrics.unix_time("2026-11-29T12:00:00Z") == NOON
    for wrong in ("", "now", "2026-11-29 12:00:00", "2026-11-29T12:00:00+01:00"):
        with pytest.raises(ValueError, match=r"\S"):
            metrics.unix_time(wrong)
