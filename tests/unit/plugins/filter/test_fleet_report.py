"""Results of many hosts become one report, whatever the hosts say."""

import json

import pytest
from ansible_collections.fleetcheck.vllm.plugins.filter.fleet_report import fleet_report

AT = "2026-11-29T22:00:00Z"


def server(verdict="busy", reason="progress", healthy=True, **more):
    return {
        "name": "vllm.service",
        "verdict": verdict,
        "reason": reason,
        "healthy": healthy,
        "message": "2 running, 0 waiting",
        "engines": [],
        "last_sample": {"engines": {}},
        **more,
    }


def checked(*servers):
    return {"vllm_check_result": {"verdict": servers[0]["verdict"], "servers": list(servers), "failed": False}}


UNREACHABLE = {"vllm_check_result": {"unreachable": True, "msg": "Task failed: Connection refused"}}
FAILED = {"vllm_check_result": {"failed": True, "msg": "patience is -5"}}


def report(hostvars):
    return fleet_report(hostvars, list(hostvars), AT)


def test_servers_come_worst_first_and_in_the_order_of_the_inventory_within_a_verdict():
    fleet = report({
        "b": checked(server("idle", "answered")),
        "a": checked(server(), server("stuck", "no_progress", False)),
        "c": checked(server("dead", "refused", False)),
        "d": checked(server()),
    })
    assert [(row["host"], row["verdict"]) for row in fleet["servers"]] == [
        ("a", "stuck"),
        ("c", "dead"),
        ("a", "busy"),
        ("d", "busy"),
        ("b", "idle"),
    ]
    assert fleet["counts"] == {"stuck": 1, "dead": 1, "busy": 2, "idle": 1}
    assert list(fleet["counts"]) == ["stuck", "dead", "busy", "idle"]
    assert fleet["hosts"] == {"checked": 4, "unreachable": 0, "failed": 0}
    assert (fleet["schema"], fleet["checked_at"]) == (1, AT)


def test_a_row_has_the_host_and_everything_of_the_server_but_its_last_sample():
    (row,) = report({"a": checked(server(probes=0, url="http://x"))})["servers"]
    assert row["host"] == "a"
    assert row["url"] == "http://x"
    assert "last_sample" not in row


def test_a_host_that_was_not_checked_is_a_row_that_says_why():
    fleet = report({"a": UNREACHABLE, "b": FAILED, "c": {}})
    assert [(row["host"], row["name"], row["verdict"], row["reason"], row["healthy"]) for row in fleet["servers"]] == [
        ("a", "-", "unknown", "unreachable", None),
        ("b", "-", "unknown", "check_failed", None),
        ("c", "-", "unknown", "check_failed", None),
    ]
    assert [row["message"] for row in fleet["servers"]] == [
        "Connection refused",
        "patience is -5",
        "the check of this host left no result",
    ]
    assert fleet["hosts"] == {"checked": 0, "unreachable": 1, "failed": 2}


@pytest.mark.parametrize(
    ("results", "healthy"),
    [
        ([checked(server())], True),
        ([checked(server("sleeping", "sleep_mode", None))], True),
        ([checked(server("stalled", "too_young", False))], False),
        ([checked(server("unknown", "no_metrics", None))], False),
        ([checked(server()), UNREACHABLE], False),
        ([checked(server()), FAILED], False),
    ],
    ids=["busy", "asleep", "stalled", "unknown", "a host unreachable", "a check failed"],
)
def test_a_fleet_is_healthy_when_every_server_was_judged_and_none_is_sick(results, healthy):
    assert report({str(number): result for number, result in enumerate(results)})["healthy"] is healthy


@pytest.mark.parametrize(
    "nonsense",
    [
        {"servers": "busy"},
        {"servers": ["busy"]},
        {"servers": [server("fine")]},
        {"servers": [{"verdict": "busy"}]},
        {"verdict": "busy"},
        {"servers": [server(reason="not_********")]},
        {"servers": [server(reads="VALUE_SPECIFIED_IN_NO_LOG_PARAMETER")]},
        {"servers": [server(engines="busy")]},
        {"servers": [server(engines=[{"running": "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"}])]},
    ],
    ids=[
        "no list",
        "no dictionaries",
        "no verdict we know",
        "keys missing",
        "no servers",
        "a reason with a key in it",
        "a number that is a key",
        "no list of engines",
        "a number of an engine that is a key",
    ],
)
def test_a_host_that_answers_nonsense_does_not_spoil_the_report(nonsense):
    fleet = report({"a": {"vllm_check_result": nonsense}, "b": checked(server())})
    assert fleet["hosts"] == {"checked": 1, "unreachable": 0, "failed": 1}
    assert [row["host"] for row in fleet["servers"]] == ["a", "b"]


def test_a_result_that_cannot_be_read_says_what_may_have_spoilt_it():
    (row,) = report({"a": checked(server(elapsed="VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"))})["servers"]
    assert (row["verdict"], row["reason"]) == ("unknown", "check_failed")
    assert "API key" in row["message"]


def test_names_that_ansible_hid_are_those_of_the_inventory():
    hidden = {"name": "********.service", "unit": "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER", "url": "http://********.example:8000"}
    known = {"unit": "vllm.service", "url": "http://vllm.example:8000"}
    hosts = {
        "a": {**checked(server(), server(**hidden)), "vllm_servers": [{}, known]},
        "b": {**checked(server(**hidden)), "vllm_servers": [{**known, "name": "vllm"}]},
        "c": checked(server(**hidden)),  # nothing is known of it
    }
    rows = {(row["host"], row["place"]): row for row in report(hosts)["servers"]}
    named = {key: (row["name"], row.get("unit"), row.get("url")) for key, row in rows.items()}
    assert named == {
        ("a", 0): ("vllm.service", None, None),
        ("a", 1): ("vllm.service", *known.values()),
        ("b", 0): ("vllm", *known.values()),
        ("c", 0): tuple(hidden.values()),
    }


def test_the_report_is_json_even_where_a_server_exports_what_is_no_number():
    engines = [{"engine": "0", "running": float("nan"), "kv_cache_usage": float("inf"), "waiting": 1.5}]
    fleet = report({"a": checked(server(engines=engines))})
    text = json.dumps(fleet, allow_nan=False)
    assert json.loads(text)["servers"][0]["engines"] == [
        {"engine": "0", "running": None, "kv_cache_usage": None, "waiting": 1.5}
    ]


def test_its_strings_are_marked_so_that_no_core_renders_them():
    (row,) = report({"a": checked(server(models=["{{ lookup('pipe', 'id') }}"]))})["servers"]
    # ansible-core 2.19 needs no mark: what it did not read from a playbook it does not render.
    assert getattr(row["models"][0], "__UNSAFE__", True)
