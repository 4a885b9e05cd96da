"""The one law: no server is called stuck without proof, whatever it does.

`stuck` needs one process, three good reads or more over the whole patience, no sign of life in any of them, and a
probe that stayed unanswered for half of the patience; time in which reads were lost counts for neither. The judge is played against random servers; then it is broken
on purpose, once for each clause, to see that the law finds it.
"""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import engine_track, failing, judging, life
from ansible_collections.fleetcheck.vllm.plugins.module_utils.exposition import Page, Sample
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import Limits, Look
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.unit.plugins.module_utils.playing import WALL, Played, Script, failed, good, play

ENGINES = ("0", "1")
ROUNDING = 1e-6
SEEN = 0.5
"""No distance between two good reads counts for more than this part of the patience, or 30 seconds."""
FAILURES = ("timeout", "refused", "reset", "error", "unparseable")


@st.composite
def histories(draw: t.Callable[..., t.Any]) -> t.List[t.Tuple[float, t.Any]]:
    """What happens to a server at which second: a failing front end, one that answers nothing for some seconds, a
    restart, a step of an engine, an arrival."""
    event = st.one_of(
        st.tuples(st.just("fails"), st.sampled_from(FAILURES)),
        st.tuples(st.just("answers"), st.none()),
        st.tuples(st.just("wedged"), st.floats(1, 9)),
        st.tuples(st.just("restarts"), st.booleans()),
        st.tuples(st.sampled_from(("tokens", "steps", "kv", "running", "arrives")), st.sampled_from(ENGINES)),
    )
    times = st.floats(0, 25, allow_nan=False)
    return sorted(draw(st.lists(st.tuples(times, event), max_size=6)), key=lambda row: row[0])


class Server:
    """A server that lives through a history. What it truly does is known, so that a verdict can be held against it."""

    def __init__(self, history: t.List[t.Tuple[float, t.Any]], engines: int, busy: bool, started: bool) -> None:
        self.history = history
        self.engines = ENGINES[:engines]
        self.busy = busy
        self.exports_start = started

    def at(self, now: float) -> t.Tuple[Page, t.Optional[str]]:
        start, failure = WALL - 5000, None
        numbers = {engine: self._fresh(100.0) for engine in self.engines}
        for when, (what, how) in self.history:
            if when > now:
                break
            if what in ("fails", "answers"):
                failure = how
            elif what == "wedged":
                failure = "timeout" if now < when + how else None
            elif what == "restarts":
                # A new process may by chance have gone as far as the old one.
                start, numbers = WALL + when, {engine: self._fresh(100.0 if how else 1.0) for engine in self.engines}
            elif how in numbers:
                numbers[how][what] += 1
        samples = {engine: self._sample(row) for engine, row in numbers.items()}
        return Page(True, start if self.exports_start else None, samples, ("tiny",)), failure

    def _fresh(self, count: float) -> t.Dict[str, float]:
        return {"tokens": count, "steps": count, "kv": 0.0, "running": 2.0 * self.busy, "arrives": 0.0}

    def _sample(self, row: t.Dict[str, float]) -> Sample:
        counters = {"generation_tokens_total": row["tokens"], "iteration_tokens_total_count": row["steps"]}
        return Sample(counters, row["running"], row["arrives"], row["kv"] / 10, False)

    def look(self, now: float, front: bool) -> Look:
        shown, failure = self.at(now)
        return failed(failure) if failure else good(shown, front)


def probes_of(outcomes: t.List[t.Any]) -> t.Callable[[float, str], t.Any]:
    left = list(outcomes)
    return lambda now, engine: left.pop(0) if left else None


outcomes = st.lists(
    st.one_of(
        st.none(),
        st.tuples(
            st.floats(0.01, 15),
            st.sampled_from(("answered", "rejected", "lost", "absent")),
            st.sampled_from(("HTTP 200", "HTTP 503", "HTTP 401")),
        ),
    ),
    max_size=4,
)


def signs_between(before: Look, after: Look, engine: str) -> bool:
    """Whether a working engine shows between two looks; written apart from the judge's own rule on purpose."""
    old, new = before.page.engines[engine], after.page.engines[engine]
    moved = [new.counters[name] > old.counters[name] for name in new.counters]
    return any(moved) or old.running != new.running or old.kv_cache_usage != new.kv_cache_usage


def same_process(before: Look, after: Look) -> bool:
    if before.page.start_time != after.page.start_time:
        return False
    return all(
        new.counters[name] >= before.page.engines[engine].counters[name]
        for engine, new in after.page.engines.items()
        for name in new.counters
    )


