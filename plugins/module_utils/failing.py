# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From looks that brought no metrics to a verdict: what they mean, and when they have lasted long enough."""

from __future__ import annotations

import typing as t

from .looks import Limits, Look
from .systemd import UnitFacts

SETTLED_LOOKS = 3
SETTLED_AFTER = 1.5
"""A failure becomes a verdict after so many looks in a row over so many seconds: one lost read proves nothing."""

CRASH_LOOP = 3
"""So many restarts by systemd itself make a unit that waits for the next one a crash loop."""

FIRST_GAP = 0.25
LONGEST_GAP = 15.0

Meaning = t.Tuple[str, str]

_TIMEOUT: Meaning = ("unresponsive", "timeout")
_MEANINGS: t.Dict[str, Meaning] = {
    "refused": ("dead", "refused"),
    "timeout": _TIMEOUT,
    "unreachable": ("unknown", "unreachable"),
    "reset": ("unknown", "metrics_error"),
    "tls": ("unknown", "tls_error"),
    "name": ("unknown", "name_not_resolved"),
    "too_large": ("unknown", "unparseable"),
    "malformed": ("unknown", "not_vllm"),
    "unparseable": ("unknown", "unparseable"),
    "redirected": ("unknown", "redirected"),
    "unauthorized": ("unknown", "unauthorized"),
    "error": ("unknown", "metrics_error"),
}


def gap(looks: int, longest: float = LONGEST_GAP) -> float:
    """Seconds to the next look after so many looks (1 or more): a quarter of a second, doubling, at most 15."""
    return min(longest, FIRST_GAP * 2.0 ** min(looks - 1, 10))


def longest_gap(limits: Limits) -> float:
    """Seconds between two looks at a silent engine at most: a short patience, too, is filled with looks."""
    return min(LONGEST_GAP, limits.patience / 4)


def most_seen(limits: Limits) -> float:
    """Seconds between two good reads that count as seen at most: what is beyond was lost, and proves nothing."""
    return 2 * longest_gap(limits)


def is_young(unit: t.Optional[UnitFacts], now: float, limits: Limits) -> bool:
    """Whether the unit's main process started less than the startup grace ago."""
    return unit is not None and unit.started is not None and now - unit.started < limits.startup_grace


def unit_is_changing(unit: t.Optional[UnitFacts]) -> t.Optional[Meaning]:
    """What a unit on its way up or down means, whether or not the server answers meanwhile."""
    if unit is None:
        return None
    if unit.active_state == "deactivating":
        return "starting", "unit_deactivating"
    if unit.active_state in ("activating", "reloading"):
        if unit.sub_state == "auto-restart" and unit.restarts >= CRASH_LOOP:
            return "unknown", "keeps_restarting"
        return "starting", "unit_activating"
    return None


def meaning(look: Look, limits: Limits) -> Meaning:
    """What one failed look would mean if it lasted. The unit knows more than a closed port."""
    changing = unit_is_changing(look.unit)
    if changing is not None:
        return changing
    if look.failure in ("refused", "reset", "timeout") and look.unit is not None:
        if look.unit.active_state in ("inactive", "failed"):
            return "dead", "unit_" + look.unit.active_state
        if look.failure != "timeout" and is_young(look.unit, look.finished, limits):
            return "starting", "not_listening_yet"
    if look.failure in ("absent", "no_series"):
        return "unknown", "no_metrics" if look.models_by_vllm else "not_vllm"
    return _MEANINGS[t.cast(str, look.failure)]


class Streak:
    """Looks that failed one after another with the same meaning."""

    def __init__(self, what: Meaning, look: Look) -> None:
        self.what = what
        self.since = look.started
        self.last = look
        self.looks = 1

    def add(self, look: Look) -> None:
        """Count one more look that failed like the ones before."""
        self.last = look
        self.looks += 1

    @property
    def lasted(self) -> float:
        """Seconds from the start of the first to the end of the last."""
        return self.last.finished - self.since

    def verdict(self, limits: Limits) -> t.Optional[Meaning]:
        """The verdict, once the looks have lasted long enough for it."""
        if self.what[0] == "starting":
            return self.what
        if self.what == _TIMEOUT:
            return self._timed_out(limits)
        settled = self.looks >= SETTLED_LOOKS and self.lasted >= SETTLED_AFTER
        return self.what if settled else None

    def _timed_out(self, limits: Limits) -> t.Optional[Meaning]:
        # Silence is a timeout only after the whole patience: a busy front end may be slow.
        if self.looks < 2 or self.lasted < limits.patience:
            return None
        if is_young(self.last.unit, self.last.finished, limits):
            return "starting", "not_listening_yet"
        return self.what

    def next_look(self, limits: Limits) -> float:
        """When to look again."""
        soon = self.last.finished + gap(self.looks)
        end = self.since + limits.patience
        if self.what == _TIMEOUT and self.last.finished < end:
            return min(soon, end)
        return soon


def follow(streak: t.Optional[Streak], what: Meaning, look: Look) -> Streak:
    """The streak with one more failed look: the same one where the meaning is the same, else a new one."""
    if streak is None or streak.what != what:
        return Streak(what, look)
    streak.add(look)
    return streak
