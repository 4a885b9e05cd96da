# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small pictures of numbers, as inline SVG. The numbers themselves stand beside them as text."""

from __future__ import annotations

import itertools
import typing as t

from .markup import Markup, tag, text, together
from .view import BAD, FINE, RESTING, UNSURE, Engine, Server, duration, level, moment

_HEIGHTS = {BAD: 20, UNSURE: 14, RESTING: 9, FINE: 4, "none": 2}
_STEP, _HIGH = 8, 20
_DASHES = "6 2"  # together one step


def scale(servers: t.Sequence[Server]) -> float:
    """What a full bar of requests means on this page: the most that any engine has running or waiting."""
    numbers = [number or 0 for server in servers for engine in server.engines for number in (engine.running, engine.waiting)]
    return max([1.0, *numbers])


def engines(server: Server, full: float) -> t.Optional[Markup]:
    """The engines of a server as a table with bars; None where nothing is known of any."""
    known = [engine for engine in server.engines if engine.running is not None or engine.waiting is not None]
    if not known:
        return None
    columns = _columns(known)
    head = tag("tr", *(tag("th", text(title), scope="col") for title in columns))
    rows = (tag("tr", *(_cell(title, engine, full) for title in columns)) for engine in known)
    return tag("table", tag("thead", head), tag("tbody", together(*rows)), class_="engines")


def _columns(known: t.Sequence[Engine]) -> t.List[str]:
    several = ["Engine"] if len(known) > 1 else []
    silent = ["Silent"] if any(map(_silent, known)) else []
    return [*several, "Running", "Waiting", "KV cache", "Tokens/s", *silent]


def _cell(column: str, engine: Engine, full: float) -> Markup:
    if column == "Engine":
        return tag("th", text(engine.label, 6), scope="row")
    if column == "Running":
        return _bar("run", engine.running, full)
    if column == "Waiting":
        return _bar("wait", engine.waiting, full)
    if column == "KV cache":
        return _bar("kv", None if engine.kv_cache_usage is None else engine.kv_cache_usage * 100, 100.0, " %")
    if column == "Tokens/s":
        return tag("td", _or_dash(engine.tokens_per_second))
    return tag("td", text(_silent(engine) or "–"))


def _silent(engine: Engine) -> str:
    """How long, where it is longer than the moment between two reads of an idle engine."""
    return duration(engine.silent_for) if engine.silent_for is not None and engine.silent_for >= 1 else ""


def _bar(kind: str, value: t.Optional[float], full: float, unit: str = "") -> Markup:
    share = 0.0 if value is None else min(max(value / full, 0.0), 1.0)
    # A number above nothing is seen, however small its share.
    width = max(share * 100, 3.0) if value else 0.0
    picture = tag(
        "svg",
        tag("rect", class_="track", width=100, height=8),
        tag("rect", class_="fill", width="%.1f" % width, height=8),
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
    return tag("td", picture, tag("span", _or_dash(value, unit)), class_="bar " + kind)


def _or_dash(value: t.Optional[float], unit: str = "") -> Markup:
    if value is None:
        return text("–")
    return text(("%.0f" if abs(value) < 100_000 else "%.1e") % value + unit)


def strip(verdicts: t.Sequence[t.Tuple[str, t.Optional[str]]]) -> Markup:
    """One mark a run, oldest first: the taller, the worse. verdicts: pairs of a time and a verdict."""
    width = len(verdicts) * _STEP
    return tag(
        "svg",
        together(*_marks(verdicts)),
        class_="strip",
        viewBox="0 0 %d %d" % (width, _HIGH),
        width=width,
        height=_HIGH,
        preserveAspectRatio="xMinYMax",
        role="img",
        aria_label=_spoken([verdict for _stamp, verdict in verdicts]),
    )


def _marks(verdicts: t.Sequence[t.Tuple[str, t.Optional[str]]]) -> t.Iterator[Markup]:
    """Neighbours with the same verdict as one dashed line: a page of a thousand servers stays small."""
    place = 0
    for verdict, group in itertools.groupby(verdicts, key=lambda pair: pair[1]):
        stamps = [stamp for stamp, _verdict in group]
        matters = level(verdict) if verdict else "none"
        height = _HEIGHTS[matters]
        line = "M%d %gh%d" % (place * _STEP, _HIGH - height / 2, len(stamps) * _STEP)
        shape = tag("path", class_="mark " + matters, d=line, stroke_width=height, stroke_dasharray=_DASHES)
        yield tag("g", tag("title", text(_span(stamps, verdict or "not looked at"), 120)), shape)
        place += len(stamps)


def _span(stamps: t.Sequence[str], verdict: str) -> str:
    last = " to %s" % moment(stamps[-1]) if len(stamps) > 1 else ""
    return "%s: %s%s" % (verdict, moment(stamps[0]), last)


def _spoken(verdicts: t.Sequence[t.Optional[str]]) -> str:
    counts = {verdict: verdicts.count(verdict) for verdict in verdicts if verdict}
    return "last %d runs: %s" % (len(verdicts), ", ".join("%d %s" % (count, word) for word, count in counts.items()))