def proven_engines(played: Played, limits: Limits) -> t.List[str]:
    """The engines for which the looks and probes prove a hang."""
    reads = [look for look in played.looks if look.page is not None]
    while len(reads) > 1 and not all(same_process(a, b) for a, b in zip(reads, reads[1:])):
        reads.pop(0)
    if len(reads) < 3 or watched(reads, reads[0].finished, limits) < limits.patience - ROUNDING:
        return []
    silent = [
        engine
        for engine in reads[-1].page.engines
        if not any(signs_between(a, b, engine) for a, b in zip(reads, reads[1:]))
    ]
    return [engine for engine in silent if unanswered(played, engine, reads, limits)]


def watched(reads: t.List[Look], since: float, limits: Limits) -> float:
    """Seconds since then in which reads came, to the start of the last one."""
    most = min(30.0, SEEN * limits.patience)
    times = [look.finished for look in reads[:-1]] + [reads[-1].started]
    return sum(min(b - max(a, since), most) for a, b in zip(times, times[1:]) if b > since)


def unanswered(played: Played, engine: str, reads: t.List[Look], limits: Limits) -> bool:
    """Whether the last probe to the engine's last process has been open for half of the patience, and none answered."""
    sent = [
        number
        for number, (at, probe) in enumerate(played.probes)
        if probe.engine == engine and at >= reads[0].started
    ]
    if not sent or any(played.outcomes.get(number) == "answered" for number in sent):
        return False
    open_for = watched(reads, played.probes[sent[-1]][0], limits)
    return sent[-1] not in played.outcomes and open_for >= limits.patience / 2 - ROUNDING


def hold_to_the_law(
    history: t.List[t.Tuple[float, t.Any]], engines: int, busy: bool, started: bool, probes: t.List[t.Any]
) -> None:
    limits = Limits(patience=10.0, startup_grace=0.0)
    server = Server(history, engines, busy, started)
    played = play(Script(server.look, probes_of(probes)), limits)
    if played.judgement.verdict == "stuck":
        assert proven_engines(played, limits), played.judgement


laws = given(histories(), st.integers(1, 2), st.booleans(), st.booleans(), outcomes)


@settings(max_examples=300, deadline=None)
@laws
def test_nothing_is_called_stuck_without_proof(
    history: t.List[t.Tuple[float, t.Any]], engines: int, busy: bool, started: bool, probes: t.List[t.Any]
) -> None:
    hold_to_the_law(history, engines, busy, started, probes)


@pytest.mark.parametrize("engines", [1, 2])
@pytest.mark.parametrize("busy", [True, False])
@pytest.mark.parametrize("started", [True, False])
def test_a_frozen_server_is_always_called_stuck(engines: int, busy: bool, started: bool) -> None:
    played = play(Script(Server([], engines, busy, started).look), Limits(patience=10.0, startup_grace=0.0))
    assert played.judgement.verdict == "stuck"


def blind_to_tokens(before: Sample, after: Sample) -> t.Dict[str, float]:
    return {name: 1.0 for name in life.signs_of_life(before, after) if name != "generation_tokens_total"}


MUTATIONS: t.Dict[str, t.Callable[[pytest.MonkeyPatch], None]] = {
    "patience cut short": lambda patch: patch.setattr(
        engine_track.EngineTrack, "ends_at", lambda self, limits: self.silent_since + limits.patience * 0.8
    ),
    "blind to one sign of life": lambda patch: patch.setattr(engine_track, "signs_of_life", blind_to_tokens),
    "two processes taken for one": lambda patch: patch.setattr(judging, "continues", lambda before, after: True),
    "probe not awaited": lambda patch: patch.setattr(
        engine_track.EngineTrack,
        "proven",
        lambda self, look, limits: self.silent and look.started >= self.silent_since + limits.patience,
    ),
    "two reads are enough": lambda patch: patch.setattr(
        engine_track.EngineTrack, "proven", lambda self, look, limits: self.silent and self.reads >= 2
    ),
    "lost reads taken for silence": lambda patch: patch.setattr(failing, "most_seen", lambda limits: 1e9),
    "answers taken for silence": lambda patch: patch.setattr(
        engine_track.EngineTrack, "outcome", lambda self, what, detail, now: None
    ),
}


@pytest.mark.parametrize("mutation", sorted(MUTATIONS))
def test_the_law_finds_a_judge_that_breaks_it(mutation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[mutation](monkeypatch)

    @settings(
        max_examples=1000,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @laws
    def hold(
        history: t.List[t.Tuple[float, t.Any]], engines: int, busy: bool, started: bool, probes: t.List[t.Any]
    ) -> None:
        hold_to_the_law(history, engines, busy, started, probes)

    with pytest.raises(AssertionError):
        hold()
