"""Plays a judge against a scripted server in virtual time: nothing sleeps, no clock is read."""

from __future__ import annotations

import dataclasses
import heapq
import typing as t

from ansible_collections.fleetcheck.vllm.plugins.module_utils.exposition import Page, Sample
from ansible_collections.fleetcheck.vllm.plugins.module_utils.judging import Judge
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import Judgement, Limits, Look, Probe

WALL = 1_800_000_000.0
"""The Unix time at second 0 of every timeline."""

READ_TAKES = 0.01


@dataclasses.dataclass
class Script:
    """A server as functions of time. look(now, front) is what a look at that second brings; probe(now, engine) is
    (seconds until the outcome, outcome, detail), or None for a probe that stays open."""

    look: t.Callable[[float, bool], Look]
    probe: t.Callable[[float, str], t.Optional[t.Tuple[float, str, str]]] = lambda now, engine: None


@dataclasses.dataclass
class Played:
    """A judgement and how it came about: the looks that were taken and the probes that were sent, with their times."""

    judgement: Judgement
    looks: t.List[Look]
    probes: t.List[t.Tuple[float, Probe]]
    outcomes: t.Dict[int, str]
    """What came back before the verdict, by the place of the probe in probes."""

    @property
    def words(self) -> t.Tuple[str, str]:
        return self.judgement.verdict, self.judgement.reason

    @property
    def ended(self) -> float:
        return self.looks[-1].finished


def play(
    script: Script,
    limits: Limits = Limits(),
    began: float = 0.0,
    longest: float = 100_000.0,
    wall: t.Optional[float] = None,
    front_takes: float = 0.0,
) -> Played:
    """Play until the judge says its verdict. wall: the Unix time at which it began; front_takes: seconds that the
    questions to the front end take."""
    judge = Judge(limits, began, WALL + began if wall is None else wall)
    step, now = judge.begin(), began
    looks: t.List[Look] = []
    probes: t.List[t.Tuple[float, Probe]] = []
    coming: t.List[t.Tuple[float, int, Probe, str, str]] = []
    outcomes: t.Dict[int, str] = {}
    while now < longest:
        for probe in step.probes:
            probes.append((now, probe))
            outcome = script.probe(now, probe.engine)
            if outcome is not None:
                heapq.heappush(coming, (now + outcome[0], len(probes) - 1, probe, outcome[1], outcome[2]))
        if coming and coming[0][0] <= step.look_at:
            now, number, probe, what, detail = heapq.heappop(coming)
            outcomes[number] = what
            said = judge.probe(probe, what, detail, now)
        else:
            now = max(now, step.look_at)
            look = dataclasses.replace(script.look(now, step.front), started=now, finished=now + READ_TAKES, front=step.front)
            now = look.finished
            if front_takes and step.front:
                now += front_takes
                look = dataclasses.replace(look, returned=now)
            looks.append(look)
            said = judge.look(look)
        if isinstance(said, Judgement):
            return Played(said, looks, probes, outcomes)
        step = said
    raise AssertionError("no verdict after %g s" % longest)


def sample(
    running: float = 0, waiting: float = 0, steps: float = 100, tokens: float = 1000, kv: float = 0.0, asleep: bool = False
) -> Sample:
    """One engine's sample with the series of a current release."""
    counters = {
        "iteration_tokens_total_count": steps,
        "generation_tokens_total": tokens,
        "prompt_tokens_total": 500.0,
        "request_success_total": 7.0,
        "num_preemptions_total": 0.0,
    }
    return Sample(counters, float(running), float(waiting), kv, asleep)


def page(*engines: Sample, start: t.Optional[float] = WALL - 5000) -> Page:
    """A page of a server with these engines."""
    return Page(True, start, {str(at): engine for at, engine in enumerate(engines)}, ("tiny",))


def good(shown: Page, front: bool = False, **more: t.Any) -> Look:
    """A look that brought a page; the front end is well unless said otherwise."""
    if front:
        more = {"health": 200, "models": ("tiny",), "models_status": 200, "models_by_vllm": True, **more}
    return Look(0.0, 0.0, page=shown, **more)


def failed(kind: str, detail: str = "said by the test", **more: t.Any) -> Look:
    """A look that brought no page."""
    return Look(0.0, 0.0, failure=kind, detail=detail, **more)
