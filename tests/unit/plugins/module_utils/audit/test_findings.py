"""The sentence an operator can act on."""

import calendar

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit import findings
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit.findings import History, sentence
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit.journal import Asker, Restart
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit.parties import Party, Place, ordered

JULY_22 = calendar.timegm((2026, 7, 22, 3, 0, 0))


def timer(minutes, **more):
    return Party("timer", f"w{minutes}.timer", "restart", every=60 * minutes, when=f"every {minutes} minutes", **more)


def restarts(*moments):
    """Restarts at these seconds of 22 July, each with the distance from the one before."""
    before = [None, *moments[:-1]]
    return [
        (Restart(JULY_22 + at, JULY_22 + at, at - last if last is not None else None, "", False), Asker())
        for last, at in zip(before, moments)
    ]


def history(*moments, **more):
    return History(restarts(*moments), 30, 600, **more)


def test_four_timers_and_a_bad_day():
    four = [timer(5), timer(10), timer(15), timer(30)]
    eight = history(0, 300, 600, 900, 1800, 2100, 2400, 3600)
    assert sentence("vllm.service", four, eight, False) == (
        "4 parties can restart vllm.service (timers every 5, 10, 15 and 30 minutes); "
        "8 restarts on 22 July, 5 of them less than 10 minutes after the one before"
    )


def test_nothing_found():
    assert sentence("vllm.service", [], history(), restart="always") == (
        "Nothing but systemd itself (Restart=always) can restart vllm.service; no restart in the last 30 days"
    )
    assert sentence("vllm.service", [], history(), restart="no") == (
        "Nothing on this host restarts vllm.service; no restart in the last 30 days"
    )


def test_what_is_switched_off_is_not_counted():
    said = sentence("vllm.service", [timer(5, active=False)], history(), False)
    assert said.startswith("Nothing on this host restarts vllm.service (1 more switched off)")


@pytest.mark.parametrize(
    "parties, words",
    [
        ([timer(5)], "1 party can restart x (timer every 5 minutes)"),
        (
            [timer(5), Party("cron", "cron of root", "restart", every=900), Party("monit", "vllm", "restart")],
            "3 parties can restart x (timer every 5 minutes, cron every 15 minutes, monit)",
        ),
        (
            [Party("watchdog", "WatchdogSec", "restart", every=600), Party("dependency", "llm.target", "restart")],
            "2 parties can restart x (its own WatchdogSec after 10 minutes, the unit llm.target)",
        ),
        (
            [Party("service", "a.service", "restart"), Party("service", "b.service", "kill")],
            "2 parties can restart x (the services a.service and b.service)",
        ),
        ([Party("timer", "t.timer", "restart", when="OnBootSec=1min")], "1 party can restart x (timer t.timer)"),
    ],
)
def test_the_parties_in_words(parties, words):
    assert sentence("x", parties, history(), False).split(";")[0] == words


@pytest.mark.parametrize(
    "known, words",
    [
        (history(0), "1 restart on 22 July"),
        (history(0, 7200), "2 restarts on 22 July"),
        (history(0, 60), "2 restarts on 22 July, 1 of them less than 10 minutes after the one before"),
        (
            history(0, 60, 3 * 86400),
            "3 restarts in the last 30 days, 2 of them on 22 July, 1 of them less than 10 minutes after the one before",
        ),
        (history(begins=JULY_22), "no restart since 22 July, where the journal begins"),
        (history(0, begins=JULY_22), "1 restart on 22 July (the journal begins on 22 July)"),
        (history(why_not="not permitted"), "its restarts are not known (not permitted)"),
    ],
)
def test_the_restarts_in_words(known, words):
    assert sentence("x", [], known, False).split("; ")[1] == words


def test_what_could_not_be_read_is_said():
    assert sentence("x", [], history(), True).endswith("; not everything could be read")


def test_a_party_in_one_line():
    party = timer(5, places=(Place("/opt/w.sh", 12, "systemctl restart vllm"),), via=(Place("/etc/w.timer", 3, ""),))
    assert findings.party_line(party) == (
        "timer w5.timer: restart, every 5 minutes, written in /opt/w.sh:12 (by way of /etc/w.timer:3)"
    )


def test_the_frequent_ones_come_first_and_those_switched_off_last():
    some = [timer(1, active=False), timer(30), timer(5), Party("cron", "c", "restart")]
    assert [party.name for party in ordered(some)] == ["w5.timer", "w30.timer", "c", "w1.timer"]


def test_a_restart_as_data():
    data = findings.restart_data(Restart(JULY_22, JULY_22, 59.6, "signal", True), Asker("systemd", "systemd", True), 600)
    assert data == {
        "at": "2026-07-22T03:00:00Z",
        "after": 60,
        "close": True,
        "by": "systemd",
        "by_kind": "systemd",
        "certain": True,
        "result": "signal",
    }
