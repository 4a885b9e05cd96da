"""What became of servers over the runs before."""

from ansible_collections.fleetcheck.vllm.plugins.plugin_utils.page import history
from ansible_collections.fleetcheck.vllm.plugins.plugin_utils.page.view import servers

from tests.unit.plugins.plugin_utils.page.samples import fleet, row, run, unreachable


def past(now, *earlier):
    return history.runs(fleet(*now), servers(fleet(*now)), earlier)


def changes(now, *earlier):
    found = history.changes(past(now, *earlier))
    return [[(*change.server, change.before, change.after) for change in of_run] for of_run in found]


def test_runs_come_oldest_first_and_end_with_the_one_shown():
    runs = past([row()], run(55, row()), run(40, row()), run(50, row()))
    assert [one.checked_at[11:16] for one in runs] == ["21:40", "21:50", "21:55", "22:00"]


def test_the_report_shown_is_no_earlier_one_and_a_later_one_is_none_either():
    same = {"checked_at": "2026-11-29T22:00:00Z", "servers": []}
    later = {"checked_at": "2026-11-29T22:05:00Z", "servers": []}
    assert len(past([row()], same, later)) == 1


def test_no_more_than_the_last_thirty_runs_are_shown():
    runs = past([row()], *(run(minute, row()) for minute in range(60)))
    assert (len(runs), runs[0].checked_at[11:16]) == (30, "21:31")


def test_a_server_has_a_verdict_for_each_run_that_looked_at_it():
    runs = past([row("stuck")], run(40, row("busy")), run(45, row("busy", "another")), run(50, unreachable()), run(55, row("stuck")))
    (server,) = servers(fleet(row("stuck")))
    assert history.of_server(server, runs) == ["busy", None, "unknown", "stuck", "stuck"]


def test_a_host_that_is_not_reached_has_the_worst_of_its_servers_as_its_past():
    (server,) = servers(fleet(unreachable()))
    runs = past([unreachable()], run(50, row("busy", name="a"), row("dead", name="b")), run(55, unreachable()))
    assert history.of_server(server, runs) == ["dead", "unknown", "unknown"]


def test_it_says_since_when_a_server_is_as_it_is():
    (server,) = servers(fleet(row("stuck")))

    def since(*earlier):
        return history.since(server, past([row("stuck")], *earlier))

    assert since() == ""
    assert since(run(50, row("busy"))) == "new in this run"
    assert since(run(45, row("busy")), run(50, row("stuck")), run(55, row("stuck"))) == "since 21:50:00 UTC (3 runs)"
    assert since(run(50, row("stuck"))) == "since 21:50:00 UTC or longer (2 runs)"
    yesterday = {"checked_at": "2026-11-28T21:00:00Z", "servers": run(0, row("stuck"))["servers"]}
    assert since(run(1, row("busy")), yesterday) == "new in this run"
    assert since(yesterday) == "since 2026-11-28 21:00:00 UTC or longer (2 runs)"


def test_a_change_is_one_that_matters_to_a_person():
    now = [row("stuck", "a"), row("idle", "b"), row("busy", "c")]
    assert changes(now, run(50, row("busy", "a"), row("busy", "b"), row("starting", "c"))) == [
        [],
        [("a", "vllm.service", "busy", "stuck"), ("c", "vllm.service", "starting", "busy")],
    ]


def test_a_host_that_vanishes_and_comes_back_changes_twice():
    assert changes([row("busy")], run(45, row("busy")), run(50, unreachable()), run(55, unreachable())) == [
        [],
        [("gpu-01", "-", "busy", "unknown")],
        [],
        [("gpu-01", "vllm.service", "unknown", "busy")],
    ]


def test_a_server_that_one_run_left_out_is_compared_with_the_run_that_had_it():
    assert changes([row("stuck")], run(45, row("busy")), run(50))[-1] == [("gpu-01", "vllm.service", "busy", "stuck")]


def test_runs_in_which_all_stayed_as_it_was_are_put_together():
    runs = past([row("stuck")], run(40, row("busy")), run(45, row("idle")), run(50, row("stuck")), run(55, row("stuck")))
    spans = history.spans(runs)
    assert [(span.first.checked_at[11:16], span.last.checked_at[11:16], span.count) for span in spans] == [
        ("21:40", "21:45", 2),
        ("21:50", "22:00", 3),
    ]


def test_two_servers_of_one_name_count_as_the_worse():
    (only,) = past([row("busy"), row("dead")])
    assert only.verdicts == {("gpu-01", "vllm.service"): "dead"}
