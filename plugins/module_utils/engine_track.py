# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one check has seen of one engine of one process, and what follows for that engine alone."""

from __future__ import annotations

import typing as t

from .exposition import Sample
from .life import signs_of_life
from .looks import EngineEvidence, Limits, Look, Probe

MIN_READS = 3
"""Fewer reads than these prove nothing, however long they span."""

PROMPT_ANSWER = 1.0
"""An answer that took more seconds than these waited behind other work, which is then looked for."""

_OWN_EFFECT = {"generation_tokens_total": 1.0, "request_success_total": 1.0, "prompt_tokens_total": 64.0}
"""The most that one probe of ours adds to these counters. (A chat template may make its prompt longer than one token.)"""


class EngineTrack:
    """One engine of one process over one check. All times are seconds of the judge's clock."""

    def __init__(self, label: str, sample: Sample, look: Look) -> None:
        self.label = label
        self.silent_since = look.finished  # moved on by the time in which reads were lost
        self.reads = 1
        self.interval = 0.0
        self.signs: t.Dict[str, float] = {}
        self.life_at: t.Optional[float] = None
        self.probe: t.Optional[str] = None  # "open" or one of PROBE_OUTCOMES
        self.probe_detail = ""
        self.probe_sent_at = 0.0
        self._open_since = 0.0  # probe_sent_at, moved on likewise
        self._probed_at = 0.0
        self._after = self._when_sent = sample
        self._decided_from = self._decided_by = sample
        self._seen_at = look.finished
        self._asked_until = _end_of(look)
        self._reads_after_answer = self._looks_with_life = 0

    def add(self, sample: Sample, look: Look, most_seen: float) -> None:
        """Take in a later sample of the same process. most_seen: seconds since the one before that count at most."""
        signs = signs_of_life(self._after, sample)
        self.reads += 1
        interval = look.finished - self._seen_at
        lost = max(0.0, look.finished - self._asked_until - most_seen)
        self.silent_since += lost
        self._open_since += lost
        before, self._after, self._seen_at = self._after, sample, look.finished
        self._asked_until = _end_of(look)
        if signs or not self.signs:
            # The numbers of the report are those of the two reads between which something moved.
            self.interval, self._decided_from, self._decided_by = interval, before, sample
        if self.probe == "answered":
            self._reads_after_answer += 1
            # The first read after the answer still shows what the probe itself moved.
            self.signs = signs if self._reads_after_answer > 1 else {}
        elif signs:
            self.signs = signs
            self._looks_with_life += 1
            if self.life_at is None:
                self.life_at = look.finished

    @property
    def sample(self) -> Sample:
        """The newest sample."""
        return self._after

    @property
    def silent(self) -> bool:
        """No sign of life so far, and no answer."""
        return self.life_at is None and self.probe != "answered"

    @property
    def quiet(self) -> bool:
        """Silent with nothing in flight."""
        return self.silent and self._after.in_flight == 0

    def settled(self, now: float, limits: Limits) -> t.Optional[str]:
        """The reason why this engine is healthy, or None while that is open: progress, answered, stale_gauges."""
        if self.probe == "answered":
            return self._answered()
        if self.life_at is None:
            return None
        waits = self._may_be_our_own() and now < self.silent_since + limits.patience
        return None if waits else "progress"

    def _may_be_our_own(self) -> bool:
        """Whether all the life that was seen can be the work on our probe, which is still open."""
        if self.probe not in ("open", "lost") or self._when_sent.in_flight > 0 or self._after.in_flight > 1:
            return False
        if self._looks_with_life > 1 and self._after.in_flight > 0:
            return False  # our probe is one step of the engine: once it was seen to begin, only its end is left
        before, after = self._when_sent.counters, self._after.counters
        return all(after.get(name, 0.0) - before.get(name, 0.0) <= most for name, most in _OWN_EFFECT.items())

    def _answered(self) -> t.Optional[str]:
        prompt = self._probed_at - self.probe_sent_at <= PROMPT_ANSWER
        if self._after.in_flight == 0 and prompt:
            return "answered"
        if self._reads_after_answer < 2:
            return None
        if self.signs:
            return "progress"
        return "stale_gauges" if self._after.in_flight > 0 else "answered"

    def wants_probe(self, now: float, limits: Limits) -> bool:
        """Whether a probe is due in the second half of the patience, for the first time or once more."""
        half = self.silent_since + limits.patience / 2
        return self.silent and now >= half and self._may_send(now, limits)

    def wants_probe_when_quiet(self, now: float, limits: Limits) -> bool:
        """Whether a probe is due because nothing is in flight on two reads."""
        return self.quiet and self.reads >= 2 and self._may_send(now, limits)

    def _may_send(self, now: float, limits: Limits) -> bool:
        if self.probe in ("rejected", "lost"):
            return now < self.silent_since + limits.patience
        return self.probe is None

    def send(self, now: float) -> None:
        """A probe goes out now."""
        self.probe, self.probe_detail, self._when_sent = "open", "", self._after
        self.probe_sent_at = self._open_since = now

    def outcome(self, what: str, detail: str, now: float) -> None:
        """The probe came back. One that ran into its time-out counts as open still."""
        if what == "unanswered":
            return
        self.probe, self.probe_detail, self._probed_at = what, detail, now

    def ends_at(self, limits: Limits) -> float:
        """When the patience is used up: half of it must have passed with the probe open."""
        end = self.silent_since + limits.patience
        return max(end, self._open_since + limits.patience / 2) if self.probe == "open" else end

    def next_boundary(self, now: float, limits: Limits) -> float:
        """The next time at which a look must be taken, whatever the distances."""
        half = self.silent_since + limits.patience / 2
        return half if now < half else self.ends_at(limits)

    def proven(self, look: Look, limits: Limits) -> bool:
        """Whether silence and an unanswered probe fill the whole patience up to this look."""
        return self.silent and self.probe == "open" and self._over(look, limits)

    def unprovable(self, look: Look, limits: Limits) -> bool:
        """Whether the patience is used up in silence, but no probe is out, and none is to be sent any more."""
        done = self.probe != "open" if limits.probe and self.probe is not None else not limits.probe
        return self.silent and done and self._over(look, limits)

    def _over(self, look: Look, limits: Limits) -> bool:
        # A look that did not show this engine says nothing of it.
        shown = self._seen_at == look.finished
        return shown and self.reads >= MIN_READS and look.started >= self.ends_at(limits)

    def evidence(self, now: float) -> EngineEvidence:
        """What was seen, for the report."""
        before = self._decided_from.counters.get("generation_tokens_total")
        after = self._decided_by.counters.get("generation_tokens_total")
        return EngineEvidence(
            engine=self.label,
            sample=self._after,
            reads=self.reads,
            interval=self.interval,
            tokens=None if before is None or after is None else after - before,
            signs=dict(self.signs),
            silent_for=0.0 if self.signs else self._seen_at - self.silent_since,
            probe=self.probe,
            probe_detail=self.probe_detail,
            probe_for=(now if self.probe == "open" else self._probed_at) - self.probe_sent_at,
        )

    def ask(self, generation: int) -> Probe:
        """The probe to be sent to this engine."""
        return Probe(self.label, generation)


def _end_of(look: Look) -> float:
    """When the look was over. What its other questions took is no lost time, if the front end answers at all."""
    return max(look.finished, look.returned) if look.health is not None else look.finished
