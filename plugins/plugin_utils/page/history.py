# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of the servers over the last runs."""

from __future__ import annotations

import dataclasses
import typing as t

from .view import FINE, NOT_CHECKED, Server, level, moment, rank

RUNS = 30
"""So many runs are shown, this one among them."""

Key = t.Tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Run:
    """One run: when, and the verdict on each server, by host and name."""

    checked_at: str
    verdicts: t.Mapping[Key, str]


@dataclasses.dataclass(frozen=True)
class Change:
    """A server whose verdict matters otherwise than in the last run that had it."""

    server: Key
    before: str
    after: str


@dataclasses.dataclass(frozen=True)
class Span:
    """Neighbouring runs in which all stayed as it was. changes: what the first of them found changed."""

    first: Run
    last: Run
    count: int
    changes: t.Sequence[Change]


def runs(fleet: t.Mapping[str, t.Any], servers: t.Sequence[Server], earlier: t.Sequence[t.Mapping[str, t.Any]]) -> t.List[Run]:
    """The last runs, oldest first; the last one is the run shown. Reports that are not older than it are left out."""
    now = Run(str(fleet.get("checked_at", "")), _worst_by_key((server.host, server.name, server.verdict) for server in servers))
    by_time = {
        str(report["checked_at"]): Run(
            str(report["checked_at"]),
            _worst_by_key((row["host"], row["name"], row["verdict"]) for row in report["servers"]),
        )
        for report in earlier
        if str(report["checked_at"]) < now.checked_at
    }
    return [by_time[stamp] for stamp in sorted(by_time)][-(RUNS - 1) :] + [now]


def of_server(server: Server, all_runs: t.Sequence[Run]) -> t.List[t.Optional[str]]:
    """The server's verdict in each run; None where it was not looked at."""
    return [_verdict(server, run) for run in all_runs]


def since(server: Server, all_runs: t.Sequence[Run]) -> str:
    """Since when its verdict is what it is, as far as the runs show; empty where there is but one run."""
    first, count = all_runs[-1], 0
    for run in reversed(all_runs):
        if _verdict(server, run) != server.verdict:
            break
        first, count = run, count + 1
    if len(all_runs) == 1:
        return ""
    if count <= 1:
        return "new in this run"
    longer = " or longer" if count == len(all_runs) else ""
    return "since %s%s (%d runs)" % (without_day(first.checked_at, all_runs[-1].checked_at), longer, count)


def without_day(stamp: str, other: str) -> str:
    """A moment for a person, without its day where that is the other's."""
    day = len("2026-11-29 ")
    return moment(stamp)[day:] if moment(stamp)[:day] == moment(other)[:day] else moment(stamp)


def changes(all_runs: t.Sequence[Run]) -> t.List[t.List[Change]]:
    """For each run what changed in it, worst first; nothing for the first."""
    last: t.Dict[Key, str] = {}
    result = []
    for run in all_runs:
        found = [Change(key, _before(key, last), verdict) for key, verdict in run.verdicts.items() if _before(key, last)]
        found = [change for change in found if level(change.before) != level(change.after)]
        result.append(sorted(found, key=lambda change: rank(change.after)))
        _remember(run, last)
    return result


def spans(all_runs: t.Sequence[Run]) -> t.List[Span]:
    """The runs, oldest first, with neighbours that say the same put together."""
    found: t.List[Span] = []
    for run, changed in zip(all_runs, changes(all_runs)):
        if found and not changed and _tally(run) == _tally(found[-1].last):
            found[-1] = dataclasses.replace(found[-1], last=run, count=found[-1].count + 1)
        else:
            found.append(Span(run, run, 1, changed))
    return found


def _tally(run: Run) -> t.List[str]:
    return sorted("works" if level(verdict) == FINE else verdict for verdict in run.verdicts.values())


def _before(key: Key, last: t.Mapping[Key, str]) -> str:
    """The verdict known so far, that of a whole host where it was not reached; empty where there is none."""
    host, name = key
    if name == NOT_CHECKED:
        return min((verdict for (known, _name), verdict in last.items() if known == host), key=rank, default="")
    return last.get(key, "")


def _remember(run: Run, last: t.Dict[Key, str]) -> None:
    unreached = {host: verdict for (host, name), verdict in run.verdicts.items() if name == NOT_CHECKED}
    for host, name in list(last):
        if host in unreached:
            last[host, name] = unreached[host]
    last.update({key: verdict for key, verdict in run.verdicts.items() if key[1] != NOT_CHECKED})


def _verdict(server: Server, run: Run) -> t.Optional[str]:
    if not server.checked:
        of_host = [verdict for (host, _name), verdict in run.verdicts.items() if host == server.host]
        return min(of_host, key=rank, default=None)
    # A host that was not reached then has a row of its own instead of its servers'.
    return run.verdicts.get((server.host, server.name)) or run.verdicts.get((server.host, NOT_CHECKED))


def _worst_by_key(rows: t.Iterable[t.Tuple[str, str, str]]) -> t.Dict[Key, str]:
    found: t.Dict[Key, str] = {}
    for host, name, verdict in rows:
        key = (host, name)
        found[key] = min(found.get(key, verdict), verdict, key=rank)
    return found
