# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The top of the page: what is wrong, in one second."""

from __future__ import annotations

import typing as t

from . import icons
from .cards import badge, words
from .history import Run, since
from .markup import Markup, name, tag, text, together
from .view import BAD, FINE, RESTARTED, RESTING, UNSURE, Server, moment, rank

_NAMED = 12


def overall(servers: t.Sequence[Server]) -> t.Tuple[str, str]:
    """The level and the verdict that the whole fleet is painted with."""
    if not servers:
        return UNSURE, "unknown"
    worst = servers[0]
    # A fleet in which somebody starts or sleeps is well; its shape is that of a working one.
    return (FINE, "idle") if worst.level in (RESTING, FINE) else (worst.level, worst.verdict)


def headline(servers: t.Sequence[Server]) -> str:
    """What is wrong, in a few words."""
    bad = [server.verdict for server in servers if server.level == BAD]
    unsure = sum(server.level == UNSURE for server in servers)
    if bad:
        return ", ".join("%d %s" % (bad.count(verdict), verdict) for verdict in sorted(set(bad), key=rank))
    if unsure:
        return "%d not judged" % unsure
    if not servers:
        return "No server was checked"
    return "All is well"


def hero(
    fleet: t.Mapping[str, t.Any], servers: t.Sequence[Server], all_runs: t.Sequence[Run], anchors: t.Mapping[int, str]
) -> Markup:
    """The coloured block. anchors: the id of each server's card by its place."""
    matters, verdict = overall(servers)
    rest = _rest(servers)
    return tag(
        "header",
        tag(
            "p",
            text("vLLM fleet, checked"),
            Markup(" "),
            tag("time", text(moment(str(fleet.get("checked_at", "at an unknown time"))), 40)),
        ),
        tag("h1", icons.use(verdict), tag("span", text(headline(servers)))),
        tag("p", text(rest), class_="rest") if rest else None,
        _names(servers, all_runs, anchors),
        class_="hero " + matters,
    )


def _rest(servers: t.Sequence[Server]) -> str:
    known = _many(sum(server.checked for server in servers), "server")
    hosts = _many(len({server.host for server in servers}), "host")
    wrong = any(server.level in (BAD, UNSURE) for server in servers)
    others = ", ".join("%d %s" % pair for pair in _others(servers))
    return "%s%s on %s: %s" % ("of " if wrong else "", known, hosts, others) if servers else ""


def _others(servers: t.Sequence[Server]) -> t.Iterator[t.Tuple[int, str]]:
    bad = any(server.level == BAD for server in servers)
    unsure = sum(server.level == UNSURE for server in servers)
    yield sum(server.level == FINE for server in servers), "working"
    for word in ("starting", "paused", "sleeping"):
        count = sum(server.verdict == word for server in servers)
        if count:
            yield count, word
    if bad and unsure:
        yield unsure, "not judged"
    restarted = sum(server.deed is not None and server.deed.action == RESTARTED for server in servers)
    if restarted:
        yield restarted, "restarted in this run"


def _names(servers: t.Sequence[Server], all_runs: t.Sequence[Run], anchors: t.Mapping[int, str]) -> t.Optional[Markup]:
    wrong = [(place, server) for place, server in enumerate(servers) if server.level in (BAD, UNSURE)]
    if not wrong:
        return None
    items = [tag("li", _name(server, all_runs, anchors[place])) for place, server in wrong[:_NAMED]]
    if len(wrong) > _NAMED:
        items.append(tag("li", text("and %d more below" % (len(wrong) - _NAMED))))
    return tag("ul", together(*items), class_="wrong")


def _name(server: Server, all_runs: t.Sequence[Run], anchor: str) -> Markup:
    said = "%s, %s" % (server.verdict, words(server.reason)) if server.reason else server.verdict
    past = since(server, all_runs)
    return together(
        tag("a", name(server.label, 100), href="#" + anchor),
        Markup(" "),
        tag("span", text("%s; %s" % (said, past) if past else said, 160)),
    )


def counts(servers: t.Sequence[Server]) -> t.Optional[Markup]:
    """All verdicts with their numbers, worst first."""
    present = sorted({server.verdict for server in servers}, key=rank)
    if not present:
        return None
    items = (_count(verdict, sum(server.verdict == verdict for server in servers)) for verdict in present)
    return tag("ul", together(*items), class_="counts", aria_label="servers by verdict")


def _count(verdict: str, number: int) -> Markup:
    return tag("li", tag("strong", text(number)), Markup(" "), badge(verdict))


def _many(number: int, thing: str) -> str:
    return "%d %s%s" % (number, thing, "" if number == 1 else "s")
