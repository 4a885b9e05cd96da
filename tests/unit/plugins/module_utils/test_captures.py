"""Every captured state of a real server is judged right, in the rhythm in which it was read."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import exposition
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import Look
from ansible_collections.fleetcheck.vllm.plugins.module_utils.systemd import UnitFacts

from tests.unit.plugins.module_utils import playing

CAPTURES = pathlib.Path(__file__).parents[2] / "fixtures" / "captures"

# What is right where the state's own name is not a verdict, or the metrics cannot show the state.
EXPECTED: t.Dict[str, t.Tuple[str, str]] = {
    # Stopped HTTP process: connections are taken by the kernel, nothing is answered.
    "*/api-stopped": ("unresponsive", "timeout"),
    # The other HTTP process goes on answering every new connection, probes included.
    "0.32.0/api2-one-api-stopped": ("idle", "answered"),
    # No vllm: series at all: there is nothing to judge by.
    "*/no-log-stats": ("unknown", "no_metrics"),
    # A CPU server of this release goes on answering while asleep, and exports no sleep state.
    "0.10.2/sleeping": ("idle", "answered"),
    # One long step after idle: the request that was sent waits behind it, and then nothing is in flight.
    "*/long-step": ("idle", "answered"),
}

# Engines that work although the state's name says otherwise.
ANSWERING = {"0.32.0/api2-one-api-stopped", "0.10.2/sleeping"}

WITHOUT_READS = {"0.10.2/paused", "0.32.0/ssl"}

SECONDS_TO_START = {"0.8.5-v0": 44, "0.10.2": 78, "0.12.0": 40, "0.25.1": 181, "0.32.0": 31}
"""How long the port was closed while each release loaded its model."""


def scenarios() -> t.List[str]:
    found = sorted(str(path.parent.relative_to(CAPTURES)) for path in CAPTURES.glob("*/*/scenario.json"))
    return [name for name in found if name not in WITHOUT_READS and not name.endswith("/starting")]


def load(name: str) -> t.Tuple[t.Dict[str, t.Any], t.List[t.Dict[str, t.Any]]]:
    scenario = json.loads((CAPTURES / name / "scenario.json").read_text())
    reads = scenario["reads"]
    for read in reads:
        read.setdefault("truth", scenario["truth"])
        if read["file"] is not None:
            read["page"] = exposition.parse((CAPTURES / name / read["file"]).read_bytes())
        elif read["metrics_status"] == 200:
            read["page"] = exposition.parse(b"")
    return scenario, reads


def part(reads: t.List[t.Dict[str, t.Any]], truth: str) -> t.List[t.Dict[str, t.Any]]:
    """The reads of one state. A busy server is shown to its end; every other state is held as it was last seen."""
    first = next(at for at, read in enumerate(reads) if read["truth"] == truth)
    if truth == "busy":
        return reads[first:]
    last = max(at for at, read in enumerate(reads) if read["truth"] == truth)
    return reads[first : last + 1]


def replay(
    reads: t.List[t.Dict[str, t.Any]], truth: str, with_key: bool = True, answers: bool = False
) -> playing.Script:
    """The reads as a script: at each second what was read last until then. Only a working engine answers."""
    zero = reads[0]["at_s"]
    end = reads[-1]["at_s"] - zero

    def look(now: float, front: bool) -> Look:
        read = [read for read in reads if read["at_s"] - zero <= now][-1]
        if "page" not in read:
            return playing.failed(read["metrics_status"])
        if not front:
            return playing.good(read["page"])
        models = 200 if with_key else read["models_status"]
        return playing.good(
            read["page"],
            front,
            health=read["health_status"] if isinstance(read["health_status"], int) else None,
            models_status=models,
            paused=truth == "paused" or None,
        )

    def probe(now: float, engine: str) -> t.Optional[t.Tuple[float, str, str]]:
        if truth == "idle" or answers:
            return 0.03, "answered", "HTTP 200"
        return (end - now, "answered", "HTTP 200") if truth == "busy" else None

    return playing.Script(look, probe)


@pytest.mark.parametrize("name", scenarios())
def test_state_is_judged_right(name: str) -> None:
    scenario, reads = load(name)
    truth = scenario["truth"]
    shown = part(reads, truth)
    played = playing.play(replay(shown, truth, answers=name in ANSWERING))
    expected = EXPECTED.get(name) or EXPECTED.get("*/" + name.split("/")[1])
    if expected is not None:
        assert played.words == expected
    else:
        assert played.judgement.verdict == truth


@pytest.mark.parametrize("name", ["0.32.0/api-key", "0.8.5-v0/api-key", "0.32.0/two-names", "0.8.5-v0/two-names"])
def test_idle_server_that_wants_a_key_we_lack_is_unknown(name: str) -> None:
    scenario, reads = load(name)
    played = playing.play(replay(reads, scenario["truth"], with_key=False))
    assert played.words == ("unknown", "unauthorized")
    assert played.probes == []


@pytest.mark.parametrize("name", ["0.32.0/hung-queued", "0.8.5-v0/hung-queued"])
def test_silent_server_that_wants_a_key_we_lack_is_not_called_stuck(name: str) -> None:
    _scenario, reads = load(name)
    played = playing.play(replay(part(reads, "stuck"), "stuck", with_key=False))
    assert played.words == ("stalled", "probe_rejected")


@pytest.mark.parametrize(("truth", "words"), [("busy", ("busy", "progress")), ("stuck", ("stuck", "no_answer"))])
def test_pooling_server_shows_no_request_but_moves(truth: str, words: t.Tuple[str, str]) -> None:
    _scenario, reads = load("0.32.0/pooling")
    assert playing.play(replay(part(reads, truth), truth)).words == words


@pytest.mark.parametrize("name", [name for name in scenarios() if name.endswith(("/hung-busy", "/hung-idle"))])
def test_engine_that_goes_on_after_a_stop_is_busy(name: str) -> None:
    _scenario, reads = load(name)
    first = next(at for at, read in enumerate(reads) if read["truth"] == "stuck")
    assert playing.play(replay(reads[first:], "busy")).judgement.verdict in ("busy", "idle")


@pytest.mark.parametrize("name", [name for name in scenarios() if name.endswith("/restarted")])
def test_restart_between_two_reads_starts_a_new_baseline(name: str) -> None:
    _scenario, reads = load(name)
    pages = [read["page"] for read in reads if "page" in read]
    looked = []

    def look(now: float, front: bool) -> Look:
        looked.append(now)
        return playing.good(pages[0] if len(looked) == 1 else pages[1], front)

    # The times of the capture: the new process starts after the old one was seen last.
    wall = pages[1].start_time - 0.2 if pages[1].start_time is not None else None
    played = playing.play(playing.Script(look, lambda now, engine: (0.03, "answered", "HTTP 200")), wall=wall)
    assert played.words == ("idle", "answered")
    assert played.judgement.restarted_meanwhile


@pytest.mark.parametrize("release", sorted(SECONDS_TO_START))
def test_closed_port_of_a_young_unit_is_starting(release: str) -> None:
    scenario, _reads = load(release + "/starting")
    assert scenario["truth"] == "starting"
    age = SECONDS_TO_START[release] - 1.0
    unit = UnitFacts("loaded", "active", "running", "a" * 32, 4711, 0, started=-age)
    played = playing.play(playing.Script(lambda now, front: playing.failed("refused", unit=unit)))
    assert played.words == ("starting", "not_listening_yet")
