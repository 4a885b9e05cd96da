"""The audits of many hosts become one report, worst first, and the report becomes lines."""

from __future__ import annotations

from ansible_collections.fleetcheck.vllm.plugins.filter.audit_report import audit_report
from ansible_collections.fleetcheck.vllm.plugins.filter.audit_table import audit_table
from ansible_collections.fleetcheck.vllm.plugins.filter.units_to_audit import units_to_audit

AT = "2026-11-29T22:00:00Z"


def unit(name="vllm.service", count=0, restarts=0, close=0, **more):
    return {
        "unit": name,
        "summary": f"{count} can restart {name}",
        "count": count,
        "restart_count": restarts,
        "close_count": close,
        "parties": [{"message": f"timer w{number}.timer"} for number in range(count)],
        "notes": [],
        "incomplete": False,
        **more,
    }


def audited(*units, notes=()):
    return {"vllm_audit_result": {"units": list(units), "notes": list(notes), "summary": "No unit was found"}}


FLEET = {
    "clean": audited(unit()),
    "dark": audited(unit(incomplete=True), notes=["/etc/crontab: not permitted"]),
    "gone": {"vllm_audit_result": {"unreachable": True, "msg": "Task failed: no route to host"}},
    "empty": audited(),
    "watched": audited(unit(count=2, restarts=1), unit("b.service", count=1)),
    "thrashing": audited(unit(count=1, restarts=9, close=5)),
    "broken": {"vllm_audit_result": {"failed": True, "msg": "no python"}},
    "silent": {},
}


def report():
    return audit_report(FLEET, list(FLEET), AT)


def test_worst_first():
    assert [(row["host"], row["unit"]) for row in report()["units"]] == [
        ("thrashing", "vllm.service"),
        ("watched", "vllm.service"),
        ("watched", "b.service"),
        ("broken", "-"),
        ("gone", "-"),
        ("silent", "-"),
        ("dark", "vllm.service"),
        ("empty", "-"),
        ("clean", "vllm.service"),
    ]


def test_hosts_are_counted():
    assert report()["hosts"] == {"audited": 5, "unreachable": 1, "failed": 2}


def test_the_lines():
    lines = audit_table(report())
    assert lines[0] == "HOST       UNIT          CAN RESTART IT  RESTARTS  TOO SOON AFTER ANOTHER"
    assert lines[1] == "thrashing  vllm.service  1               9         5"
    assert "gone       unreachable   -               -         -" in lines
    assert "gone: no route to host" in lines
    assert "dark: 0 can restart vllm.service" in lines
    assert "  note: /etc/crontab: not permitted" in lines
    assert lines[lines.index("watched: 2 can restart vllm.service") + 1] == "  timer w0.timer"
    assert lines[-1] == "5 of 8 hosts audited; 1 unreachable; 2 failed"


def test_text_of_hosts_stays_one_plain_line():
    hostile = audited(unit(summary="a\x1b[2J\nb {{ evil }}", notes=["x\u202ey"]))
    lines = audit_table(audit_report({"h": hostile}, ["h"], AT))
    assert "h: a?[2J b {{ evil }}" in lines
    assert not any("\x1b" in line or "\u202e" in line or "\n" in line for line in lines)


def test_a_hundred_parties_do_not_fill_the_screen():
    lines = audit_table(audit_report({"h": audited(unit(count=100))}, ["h"], AT))
    assert len(lines) < 30 and "  and 80 more" in lines


def test_a_fleet_without_hosts():
    assert audit_table(audit_report({}, [], AT))[-1] == "0 of 0 hosts audited"


def test_the_units_of_a_hand_written_list():
    servers = [
        {"url": "http://127.0.0.1:8001", "unit": "a.service"},
        {"unit": "mine.service", "scope": "user"},
        {"unit": "a.service", "url": "http://127.0.0.1:8002"},
        {"url": "http://127.0.0.1:9000", "kind": "proxy"},
        {"unit": "odd.service", "url": "http://[::1"},
    ]
    assert units_to_audit(servers, "alice") == [
        {"unit": "a.service", "scope": "system", "port": 8001},
        {"unit": "mine.service", "scope": "user", "user": "alice", "port": 8000},
        {"unit": "odd.service", "scope": "system"},
    ]


def test_what_is_no_list_leaves_it_to_the_audit():
    assert units_to_audit("auto") == units_to_audit(None) == units_to_audit([{}]) == []
