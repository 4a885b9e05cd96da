"""The pause mark: in force until it has expired, and always where it cannot be understood."""

import json

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import bounded
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart import pause

NOW = pause.unix("2026-11-29T22:00:00Z")
HOUR = 3600.0


def mark(**fields):
    return bounded.Text(json.dumps({"who": "ann", "why": "new driver", "until": None, **fields}))


def test_without_a_mark_there_is_no_pause():
    assert pause.in_force(bounded.Unreadable("pause.json", "no such file or directory", missing=True), NOW) is None


def test_what_is_written_is_read():
    text = bounded.Text(pause.write("ann", "new driver", NOW + HOUR))
    assert pause.in_force(text, NOW) == pause.Pause("ann", "new driver", NOW + HOUR)


def test_a_pause_ends_in_the_second_it_says():
    ends = mark(until=pause.utc(NOW))
    assert pause.in_force(ends, NOW - 1) is not None
    assert pause.in_force(ends, NOW) is None
    assert pause.in_force(ends, NOW + HOUR) is None


def test_a_pause_without_an_end_stays():
    assert pause.in_force(mark(until=None), NOW + 1e9) == pause.Pause("ann", "new driver", None)
    assert pause.in_force(bounded.Text(pause.write("ann", "new driver", None)), NOW + 1e9) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "paused by ann",
        "{",
        "null",
        "[]",
        "7",
        '"until tomorrow"',
        "{}",
        '{"who": "ann", "why": "new driver"}',
        '{"who": "ann", "until": null}',
        '{"why": "new driver", "until": null}',
        '{"who": "ann", "why": "x", "until": "2000-01-01"}',
        '{"who": "ann", "why": "x", "until": "2000-01-01T00:00:00"}',
        '{"who": "ann", "why": "x", "until": "2000-01-01T00:00:00+00:00"}',
        '{"who": "ann", "why": "x", "until": 0}',
        '{"who": "ann", "why": "x", "until": false}',
        '{"who": "ann", "why": "x", "until": ""}',
        '{"who": "ann", "why": "x", "until": ["2000-01-01T00:00:00Z"]}',
        "[" * 100_000,
    ],
)
def test_a_mark_that_cannot_be_understood_is_a_pause_without_an_end(text):
    found = pause.in_force(bounded.Text(text), NOW)
    assert found == pause.Pause("somebody", "the mark cannot be understood", None)


def test_a_mark_that_was_cut_off_is_a_pause():
    whole = pause.write("ann", "x" * 100, NOW - HOUR)
    assert pause.in_force(bounded.Text(whole[:60], cut=True), NOW) is not None


@pytest.mark.parametrize("why", ["not permitted", "not a regular file", "no answer within 3 s", "input/output error"])
def test_a_mark_that_cannot_be_read_is_a_pause(why):
    found = pause.in_force(bounded.Unreadable("pause.json", why), NOW)
    assert found is not None and why in str(found)


def test_it_says_who_why_and_until_when():
    found = pause.in_force(mark(until=pause.utc(NOW + HOUR)), NOW)
    assert str(found) == "paused by ann until 2026-11-29T23:00:00Z: new driver"
    assert str(pause.in_force(mark(), NOW)) == "paused by ann until it is removed: new driver"


def test_what_it_says_cannot_move_a_terminals_cursor_and_shows_no_secret():
    said = str(pause.in_force(mark(who="ann\x1b[2J", why="first line\nkey=x api_key=hunter2"), NOW))
    assert said.isprintable() and "hunter2" not in said


def test_who_and_why_may_be_anything_that_has_words():
    assert str(pause.in_force(mark(who=7, why=None), NOW)) == "paused by 7 until it is removed: None"
