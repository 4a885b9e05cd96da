# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole page. It needs no network and no script, and its policy forbids both."""

from __future__ import annotations

import base64
import functools
import hashlib
import pathlib
import typing as t

from . import bars, hero, icons, view
from .cards import badge, card
from .history import Change, Run, Span, runs, spans, without_day
from .markup import Markup, name, tag, text, together
from .view import BAD, FINE, UNSURE, Server, moment

_CHANGES = 6
_LEFT_OUT = 5
_TAB_COLOURS = {BAD: "#c4161c", UNSURE: "#9a5b00", FINE: "#15803d"}
_MEANINGS = (
    ("stuck", "proven: no sign of life over the whole patience, and a one-token request unanswered"),
    ("dead", "nothing listens, or vLLM itself says that its engine died"),
    ("unresponsive", "nothing is answered, and nothing is refused"),
    ("stalled", "silent for the whole patience, but something stands in the way of proof"),
    ("unknown", "no basis for a verdict"),
    ("starting", "still starting, or going down"),
    ("paused", "its scheduler was paused"),
    ("sleeping", "put to sleep"),
    ("busy", "works; no request was sent to it"),
    ("idle", "nothing to do"),
    ("serving", "a proxy that lists its models"),
)


def page(fleet: t.Mapping[str, t.Any], earlier: t.Optional[t.Mapping[str, t.Any]] = None) -> Markup:
    """The page of a report. earlier: what the lookup of earlier reports returned."""
    earlier = earlier or {}
    servers = view.servers(fleet)
    all_runs = runs(fleet, servers, earlier.get("reports") or ())
    body = tag("body", icons.definitions(), tag("main", *_parts(fleet, servers, all_runs, earlier)))
    return together(Markup("<!doctype html>\n"), tag("html", _head(servers), body, lang="en"), Markup("\n"))


def _parts(
    fleet: t.Mapping[str, t.Any], servers: t.Sequence[Server], all_runs: t.Sequence[Run], earlier: t.Mapping[str, t.Any]
) -> t.Iterator[t.Optional[Markup]]:
    anchors = {place: "s%d" % place for place in range(len(servers))}
    full = bars.scale(servers)
    made = [(server.noteworthy, card(server, all_runs, full, anchors[place])) for place, server in enumerate(servers)]
    yield hero.hero(fleet, servers, all_runs, anchors)
    yield hero.counts(servers)
    yield _section("What needs a look", "cards", [markup for noteworthy, markup in made if noteworthy])
    yield _section("Working", "cards dense", [markup for noteworthy, markup in made if not noteworthy])
    yield _past(all_runs, earlier.get("left_out") or ())
    yield _legend()


def _section(title: str, kind: str, cards: t.Sequence[Markup]) -> t.Optional[Markup]:
    return tag("section", tag("h2", text(title)), tag("div", *cards, class_=kind)) if cards else None


def _past(all_runs: t.Sequence[Run], left_out: t.Sequence[t.Mapping[str, t.Any]]) -> t.Optional[Markup]:
    if len(all_runs) == 1 and not left_out:
        return None
    items = [tag("li", *_span(span)) for span in reversed(spans(all_runs))]
    return tag(
        "section",
        tag("h2", text("Last runs")),
        tag("ol", together(*items), class_="runs") if len(all_runs) > 1 else None,
        _not_shown(left_out),
    )


def _span(span: Span) -> t.Iterator[Markup]:
    first, last = span.first.checked_at, span.last.checked_at
    until = " to %s (%d runs)" % (without_day(last, first), span.count) if span.count > 1 else ""
    yield tag("span", text(moment(first) + until, 100), class_="when")
    yield tag("ul", *_tally(list(span.last.verdicts.values())), class_="tally")
    if span.changes:
        shown = [_change(change) for change in span.changes[:_CHANGES]]
        if len(span.changes) > _CHANGES:
            shown.append(tag("li", text("and %d more" % (len(span.changes) - _CHANGES))))
        yield tag("ul", *shown, class_="changes")


def _tally(verdicts: t.Sequence[str]) -> t.Iterator[Markup]:
    for verdict in sorted(set(verdicts), key=view.rank):
        if view.level(verdict) != FINE:
            yield tag("li", badge(verdict), text(verdicts.count(verdict)))
    yield tag("li", text("%d working" % sum(view.level(verdict) == FINE for verdict in verdicts)))


def _change(change: Change) -> Markup:
    label = change.server[0] if change.server[1] == view.NOT_CHECKED else "%s %s" % change.server
    return tag("li", name(label, 100), text(": %s, was %s" % (change.after, change.before), 80))


def _not_shown(left_out: t.Sequence[t.Mapping[str, t.Any]]) -> t.Optional[Markup]:
    if not left_out:
        return None
    items = [tag("li", tag("code", name(entry["file"], 120)), text(": %s" % entry["why"], 200)) for entry in left_out[:_LEFT_OUT]]
    if len(left_out) > _LEFT_OUT:
        items.append(tag("li", text("and %d more" % (len(left_out) - _LEFT_OUT))))
    return tag("div", tag("p", text("Not shown, as they cannot be read:")), tag("ul", *items), class_="left-out")


def _legend() -> Markup:
    pairs = (tag("div", tag("dt", badge(verdict)), tag("dd", text(meaning))) for verdict, meaning in _MEANINGS)
    return tag("details", tag("summary", text("What the verdicts mean")), tag("dl", together(*pairs)), class_="legend")


def _head(servers: t.Sequence[Server]) -> Markup:
    matters, verdict = hero.overall(servers)
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    policy = "default-src 'none'; style-src 'sha256-%s'; img-src data:; base-uri 'none'; form-action 'none'" % digest
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", text("%s – vLLM fleet" % hero.headline(servers))),
        tag("link", rel="icon", href=icons.favicon(verdict, _TAB_COLOURS[matters])),
        tag("style", _style()),
    )


@functools.lru_cache(maxsize=None)
def _style() -> Markup:
    return Markup(pathlib.Path(__file__).with_name("page.css").read_text(encoding="utf-8"))
