"""The table says what was true, what was said, and what is wrong."""

from __future__ import annotations

from tests.real.table import Healed, Report, Row, markdown, step_line, terminal, verdict_line
from tests.real.truth import Outcome

GOOD = Row(
    "decoding",
    "3 requests decode",
    "busy",
    Outcome("busy", "progress", probes=0, elapsed=0.42, message="3 running | 0 waiting", restarted=False),
)
BAD = Row(
    "frozen-idle",
    "engine stopped while idle",
    "stuck",
    Outcome("idle", "answered", probes=1, elapsed=0.3, message="answered", restarted=False),
    ("said idle/answered, right is stuck/no_answer",),
)
NONE = Row("dp2-fresh", "two engines", "idle", None, ("the server ended while starting",))


def report(*rows: Row, longest_step: tuple[float, str] | None = None) -> Report:
    return Report("0.32.0", "2026-11-29", 20.0, rows, longest_step)


def test_an_answer_that_agrees_is_right_and_one_that_does_not_or_never_came_is_not():
    assert [row.right for row in (GOOD, BAD, NONE)] == [True, False, False]


def test_the_counts_name_what_is_wrong():
    assert verdict_line(report(GOOD)) == "1 of 1 states told right."
    assert verdict_line(report(GOOD, BAD, NONE)) == "1 of 3 states told right; wrong: frozen-idle, dp2-fresh."


def test_the_longest_silence_is_named_with_its_state_and_the_patience():
    line = step_line(report(GOOD, longest_step=(8.84, "a long step")))
    assert line == "Longest silence of a working engine: 8.8 s (a long step); patience was 20 s."


def test_no_silence_is_claimed_where_none_was_measured():
    assert step_line(report(GOOD)) == ""


def test_the_terminal_shows_a_contradiction_under_its_state():
    shown = terminal(BAD)
    assert shown.startswith("WRONG  frozen-idle")
    assert "right is stuck/no_answer" in shown
    assert terminal(GOOD).startswith("right  decoding")


def test_a_state_without_an_answer_says_why():
    assert "the server ended while starting" in terminal(NONE)
    assert "the server ended while starting" in markdown(report(NONE))


def test_the_markdown_has_one_line_per_state_and_escapes_bars():
    lines = markdown(report(GOOD, BAD)).splitlines()
    assert lines[0] == "vLLM 0.32.0 (CPU build), 2026-11-29, patience 20 s."
    assert lines[4] == "| 3 requests decode | busy | busy/progress | 0 | 0.4 | 3 running \\| 0 waiting |"
    assert "**idle/answered** (said idle/answered, right is stuck/no_answer)" in lines[5]


def test_a_restart_stands_below_the_table_with_what_is_wrong_about_it():
    healed = Healed(["stop and start by systemd 20.2 s"], ["a second run restarted it again"])
    whole = Report("0.32.0", "2026-11-29", 20.0, [GOOD], healed=healed)
    assert markdown(whole).endswith("```\nstop and start by systemd 20.2 s\n```\na second run restarted it again\n")
    assert not whole.right


def test_a_restart_alone_needs_no_table():
    alone = Report("0.32.0", "2026-11-29", 20.0, [], healed=Healed(["stop and start by systemd 20.2 s"]))
    assert "| --- |" not in markdown(alone)
    assert alone.right
