# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judge: a pure state machine from looks, probe outcomes and times to a verdict.

It reads no clock, does not sleep and does no I/O. Whoever plays it calls begin(), takes the looks and
sends the probes that each Step asks for, and feeds back what came of them until a Judgement comes out.
A probe stays open until its outcome is fed; there is no need to feed a time-out.
"""

from __future__ import annotations

import dataclasses
import typing as t

from . import failing
from .engine_track import EngineTrack
from .exposition import Page
from .life import continues
from .looks import Judgement, Limits, Look, Probe, Step
from .systemd import UnitFacts

MOST_RESTARTS = 3
"""So many changes of the process in one check are no basis for a verdict."""

CLOCK_TOLERANCE = 5.0
"""Seconds by which the server's clock may differ from ours when the starts of two processes are compared."""

_SICK_HEALTH = (500, 503)
_UNAUTHORIZED = (401, 403)

Next = t.Union[Step, Judgement]


class _Process:
    """What has been seen of one process of the server."""

    def __init__(self, look: Look, page: Page, generation: int) -> None:
        self.generation = generation
        self.page = page
        self.unit = look.unit
        self.first_seen = self.last_seen = look.finished
        self.reads = 1
        self.sick_looks = 0
        self.engines = {label: EngineTrack(label, sample, look) for label, sample in page.engines.items()}

    def add(self, look: Look, page: Page, limits: Limits) -> None:
        self.page = page
        self.unit = look.unit or self.unit
        self.last_seen = look.finished
        self.reads += 1
        for label in self.engines.keys() - page.engines.keys():
            del self.engines[label]  # what was seen of an engine proves nothing once it is not shown any more
        for label, sample in page.engines.items():
            if label in self.engines:
                self.engines[label].add(sample, look, failing.most_seen(limits))
            else:
                self.engines[label] = EngineTrack(label, sample, look)

    def is_same(self, look: Look, page: Page) -> bool:
        return continues(self.page, page) and not _unit_changed(self.unit, look.unit)


def _unit_changed(before: t.Optional[UnitFacts], after: t.Optional[UnitFacts]) -> bool:
    if before is None or after is None:
        return False
    return (before.invocation_id, before.main_pid) != (after.invocation_id, after.main_pid)


