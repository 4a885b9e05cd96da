# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an audit says: one sentence an operator can act on, and the data behind it."""

from __future__ import annotations

import collections
import datetime
import typing as t

from ..redacting import shown
from . import schedules
from .journal import Asker, Restart
from .parties import Party, Place

# As people say it, whatever the locale of the host.
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_PLAIN = {
    "timer": "timer",
    "cron": "cron",
    "at": "at",
    "service": "the service",
    "path": "the path unit",
    "watchdog": "its own WatchdogSec",
    "lifetime": "its own RuntimeMaxSec",
    "dependency": "the unit",
    "monit": "monit",
    "supervisord": "supervisord",
    "container": "the container engine",
    "autoheal": "autoheal",
    "logrotate": "logrotate",
}


class History(t.NamedTuple):
    """The restarts of a unit, and how far back the journal was read. `why_not` is set where it could not be."""

    restarts: t.Sequence[t.Tuple[Restart, Asker]]
    days: int
    loading_time: float
    begins: t.Optional[float] = None
    why_not: str = ""

    @property
    def close(self) -> int:
        """How many came within one loading time of the one before."""
        return sum(is_close(restart, self.loading_time) for restart, _asker in self.restarts)


def is_close(restart: Restart, loading_time: float) -> bool:
    """Whether the server cannot have finished loading when it was restarted again."""
    return restart.after is not None and restart.after < loading_time


def sentence(
    unit: str, parties: t.Sequence[Party], history: History, incomplete: bool = False, restart: t.Optional[str] = None
) -> str:
    """The whole finding about one unit, whose own setting Restart= is `restart`."""
    said = f"{_who(unit, parties, restart)}; {_what(history)}"
    return said + ("; not everything could be read" if incomplete else "")


def _who(unit: str, parties: t.Sequence[Party], restart: t.Optional[str]) -> str:
    active = [party for party in parties if party.active]
    off = len(parties) - len(active)
    also = f" ({off} more switched off)" if off else ""
    if not active and restart in (None, "", "no"):
        return f"Nothing on this host restarts {unit}{also}"
    if not active:
        return f"Nothing but systemd itself (Restart={restart}) can restart {unit}{also}"
    return f"{schedules.number(len(active), 'party')} can restart {unit} ({', '.join(_groups(active))}){also}"


def _groups(active: t.Sequence[Party]) -> t.Iterator[str]:
    kinds = list(dict.fromkeys(party.kind for party in active))
    for kind in kinds:
        of_kind = [party for party in active if party.kind == kind]
        spans = [party.every for party in of_kind if party.every]
        if kind in ("timer", "cron") and len(spans) == len(of_kind):
            name = kind if kind == "cron" else schedules.number(len(of_kind), kind).split(" ", 1)[1]
            yield f"{name} {schedules.say_every(spans)}"
        elif kind in ("watchdog", "lifetime"):
            yield f"{_PLAIN[kind]} after {schedules.say(spans[0])}" if spans else _PLAIN[kind]
        elif kind in ("at", "monit", "supervisord", "logrotate", "autoheal"):
            yield _PLAIN[kind] if len(of_kind) == 1 else f"{_PLAIN[kind]} ({len(of_kind)})"
        else:
            names = [shown(party.name, 60) for party in of_kind[:4]]
            names += [f"{len(of_kind) - 4} more"] if len(of_kind) > 4 else []
            yield f"{_PLAIN[kind]}{'s' if len(of_kind) > 1 else ''} {schedules.series(names)}"


def _what(history: History) -> str:
    if history.why_not:
        return f"its restarts are not known ({history.why_not})"
    span = f"in the last {schedules.number(history.days, 'day')}"
    count = len(history.restarts)
    if not count and history.begins:
        return f"no restart since {day(history.begins)}, where the journal begins"
    if not count:
        return f"no restart {span}"
    days = collections.Counter(day(restart.at) for restart, _asker in history.restarts)
    busiest, most = max(days.items(), key=lambda item: item[1])
    said = schedules.number(count, "restart")
    if len(days) == 1:
        said += f" on {busiest}"
    else:
        said += f" {span}" + (f", {most} of them on {busiest}" if most > 1 else "")
    if history.close:
        said += f", {_share(history.close, count)} less than {schedules.say(history.loading_time)} after the one before"
    return said + (f" (the journal begins on {day(history.begins)})" if history.begins else "")


def _share(part: int, whole: int) -> str:
    """`it`, `all of them`, `5 of them`."""
    if whole == 1:
        return "this one"
    return "all of them" if part == whole else f"{part} of them"


def day(at: float) -> str:
    """`22 July`, in UTC."""
    moment = datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
    return f"{moment.day} {MONTHS[moment.month - 1]}"


def moment(at: float) -> str:
    """ISO 8601 in UTC."""
    return datetime.datetime.fromtimestamp(int(at), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def party_data(party: Party) -> t.Dict[str, t.Any]:
    """A party as the module returns it."""
    first = party.places[0] if party.places else None
    return {
        "kind": party.kind,
        "name": shown(party.name),
        "action": party.action,
        "certain": party.certain,
        "active": party.active,
        "every": party.every,
        "when": party.when,
        "file": shown(first.file) if first else None,
        "line": first.line if first else None,
        "text": first.text if first else "",
        "places": [shown(f"{place}: {place.text}") for place in party.places],
        "via": [shown(str(place)) for place in party.via],
        "remark": party.remark,
        "message": party_line(party),
    }


def party_line(party: Party) -> str:
    """A party in one line: what, when, where."""
    where = ", ".join(str(place) for place in party.places[:3]) or "place not found"
    said = f"{_PLAIN[party.kind]} {party.name}" if party.kind not in ("watchdog", "lifetime") else _PLAIN[party.kind]
    said = party.name if party.kind == "cron" else said
    via = _through(party.via)
    words = [f"{said}: {party.action}", party.when, f"written in {where}{via}", party.remark]
    if not party.certain:
        words.append("by all appearance")
    if not party.active:
        words.append("switched off")
    return shown(", ".join(word for word in words if word))


def _through(via: t.Sequence[Place]) -> str:
    return f" (by way of {', '.join(str(place) for place in via)})" if via else ""


def restart_data(restart: Restart, asker: Asker, loading_time: float) -> t.Dict[str, t.Any]:
    """A restart as the module returns it."""
    return {
        "at": moment(restart.at),
        "after": None if restart.after is None else round(restart.after),
        "close": is_close(restart, loading_time),
        "by": str(asker),
        "by_kind": asker.kind or None,
        "certain": asker.certain,
        "result": restart.result or None,
    }
