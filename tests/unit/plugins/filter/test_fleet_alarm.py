"""What fails a run, in one sentence."""

from ansible_collections.fleetcheck.vllm.plugins.filter.fleet_alarm import fleet_alarm


def row(host, verdict="busy", reason="progress", name="vllm.service"):
    return {"host": host, "name": name, "verdict": verdict, "reason": reason}


def alarm(*rows, verdicts=("stuck", "dead")):
    return fleet_alarm({"servers": list(rows)}, list(verdicts))


def test_nothing_is_said_where_nothing_has_to_fail():
    assert alarm(row("a"), row("b", "unknown", "no_metrics"), row("c", "stalled", "too_young")) == ""


def test_the_servers_are_named():
    assert alarm(row("a", "stuck", "no_progress"), row("b")) == (
        "1 of 2 need attention: a vllm.service stuck (no_progress)."
    )


def test_a_host_that_was_not_checked_always_counts():
    rows = [row("a", "unknown", "unreachable", "-"), row("b", "unknown", "check_failed", "-")]
    assert alarm(*rows, verdicts=()) == "2 of 2 need attention: a unreachable, b check failed."


def test_the_sentence_stays_short():
    sentence = alarm(*[row(f"gpu-{number}", "stuck", "no_progress") for number in range(500)])
    assert "gpu-9 " in sentence
    assert "gpu-10 " not in sentence
    assert sentence.endswith("and 490 more.")
