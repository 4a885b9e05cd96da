# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One server as a card."""

from __future__ import annotations

import typing as t

from . import bars, icons
from .history import Run, of_server, since
from .markup import Markup, name, tag, text, together
from .view import BAD, FINE, RESTART_FAILED, RESTARTED, WOULD_RESTART, Deed, Server, duration, level


def card(server: Server, all_runs: t.Sequence[Run], full: float, anchor: str) -> Markup:
    """The card of a server. full: what a full bar of requests means. anchor: its id on the page."""
    noteworthy = server.noteworthy
    return tag(
        "article",
        _head(server, anchor),
        tag("p", text(server.message, 600), class_="message") if server.message else None,
        _deed(server.deed) if server.deed else None,
        bars.engines(server, full),
        _details(server) if noteworthy else None,
        _past(server, all_runs) if len(all_runs) > 1 else None,
        class_="card %s%s" % (server.level, "" if noteworthy else " small"),
        aria_labelledby=anchor,
    )


def badge(verdict: str, reason: str = "") -> Markup:
    """A verdict as its shape and word, and the reason in words."""
    why = tag("span", text(words(reason), 40), class_="reason") if reason else None
    return tag("span", icons.use(verdict), tag("span", text(verdict, 24)), why, class_="badge " + level(verdict))


def words(code: str) -> str:
    """C(no_answer) as a person reads it."""
    return code.replace("_", " ")


def _head(server: Server, anchor: str) -> Markup:
    title = tag("h3", name(server.host, class_="host"), _server_name(server), id=anchor)
    return tag("header", badge(server.verdict, server.reason if server.noteworthy else ""), title)


def _server_name(server: Server) -> t.Optional[Markup]:
    return together(Markup(" "), name(server.name, class_="server")) if server.checked else None


def _deed(deed: Deed) -> Markup:
    return tag(
        "div",
        tag("p", tag("strong", text(_what(deed), 80)), Markup(" "), _course(deed)),
        tag("p", text(deed.message, 600)) if deed.message else None,
        tag("p", text("Evidence on the host:"), Markup(" "), tag("code", name(deed.evidence, 300))) if deed.evidence else None,
        class_="deed " + {RESTARTED: FINE, RESTART_FAILED: BAD}.get(deed.action, "held"),
    )


def _what(deed: Deed) -> str:
    done = {RESTARTED: "Restarted", RESTART_FAILED: "Restart failed", WOULD_RESTART: "Would be restarted (dry run)"}
    return done.get(deed.action) or ("Not restarted: %s" % words(deed.action) if deed.action else "Nothing done")


def _course(deed: Deed) -> Markup:
    parts = []
    if deed.before and deed.after:
        parts.append("%s before, %s after" % (deed.before, deed.after))
    if deed.seconds_down is not None:
        parts.append("down %s" % duration(deed.seconds_down))
    return text(", ".join(parts), 120)


def _details(server: Server) -> t.Optional[Markup]:
    pairs = (tag("div", tag("dt", text(label)), tag("dd", name(value, 300))) for label, value in server.details)
    return tag("dl", together(*pairs)) if server.details else None


def _past(server: Server, all_runs: t.Sequence[Run]) -> Markup:
    verdicts = of_server(server, all_runs)
    strip = bars.strip([(run.checked_at, verdict) for run, verdict in zip(all_runs, verdicts)])
    said = since(server, all_runs) if server.level != FINE else ""
    return tag("footer", strip, tag("span", text(said, 120)) if said else None)
