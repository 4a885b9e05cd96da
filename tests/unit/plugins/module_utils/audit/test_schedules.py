"""How often something happens."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit import schedules

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    "text, seconds",
    [("5min", 300), ("1h 30min", 5400), ("10s", 10), ("1d", DAY), ("1w", 7 * DAY), ("90", 90), ("500ms", None),
     ("infinity", None), ("0", None), ("", None), ("soon", None), ("1h30min", 5400), ("2 hours", 7200),
     ("1 min 30 sec", 90), ("5 fortnights", None)],
)  # fmt: skip
def test_spans_of_systemd(text, seconds):
    assert schedules.span(text) == seconds


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("*-*-* *:00/10:00", 10 * MINUTE),
        ("*-*-* *:0/5:00", 5 * MINUTE),
        ("*-*-* *:00:00", HOUR),
        ("*-*-* 00/4:00:00", 4 * HOUR),
        ("*-*-* 06,18:00:00", 12 * HOUR),
        ("*-*-* 03:15:00", DAY),
        ("*-*-* 03:15:00 UTC", DAY),
        ("Mon *-*-* 00:00:00", 7 * DAY),
        ("Mon..Fri *-*-* *:00/30:00", 30 * MINUTE),
        ("*-*-01 00:00:00", 30 * DAY),
        ("*-*-* *:*:00", MINUTE),
        ("*-*-* *:*:00/20", None),
        ("2099-01-01 00:00:00", None),
        ("nonsense", None),
    ],
)
def test_calendars_of_systemd(text, seconds):
    assert schedules.calendar(text) == seconds


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("*/5 * * * *", 5 * MINUTE),
        ("* * * * *", MINUTE),
        ("0 * * * *", HOUR),
        ("0,30 * * * *", 30 * MINUTE),
        ("5-59/10 * * * *", 10 * MINUTE),
        ("0 4 * * *", DAY),
        ("0 */6 * * *", 6 * HOUR),
        ("0 4 * * 0", 7 * DAY),
        ("0 4 1 * *", 30 * DAY),
        ("@hourly", HOUR),
        ("@daily", DAY),
        ("@reboot", None),
        ("x * * * *", None),
        ("99 * * * *", None),
        ("*/0 * * * *", None),
    ],
)
def test_fields_of_cron(text, seconds):
    assert schedules.cron(text.split()) == seconds


@pytest.mark.parametrize(
    "spans, said",
    [
        ([300], "every 5 minutes"),
        ([1800, 300, 600, 900], "every 5, 10, 15 and 30 minutes"),
        ([60], "every minute"),
        ([300, DAY], "every 5 minutes and every day"),
        ([60, 300], "every 1 and 5 minutes"),
        ([90], "every 90 seconds"),
    ],
)
def test_said_as_people_do(spans, said):
    assert schedules.say_every(spans) == said


def test_numbers_and_words():
    assert [schedules.number(n, w) for n, w in [(1, "party"), (4, "party"), (2, "day"), (3, "restart")]] == [
        "1 party", "4 parties", "2 days", "3 restarts",
    ]  # fmt: skip
