"""The budget: how many starts are too many, and what is known of them from the journal."""

import json

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import bounded, systemd
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit import journal
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart import budget
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart.budget import Budget, JournalError, starts

from .commands import DENIED, NO_MATCH, NO_SUCH_COMMAND, TIMED_OUT, script

MINUTE, HOUR = 60.0, 3600.0
NOW = 1_795_991_942.5
DAY_AGO = NOW - 24 * HOUR
UNIT = "vllm.service"


# What speaks against a further start


@pytest.mark.parametrize(
    ("hours_ago", "word"),
    [
        ([], None),
        ([0.6], None),
        ([0.5], None),
        ([0.49], "too_soon"),
        ([0.0], "too_soon"),
        ([-1.0], "too_soon"),
        ([23.9], None),
        ([0.6, 23.9], "quarantined"),
        ([0.6, 24.1], None),
        ([0.6, 24.0], None),
        ([0.1, 24.1], "too_soon"),
        ([0.1, 0.2], "quarantined"),
        ([24.1, 25.0, 26.0], None),
        ([1.0, 2.0, 3.0], "quarantined"),
    ],
)
def test_half_an_hour_between_two_starts_and_two_in_a_day(hours_ago, word):
    found = Budget().objection([NOW - hours * HOUR for hours in hours_ago], NOW)
    assert (found and found[0]) == word


def test_the_order_of_the_starts_is_no_matter():
    times = [NOW - 50 * HOUR, NOW - 0.1 * HOUR, NOW - 30 * HOUR]
    assert Budget().objection(times, NOW)[0] == Budget().objection(sorted(times), NOW)[0] == "too_soon"


def test_it_says_the_numbers():
    assert Budget().objection([NOW - 12 * MINUTE], NOW) == (
        "too_soon",
        "it was started 12 minutes ago, and 30 minutes must lie between two starts",
    )
    assert Budget().objection([NOW - HOUR, NOW - 2 * HOUR], NOW) == (
        "quarantined",
        "it was started 2 times in the last 24 hours, and 2 is the limit",
    )


def test_every_number_can_be_changed():
    two_hours_ago = [NOW - 2 * HOUR]
    assert Budget(min_interval=3 * HOUR).objection(two_hours_ago, NOW)[0] == "too_soon"
    assert Budget(starts=1).objection(two_hours_ago, NOW)[0] == "quarantined"
    assert Budget(starts=1, window=HOUR).objection(two_hours_ago, NOW) is None
    assert Budget(min_interval=0.0).objection([NOW], NOW) is None


def test_the_interval_holds_even_where_it_is_longer_than_the_window():
    short = Budget(min_interval=3 * HOUR, window=HOUR)
    assert short.horizon == 3 * HOUR
    assert short.objection([NOW - 2 * HOUR], NOW)[0] == "too_soon"


# What the journal tells of the starts


def message(hours_ago, invocation, kind=journal.STARTED, **more):
    row = {
        "__REALTIME_TIMESTAMP": str(int((NOW - hours_ago * HOUR) * 1e6)),
        "MESSAGE_ID": kind,
        "UNIT": UNIT,
        "INVOCATION_ID": invocation,
        **more,
    }
    return json.dumps(row) + "\n"


BOOT = NOW - 5 * HOUR
JOURNAL_STARTED = message(5 - 0.01, "journald", budget._JOURNAL_STARTED)
AN_OLDER_ONE = message(30, "another")


@pytest.fixture
def host(monkeypatch):
    """A host that booted five hours ago, with these messages of the unit; what else its journal holds can be changed."""

    def build(messages, before=AN_OLDER_ONE, begun="", boot=BOOT):
        monkeypatch.setattr(budget.time, "time", lambda: NOW)
        monkeypatch.setattr(budget.time, "monotonic", lambda: NOW - boot + 100.0)
        monkeypatch.setattr(systemd, "systemctl", lambda *_: "UserspaceTimestampMonotonic=100000000\n")
        rows = [
            ("MESSAGE_ID=" + budget._JOURNAL_STARTED, begun),
            ("--until", before),
            ("--since", messages if not isinstance(messages, (str, list)) else "".join(messages)),
        ]
        return script(monkeypatch, rows)

    return build


def known(invocation="now", hours_ago=3.0):
    """The starts of a unit whose present invocation started so many hours ago, as hours ago."""
    last = None if hours_ago is None else NOW - hours_ago * HOUR
    return [round((NOW - start) / HOUR, 2) for start in starts(UNIT, "system", DAY_AGO, invocation, last)]