class Judge:
    """Judges one server that exports vLLM's metrics.

    now: the current time of the monotonic clock all later times are of (CLOCK_MONOTONIC of the server's host where
    unit facts are fed). wall: the Unix time at now.
    """

    def __init__(self, limits: Limits, now: float, wall: float) -> None:
        self._limits = limits
        self._began = now
        self._wall_offset = wall - now
        self._process: t.Optional[_Process] = None
        self._earlier: t.List[_Process] = []
        self._streak: t.Optional[failing.Streak] = None
        self._looks_since_change = 0
        self._restarted = False
        self._about = Judgement("", "", 0.0, limits)

    def begin(self) -> Step:
        """The first step: a look at once."""
        return Step(self._began, front=False)

    def look(self, look: Look) -> Next:
        """Take in a look that was asked for."""
        self._remember(look)
        if look.unit is not None and look.unit.load_state == "not-found":
            return self._final("unknown", "unit_not_found", look.finished)
        if look.page is None or not look.page.is_vllm:
            return self._failed(look)
        self._streak = None
        changing = failing.unit_is_changing(look.unit)
        if changing is not None:
            return self._final(*changing, look.finished)
        confused = self._follow(look, look.page)
        if confused is not None:
            return self._final("unknown", confused, look.finished)
        return self._judge_front(look) or self._judge_engines(look.finished, look)

    def probe(self, probe: Probe, outcome: str, detail: str, at: float) -> Next:
        """Take in what became of a probe: one of PROBE_OUTCOMES, with a detail such as `HTTP 503`.

        The outcome of a probe to an earlier process of the server changes nothing.
        """
        process = self._process
        if process is None or probe.generation != process.generation or probe.engine not in process.engines:
            return Step(at, front=True)
        process.engines[probe.engine].outcome(outcome, detail, at)
        if self._streak is not None:
            return Step(self._streak.next_look(self._limits), front=True)
        return self._judge_engines(at, None)

    # What a look says of the server as a whole

    def _remember(self, look: Look) -> None:
        about = self._about
        known_unit = about.unit
        if _unit_changed(known_unit, look.unit):
            self._restarted = True
        good = look.page is not None and look.page.is_vllm
        self._about = dataclasses.replace(
            about,
            reads=about.reads + good,
            failed=about.failed + (not good),
            page=look.page if good else about.page,
            unit=look.unit or known_unit,
            unit_error=look.unit_error or about.unit_error,
            models=look.models or about.models or (look.page.models if look.page else ()),
            version=look.version or about.version,
            detail=look.detail,
        )

    def _failed(self, look: Look) -> Next:
        failed = look if look.failure is not None else dataclasses.replace(look, failure="no_series")
        what = failing.meaning(failed, self._limits)
        self._streak = failing.follow(self._streak, what, failed)
        settled = self._streak.verdict(self._limits) or self._out_of_time(look.finished)
        if settled is not None:
            return self._final(*settled, look.finished)
        return Step(self._streak.next_look(self._limits), front=True)

    def _out_of_time(self, now: float) -> t.Optional[failing.Meaning]:
        """An end for servers that fail now in one way and now in another."""
        since = self._process.first_seen if self._process else self._began
        if self._about.failed < 2 or now - since < 2 * self._limits.patience:
            return None
        return ("stalled", "reads_lost") if self._process else t.cast(failing.Streak, self._streak).what

    def _follow(self, look: Look, page: Page) -> t.Optional[str]:
        """Keep to one process: samples of two are never compared. Returns a reason where that is impossible."""
        process = self._process
        if process is None:
            self._start_process(look, page)
        elif process.is_same(look, page):
            if process.reads == 1 and self._is_return(process, page):
                return "behind_proxy"
            process.add(look, page, self._limits)
            self._looks_since_change += 1
        else:
            return self._change_process(process, look, page)
        return None

    def _start_process(self, look: Look, page: Page) -> None:
        self._process = _Process(look, page, generation=len(self._earlier))
        self._looks_since_change = 1

    def _change_process(self, process: _Process, look: Look, page: Page) -> t.Optional[str]:
        if self._ran_beside(process, page) or any(_same_start(old.page, page) for old in self._earlier):
            return "behind_proxy"
        self._restarted = True
        self._earlier.append(process)
        if len(self._earlier) >= MOST_RESTARTS:
            return "keeps_restarting"
        self._start_process(look, page)
        return None

    def _ran_beside(self, process: _Process, page: Page) -> bool:
        """Whether the new process started well before the old one was last seen: then both run, behind one address."""
        if page.start_time is None:
            return False
        return page.start_time < process.last_seen + self._wall_offset - CLOCK_TOLERANCE

    def _is_return(self, process: _Process, page: Page) -> bool:
        """Whether counters that fell are back where they were: without a start time that is all there is to see."""
        if not self._earlier or page.start_time is not None:
            return False
        before = self._earlier[-1].page
        return not continues(before, process.page) and continues(before, page)

    def _judge_front(self, look: Look) -> t.Optional[Next]:
        """What the front end says of the server as a whole: asleep, paused, or its engine died."""
        process = t.cast(_Process, self._process)
        page = t.cast(Page, look.page)
        if look.sleeping or any(sample.asleep for sample in page.engines.values()):
            return self._final("sleeping", "sleep_mode", look.finished)
        if look.paused:
            return self._final("paused", "scheduler_paused", look.finished)
        process.sick_looks = process.sick_looks + 1 if look.health in _SICK_HEALTH else 0
        if process.sick_looks == 0 or any(track.life_at is not None for track in process.engines.values()):
            return None
        self._about = dataclasses.replace(self._about, detail="/health says HTTP %d" % t.cast(int, look.health))
        if process.sick_looks >= 2:
            return self._final("dead", "engine_dead", look.finished)
        return Step(look.finished + failing.FIRST_GAP, front=True)

    # What it says of the engines

    def _judge_engines(self, now: float, look: t.Optional[Look]) -> Next:
        process = t.cast(_Process, self._process)
        tracks = list(process.engines.values())
        settled = {track.label: track.settled(now, self._limits) for track in tracks}
        waiting_for = [track for track in tracks if settled[track.label] is None]
        if "progress" in settled.values() and all(track.quiet and track.probe is None for track in waiting_for):
            return self._final("busy", "progress", now)
        if not waiting_for:
            stale = "stale_gauges" in settled.values()
            return self._final("idle", "stale_gauges" if stale else "answered", now)
        if process.reads < 2:
            return self._step(now)
        if look is None:
            return self._step(now, soon=any(track.probe == "absent" for track in waiting_for))
        return self._judge_silence(waiting_for, look)

    def _judge_silence(self, tracks: t.List[EngineTrack], look: Look) -> Next:
        all_quiet = all(track.quiet for track in tracks)
        if not look.front:
            # Nothing may be concluded from silence before the front end was asked whether it is wanted.
            return Step(look.finished if all_quiet else self._next_look(look.finished), front=True)
        if all_quiet:
            refused = self._cannot_probe(tracks, look)
            if refused is not None:
                return self._final(*refused, look.finished)
        proven = [track for track in tracks if track.proven(look, self._limits)]
        if proven:
            return self._prove(proven, look.finished)
        if any(track.unprovable(look, self._limits) for track in tracks):
            return self._final("stalled", "probe_rejected" if self._limits.probe else "not_probed", look.finished)
        if look.finished - t.cast(_Process, self._process).first_seen > 3 * self._limits.patience:
            # Engines that come and go begin anew each time: there must be an end to it.
            return self._final("stalled", "reads_lost", look.finished)
        return self._step(look.finished, probes=self._send(tracks, look))

    def _cannot_probe(self, tracks: t.List[EngineTrack], look: Look) -> t.Optional[failing.Meaning]:
        """What is said of a quiet server that cannot be asked for an answer."""
        if not self._limits.probe:
            return "idle", "not_probed"
        if look.models_status in _UNAUTHORIZED or any(track.probe_detail in _DENIALS for track in tracks):
            return "unknown", "unauthorized"
        if all(track.probe == "absent" for track in tracks):
            return "idle", "not_probed"
        return None

    def _prove(self, proven: t.List[EngineTrack], now: float) -> Judgement:
        age = self._age(now)
        if age is not None and age < self._limits.startup_grace:
            return self._final("stalled", "too_young", now)
        return self._final("stuck", _how_stuck(proven[0]), now)

    def _send(self, tracks: t.List[EngineTrack], look: Look) -> t.Tuple[Probe, ...]:
        # The front end was asked after /metrics was read: the probe goes out when all of it has come back.
        now, limits = max(look.finished, look.returned), self._limits
        if not limits.probe or look.health in _SICK_HEALTH:
            return ()
        if look.models_status in _UNAUTHORIZED:
            for track in tracks:
                track.outcome("absent", "HTTP %d" % look.models_status, now)
            return ()
        all_quiet = all(track.quiet for track in tracks)
        due = [
            track
            for track in tracks
            if track.wants_probe(now, limits) or (all_quiet and track.wants_probe_when_quiet(now, limits))
        ]
        for track in due:
            track.send(now)
        self._about = dataclasses.replace(self._about, probes=self._about.probes + len(due))
        return tuple(track.ask(t.cast(_Process, self._process).generation) for track in due)

    # When to look again, and the end

    def _step(self, now: float, probes: t.Tuple[Probe, ...] = (), soon: bool = False) -> Step:
        front = self._looks_since_change >= 2
        return Step(now if soon else self._next_look(now), front, probes)

    def _next_look(self, now: float) -> float:
        process = t.cast(_Process, self._process)
        tracks = [track for track in process.engines.values() if track.settled(now, self._limits) is None]
        if any(track.probe == "answered" for track in tracks):
            return now + failing.FIRST_GAP
        regular = process.last_seen + failing.gap(self._looks_since_change, failing.longest_gap(self._limits))
        boundaries = [track.next_boundary(now, self._limits) for track in tracks if track.silent]
        if self._limits.probe and all(track.probe is None for track in tracks):
            # None could be sent (/health is sick): what is over is nothing to hurry for.
            boundaries = [boundary for boundary in boundaries if boundary > now]
        return max(now, min([regular, *boundaries]))

    def _age(self, now: float) -> t.Optional[float]:
        """Seconds since the process started, by whatever knows the latest start."""
        about, process = self._about, t.cast(_Process, self._process)
        starts = [self._earlier[-1].last_seen] if self._earlier else []
        if about.unit is not None and about.unit.started is not None:
            starts.append(about.unit.started)
        if process.page.start_time is not None:
            started = process.page.start_time - self._wall_offset
            # One in the future comes of another clock, or of one that was set since; systemd does not go by that.
            if about.unit is None or about.unit.started is None or started <= now + CLOCK_TOLERANCE:
                starts.append(started)
        return max(0.0, now - max(starts)) if starts else None

    def _final(self, verdict: str, reason: str, now: float) -> Judgement:
        tracks = self._process.engines.values() if self._process else ()
        return dataclasses.replace(
            self._about,
            verdict=verdict,
            reason=reason,
            elapsed=now - self._began,
            engines=tuple(track.evidence(now) for track in tracks),
            restarted_meanwhile=self._restarted,
            failing_for=self._streak.lasted if self._streak else 0.0,
            failing_tries=self._streak.looks if self._streak else 0,
            age=self._age(now) if self._process else None,
        )


