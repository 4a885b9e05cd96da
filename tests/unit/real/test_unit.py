"""The restart of a real unit is told from outside, and compared with what heal.yml says."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.real import lab
from tests.real.unit import Times, ready_after, unit_text

SAID = {
    "verdict_before": "stuck",
    "action": "restarted",
    "healthy": True,
    "verdict": "idle",
    "message": "answered",
    "seconds_down": 61.5,
}
TIMES = Times(until_stop=28, stopping=20, until_ready=33, all_of_it=90, said=SAID, second_run_acted=False)


def test_a_stuck_unit_that_was_restarted_once_and_serves_again_is_right():
    assert TIMES.wrong == []


@pytest.mark.parametrize(
    "said",
    [
        {"verdict_before": "busy", "action": "none"},
        {"action": "quarantined"},
        {"healthy": False, "verdict": "dead"},
        {"healthy": None, "verdict": "starting"},
    ],
    ids=["not seen", "seen but held back", "dead afterwards", "not there yet"],
)
def test_anything_else_is_wrong(said):
    assert dataclasses.replace(TIMES, said=SAID | said).wrong


def test_a_second_restart_is_wrong():
    assert dataclasses.replace(TIMES, second_run_acted=True).wrong == ["a second run restarted it again"]


def test_the_figures_are_printed_a_line_each():
    assert [line.split("  ")[0] for line in TIMES.lines()] == [
        "heal.yml until the restart began",
        "stop and start by systemd",
        "new process until it answered",
        "heal.yml, start to end",
        "its report: restarted, 61.5 s down, now idle",
    ]


def test_the_frozen_server_still_answering_before_its_restart_does_not_count_as_ready():
    seen = [(1.0, True), (2.0, False), (3.0, False), (4.0, True)]
    assert ready_after(seen, started=2.5) == 4.0


def test_a_server_that_never_answered_is_an_error():
    with pytest.raises(lab.LabError):
        ready_after([(1.0, True), (3.0, False)], started=2.5)


def test_the_unit_serves_the_model_to_everybody_as_an_ordinary_user():
    text = unit_text(Path("/srv/vllm/bin/vllm"), Path("/srv/model"))
    assert "\nUser=vllm\n" in text
    assert "\nEnvironment=VLLM_CPU_KVCACHE_SPACE=1\n" in text
    command = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    assert command.startswith("ExecStart=/srv/vllm/bin/vllm serve /srv/model ")
    assert command.endswith(" --host 0.0.0.0 --port 8000")
