"""What one run on the controller found, given to each host."""

from ansible_collections.fleetcheck.vllm.plugins.filter.results_from_here import results_from_here

HERE = {"places": [("a", "vllm.service"), ("b", None), ("a", None)], "failed": {"c": "its variables cannot be used"}}


def result(*verdicts):
    return {"servers": [{"verdict": verdict, "name": str(at)} for at, verdict in enumerate(verdicts)]}


def test_each_host_has_its_servers_in_order_with_their_units_and_its_worst_verdict():
    found = results_from_here(HERE, result("busy", "idle", "stuck"))
    assert [(server["name"], server["unit"]) for server in found["a"]["servers"]] == [("0", "vllm.service"), ("2", None)]
    assert (found["a"]["verdict"], found["a"]["healthy"], found["a"]["counts"]) == ("stuck", False, {"stuck": 1, "busy": 1})
    assert (found["b"]["verdict"], found["b"]["healthy"]) == ("idle", True)
    assert found["a"]["from_controller"] is True


def test_a_host_that_was_left_out_has_failed():
    assert results_from_here(HERE, result("busy", "idle", "busy"))["c"] == {"failed": True, "msg": "its variables cannot be used"}


def test_those_that_are_well_may_be_left_out():
    assert list(results_from_here(HERE, result("busy", "idle", "stuck"), healthy_too=False)) == ["a", "c"]
    assert list(results_from_here(HERE, result("busy", "stalled", "idle"), healthy_too=False)) == ["b", "c"]
