# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is shown of a report: its rows, which other machines and earlier releases wrote, as values of known types."""

from __future__ import annotations

import dataclasses
import math
import typing as t

from ...module_utils.verdicts import VERDICTS, healthy

BAD, UNSURE, RESTING, FINE = "bad", "unsure", "resting", "fine"
LEVELS = (BAD, UNSURE, RESTING, FINE)
"""How a verdict matters to a person, worst first: sick; not judged; not working on purpose; works."""

RESTARTED, RESTART_FAILED, WOULD_RESTART = "restarted", "restart_failed", "would_restart"
_NOTHING_DONE = ("", "none", "not_stuck")
_ENGINES = 64
NOT_CHECKED = "-"
"""The name of the row of a host that could not be checked."""


@dataclasses.dataclass(frozen=True)
class Engine:
    """One engine of a server. None: not known."""

    label: str
    running: t.Optional[float]
    waiting: t.Optional[float]
    kv_cache_usage: t.Optional[float]
    tokens_per_second: t.Optional[float]
    silent_for: t.Optional[float]


@dataclasses.dataclass(frozen=True)
class Deed:
    """What was done about a server, or why nothing was. action: restarted, restart_failed, would_restart (of a dry run),
    or a reason to hold back. before, after: verdicts, where there was a restart."""

    action: str
    message: str
    before: str
    after: str
    seconds_down: t.Optional[float]
    evidence: str


@dataclasses.dataclass(frozen=True)
class Server:
    """One row. verdict: the newest one. details: pairs of a label and a text."""

    host: str
    name: str
    verdict: str
    level: str
    reason: str
    message: str
    engines: t.Tuple[Engine, ...]
    details: t.Tuple[t.Tuple[str, str], ...]
    deed: t.Optional[Deed]

    @property
    def checked(self) -> bool:
        """False: the host could not be reached, or its check failed; no server of it is known."""
        return self.name != NOT_CHECKED

    @property
    def label(self) -> str:
        """Host and name in one."""
        return "%s %s" % (self.host, self.name) if self.checked else self.host

    @property
    def noteworthy(self) -> bool:
        """Whether a person should read its card first."""
        return self.level != FINE or self.deed is not None


def servers(fleet: t.Mapping[str, t.Any]) -> t.List[Server]:
    """The servers of a report, worst first, within a verdict those first about which something was done."""
    rows = [_server(row) for row in _list(fleet.get("servers")) if isinstance(row, t.Mapping)]
    return sorted(rows, key=lambda row: (LEVELS.index(row.level), rank(row.verdict), row.deed is None))


def level(verdict: str) -> str:
    """How a verdict matters; a word that is none counts as not judged."""
    if verdict not in VERDICTS or verdict == "unknown":
        return UNSURE
    return {False: BAD, None: RESTING, True: FINE}[healthy(verdict)]


def rank(verdict: str) -> int:
    """Place in the order worst first; a word that is no verdict stands where unknown does."""
    return VERDICTS.index(verdict if verdict in VERDICTS else "unknown")


def number(value: t.Any) -> t.Optional[float]:
    """C(value) where it is a finite number."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return value if is_number else None


def _server(row: t.Mapping[str, t.Any]) -> Server:
    verdict = _str(row.get("verdict_after")) or _str(row.get("verdict")) or "unknown"
    outdated = bool(row.get("verdict_after"))  # then reason and message are those of the verdict before
    return Server(
        host=_str(row.get("host")) or "?",
        name=_str(row.get("name")) or "?",
        verdict=verdict,
        level=level(verdict),
        reason="" if outdated else _str(row.get("reason")),
        message=("Before: " if outdated else "") + _str(row.get("message")),
        engines=tuple(_engine(engine) for engine in _list(row.get("engines"))[:_ENGINES] if isinstance(engine, t.Mapping)),
        details=tuple(_details(row)),
        deed=_deed(row),
    )


def _engine(engine: t.Mapping[str, t.Any]) -> Engine:
    keys = ("running", "waiting", "kv_cache_usage", "tokens_per_second", "silent_for")
    return Engine(_str(engine.get("engine")), *(number(engine.get(key)) for key in keys))


def _deed(row: t.Mapping[str, t.Any]) -> t.Optional[Deed]:
    action = _str(row.get("action"))
    acted = action in (RESTARTED, RESTART_FAILED)
    deed = Deed(
        action=action,
        message=_str(row.get("action_message")),
        before=_str(row.get("verdict_before")) if acted else "",
        after=(_str(row.get("verdict_after")) or _str(row.get("verdict"))) if acted else "",
        seconds_down=number(row.get("seconds_down")),
        evidence=_str(row.get("evidence")),
    )
    nothing = deed.action in _NOTHING_DONE and not deed.evidence and deed.seconds_down is None
    return None if nothing else deed


def _details(row: t.Mapping[str, t.Any]) -> t.Iterator[t.Tuple[str, str]]:
    models = [_str(model) for model in _list(row.get("models"))]
    pairs = (
        ("Address", _str(row.get("url"))),
        ("Unit", _unit(row)),
        ("Models", _some(models, 3)),
        ("vLLM", _str(row.get("vllm_version"))),
        ("Check", _effort(row)),
    )
    return (pair for pair in pairs if pair[1])


def _unit(row: t.Mapping[str, t.Any]) -> str:
    unit, facts = _str(row.get("unit")), row.get("systemd")
    if not unit or not isinstance(facts, t.Mapping):
        return unit
    if facts.get("error"):
        return "%s: %s" % (unit, _str(facts["error"]))
    parts = ["%s, %s (%s)" % (unit, _str(facts.get("active_state")), _str(facts.get("sub_state")))]
    if facts.get("started_at"):
        parts.append("since %s" % moment(_str(facts["started_at"])))
    if number(facts.get("restarts")):
        parts.append("restarted %d times by systemd" % facts["restarts"])
    return ", ".join(parts)


def _effort(row: t.Mapping[str, t.Any]) -> str:
    reads, probes, elapsed = (number(row.get(key)) for key in ("reads", "probes", "elapsed"))
    if reads is None or elapsed is None:
        return ""
    sent = "no request sent" if not probes else "%d request%s sent" % (probes, "" if probes == 1 else "s")
    return "%d read%s in %s, %s" % (reads, "" if reads == 1 else "s", duration(elapsed), sent)


def moment(stamp: str) -> str:
    """C(2026-11-29T22:00:00Z) as a person reads it."""
    return stamp.replace("T", " ").replace("Z", " UTC") if len(stamp) == len("2026-11-29T22:00:00Z") else stamp


def duration(value: float) -> str:
    """Seconds as a person reads them."""
    if value < 10:
        return "%.2g s" % value
    if value < 600:
        return "%.0f s" % value
    return "%.0f min" % (value / 60) if value < 7200 else "%.0f h" % (value / 3600)


def _some(items: t.Sequence[str], shown: int) -> str:
    more = " and %d more" % (len(items) - shown) if len(items) > shown else ""
    return ", ".join(items[:shown]) + more


def _str(value: t.Any) -> str:
    return "" if value is None else str(value)


def _list(value: t.Any) -> t.Sequence[t.Any]:
    return value if isinstance(value, (list, tuple)) else ()