_DENIALS = tuple("HTTP %d" % status for status in _UNAUTHORIZED)


def _same_start(old: Page, new: Page) -> bool:
    return old.start_time is not None and old.start_time == new.start_time


def _how_stuck(track: EngineTrack) -> str:
    sample = track.sample
    if sample.in_flight == 0:
        return "no_answer"
    return "no_progress" if sample.running else "not_admitted"


class ProxyJudge:
    """Judges a proxy by nothing but its list of models."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._began = now
        self._streak: t.Optional[failing.Streak] = None
        self._failed = 0

    def begin(self) -> Step:
        """The first step: a look at once."""
        return Step(self._began, front=False)

    def look(self, look: Look) -> Next:
        """Take in a look that was asked for."""
        if look.failure is None:
            return self._final("serving", "models_listed", look)
        self._failed += 1
        what = failing.meaning(look, self._limits)
        self._streak = failing.follow(self._streak, what, look)
        settled = self._streak.verdict(self._limits) or self._out_of_time(look.finished)
        if settled is not None:
            return self._final(*settled, look)
        return Step(self._streak.next_look(self._limits), front=True)

    def _out_of_time(self, now: float) -> t.Optional[failing.Meaning]:
        over = now - self._began >= 2 * self._limits.patience
        return t.cast(failing.Streak, self._streak).what if over else None

    def _final(self, verdict: str, reason: str, look: Look) -> Judgement:
        return Judgement(
            verdict,
            reason,
            elapsed=look.finished - self._began,
            limits=self._limits,
            failed=self._failed,
            detail=look.detail,
            failing_for=self._streak.lasted if self._streak else 0.0,
            failing_tries=self._streak.looks if self._streak else 0,
            unit=look.unit,
            unit_error=look.unit_error,
            models=look.models or (),
        )