def test_starts_by_anyone_are_counted_oldest_first(host):
    host([message(3, "now"), message(20, "before"), message(7, "between")])
    assert known() == [20, 7, 3]


def test_a_start_with_two_messages_is_one_start(host):
    host([message(3.2, "now", journal.STARTING), message(3, "now")])
    assert known(hours_ago=3.2) == [3]


def test_a_start_that_failed_is_a_start(host):
    host([message(4, "failed", journal.STARTING), message(3, "now")])
    assert known() == [4, 3]


def test_starts_without_an_invocation_are_counted_each(host):
    host([message(9, ""), message(8, ""), message(3, "now")])
    assert known() == [9, 8, 3]


def test_what_anybody_else_but_systemd_says_is_no_start(host):
    ran = host([message(3, "now")])
    known()
    assert "_PID=1" in ran[0] and "UNIT=vllm.service" in ran[0]


def test_a_unit_of_a_user_is_looked_up_as_one(host):
    ran = host([message(3, "", USER_INVOCATION_ID="now", INVOCATION_ID=None)])
    assert starts(UNIT, "user", DAY_AGO, "now", NOW - 3 * HOUR)
    assert "USER_UNIT=vllm.service" in ran[0] and not any(word.startswith("UNIT=") for word in ran[0])


def test_a_start_that_takes_long_is_in_the_journal_though_systemd_says_another_time(host):
    host([message(2.9, "now")])
    assert known(hours_ago=3.0) == [2.9]


def test_a_unit_that_has_been_up_for_longer_was_not_started_whatever_the_journal_has(host):
    host([], before="", begun="")
    assert known(hours_ago=25) == []


def test_a_unit_that_never_started_has_no_starts(host):
    host([])
    assert known("", None) == []


def test_tries_of_late_count_though_the_main_process_last_ran_long_ago(host):
    host([message(2, "now", journal.STARTING), message(1, "later", journal.STARTING)])
    assert known("later", hours_ago=50) == [2, 1]


@pytest.mark.parametrize("invocation", ["now", ""])
@pytest.mark.parametrize("messages", ["", NO_MATCH])
def test_a_journal_without_the_last_start_tells_nothing(host, messages, invocation):
    host(messages, before="")
    with pytest.raises(JournalError):
        known(invocation)


def test_other_starts_do_not_make_up_for_the_last_one(host):
    host([message(3, "another"), message(20, "before")])
    with pytest.raises(JournalError, match="lacks the unit's last start"):
        known("now")


def test_a_unit_that_never_ran_its_main_process_must_be_in_the_journal_too(host):
    host([message(9, "another", journal.STARTING)])
    with pytest.raises(JournalError, match="lacks the unit's last start"):
        known("now", None)


@pytest.mark.parametrize("answer", [DENIED, TIMED_OUT, NO_SUCH_COMMAND, bounded.Text(message(3, "now"), cut=True)])
def test_a_journal_that_cannot_be_read_tells_nothing(host, answer):
    host(answer)
    with pytest.raises(JournalError):
        known()


def test_a_journal_that_begins_later_tells_nothing(host):
    host([message(3, "now")], before="", begun="")
    with pytest.raises(JournalError, match="does not reach back"):
        known()


def test_a_journal_from_the_start_of_this_boot_is_enough(host):
    host([message(3, "now")], before="", begun=JOURNAL_STARTED)
    assert known() == [3]


def test_a_journal_that_was_started_again_long_after_the_boot_is_not(host):
    host([message(3, "now")], before="", begun=JOURNAL_STARTED, boot=BOOT - HOUR)
    with pytest.raises(JournalError, match="does not reach back"):
        known()


def test_a_boot_of_which_systemd_does_not_tell_the_time_is_not_known(host, monkeypatch):
    def fail(*_):
        raise systemd.SystemctlError("systemctl did not answer within 20 s")

    host([message(3, "now")], before="", begun=JOURNAL_STARTED)
    monkeypatch.setattr(systemd, "systemctl", fail)
    with pytest.raises(JournalError, match="did not answer"):
        known()


def test_messages_of_a_user_do_not_show_that_those_of_the_system_can_be_read(host):
    ran = host([message(3, "now")])
    known()
    assert "_PID=1" in ran[1]


def test_lines_that_are_no_messages_are_passed_over(host):
    host(["garbage\n", "{}\n", "[]\n", message(3, "now"), '{"__REALTIME_TIMESTAMP": "soon"}\n'])
    assert known() == [3]
