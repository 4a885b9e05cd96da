# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd itself knows: settings of the unit, units it hangs on, timers and services of the host."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ..discovery import units
from ..redacting import shown
from . import schedules
from .parties import Party, Place

UNIT_SHOWN = (
    "Id,Names,LoadState,ActiveState,SubState,FragmentPath,SourcePath,DropInPaths,Restart,RestartUSec,WatchdogUSec,"
    "RuntimeMaxUSec,StartLimitIntervalUSec,StartLimitBurst,StartLimitAction,PartOf,BindsTo,Requires,Conflicts,"
    "ConflictedBy,StopPropagatedFrom,OnFailureOf,OnSuccessOf,UpheldBy,TriggeredBy,ExecStart"
)
"""The properties of the unit that is looked at."""

_EXEC = ("ExecCondition", "ExecStartPre", "ExecStart", "ExecStartPost", "ExecReload", "ExecStop", "ExecStopPost")
ALL_SHOWN = (
    "Id,ActiveState,UnitFileState,FragmentPath,SourcePath,DropInPaths,Environment,EnvironmentFiles,OnFailureOf,"
    "OnSuccessOf,UpheldBy,OnFailure,OnSuccess,Upholds,Conflicts,PropagatesStopTo,Unit,TimersMonotonic,TimersCalendar,"
    "Paths," + ",".join(_EXEC)
)
"""The properties of every other unit of the host."""

Files = t.Mapping[str, str]
"""The text of unit files by their path."""


@dataclasses.dataclass(frozen=True)
class Trigger:
    """A timer or a path unit that starts a service."""

    name: str
    service: str
    active: bool
    files: t.Tuple[str, ...]
    every: t.Optional[int] = None
    when: str = ""

    @property
    def kind(self) -> str:
        """`timer` or `path`."""
        return self.name.rsplit(".", 1)[-1]


@dataclasses.dataclass(frozen=True)
class Runner:
    """A service of the host, seen as somebody who may restart another."""

    name: str
    uid: t.Optional[int]
    active: bool
    enabled: bool
    files: t.Tuple[str, ...]
    commands: t.Tuple[str, ...]
    environment: t.Tuple[t.Tuple[str, str], ...]
    environment_files: t.Tuple[str, ...]
    started_when: str = ""


@dataclasses.dataclass(frozen=True)
class _Link:
    """A setting of one unit that reaches another. `mine` is written in the unit that is looked at."""

    shown_as: str
    written_as: str
    mine: bool
    action: str
    when: str
    takes_along: bool = False


_LINKS = (
    _Link("PartOf", "PartOf", True, "restart", "when {} is restarted or stopped", True),
    _Link("BindsTo", "BindsTo", True, "stop", "when {} stops, in whatever way", True),
    _Link("Requires", "Requires", True, "restart", "when {} is restarted or stopped", True),
    _Link("StopPropagatedFrom", "PropagatesStopTo", False, "stop", "when {} is stopped", True),
    _Link("StopPropagatedFrom", "StopPropagatedFrom", True, "stop", "when {} is stopped", True),
    _Link("Conflicts", "Conflicts", True, "stop", "when {} is started"),
    _Link("ConflictedBy", "Conflicts", False, "stop", "when {} is started"),
    _Link("OnFailureOf", "OnFailure", False, "start", "when {} fails"),
    _Link("OnSuccessOf", "OnSuccess", False, "start", "when {} ends well"),
    _Link("UpheldBy", "Upholds", False, "start", "whenever it is down while {} runs"),
)
# systemd puts these in by itself, or they only go down with the whole host.
_EVERYWHERE = re.compile(r"\.(?:slice|mount|automount|socket|device|swap)\Z|\Ashutdown\.target\Z")


def files_of(properties: units.Properties) -> t.Tuple[str, ...]:
    """The files a unit is written in: its own, what that was made from, and its drop-ins."""
    paths = [units.first(properties, name) for name in ("FragmentPath", "SourcePath")]
    return tuple(path for path in (*paths, *units.first(properties, "DropInPaths").split()) if path)


def listed(text: str) -> t.List[str]:
    """The units in the output of `systemctl list-unit-files` that can be asked for: no templates, none masked."""
    rows = [line.split() for line in text.splitlines()]
    return [row[0] for row in rows if len(row) > 1 and "@." not in row[0] and not row[1].startswith("masked")]


def blocks(text: str) -> t.Dict[str, units.Properties]:
    """The properties of units by name."""
    return {units.first(block, "Id"): block for block in units.split_units(text) if units.first(block, "Id")}


def takes_along(properties: units.Properties) -> t.Tuple[t.Tuple[str, str], ...]:
    """The units whose restart or stop reaches this one, with the setting."""
    return tuple((name, link.shown_as) for link in _LINKS if link.takes_along for name in _others(properties, link))


def dependencies(properties: units.Properties, files: Files, others: t.Mapping[str, units.Properties]) -> t.List[Party]:
    """The units that take this one along. Several settings towards the same unit are one party.

    `others` are the properties of all units of the host: systemd tells this one's own only of those that are loaded.
    """
    found: t.Dict[str, Party] = {}
    own = units.first(properties, "Id")
    for link in _LINKS:
        names = _others(properties, link)
        if not link.mine:
            names = [*names, *(name for name, block in others.items() if own in units.first(block, link.written_as).split())]
        for name in dict.fromkeys(names):
            paths = files_of(properties) if link.mine else files_of(others.get(name, {}))
            places = tuple(written(link.written_as, paths, files, name if link.mine else own))
            before = found.get(name)
            if before is None:
                found[name] = Party("dependency", name, link.action, places, when=link.when.format(name))
            else:
                found[name] = dataclasses.replace(before, places=tuple(dict.fromkeys(before.places + places)))
    return list(found.values())


def linked(properties: units.Properties, others: t.Mapping[str, units.Properties]) -> t.List[str]:
    """The other units whose files dependencies() needs the text of."""
    own = units.first(properties, "Id")
    names = {name for link in _LINKS for name in _others(properties, link)}
    forward = [link.written_as for link in _LINKS if not link.mine]
    names |= {name for name, block in others.items() if any(own in units.first(block, one).split() for one in forward)}
    return sorted(names)


def _others(properties: units.Properties, link: _Link) -> t.List[str]:
    names = [name for name in units.first(properties, link.shown_as).split() if not _EVERYWHERE.search(name)]
    if link.shown_as == "Requires":
        return [name for name in names if not name.endswith(".target")]
    return names


def written(setting: str, paths: t.Sequence[str], files: Files, naming: t.Optional[str] = None) -> t.Iterator[Place]:
    """Where a setting is written in unit files; with `naming` only where it names that unit."""
    for path in paths:
        for number, line in enumerate(files.get(path, "").split("\n"), 1):
            name, equals, value = line.strip().partition("=")
            if equals and name.strip() == setting and (naming is None or naming in value.split() or "%" in value):
                yield Place(path, number, shown(line))


def own_settings(properties: units.Properties) -> t.Dict[str, t.Any]:
    """What the unit itself says about being started again."""
    burst = units.first(properties, "StartLimitBurst")
    return {
        "restart": units.first(properties, "Restart") or None,
        "restart_delay": schedules.span(units.first(properties, "RestartUSec")),
        "watchdog": schedules.span(units.first(properties, "WatchdogUSec")),
        "lifetime": schedules.span(units.first(properties, "RuntimeMaxUSec")),
        "start_limit_burst": int(burst) if burst.isdigit() else None,
        "start_limit_interval": schedules.span(units.first(properties, "StartLimitIntervalUSec")),
        "start_limit_action": units.first(properties, "StartLimitAction") or None,
    }


def own_parties(properties: units.Properties, files: Files) -> t.List[Party]:
    """systemd as a party, where a setting of the unit makes it end a server that runs."""
    own = own_settings(properties)
    again = own["restart"] not in (None, "no")
    paths = files_of(properties)
    found = []
    places = tuple(written("WatchdogSec", paths, files))
    # systemd shows the one that the process was started with; the last one that is written holds for the next process.
    watchdog = own["watchdog"] or (schedules.span(places[-1].text.partition("=")[2]) if places else None)
    if watchdog:
        found.append(
            Party(
                "watchdog",
                "WatchdogSec",
                "restart" if again and own["restart"] != "on-success" else "kill",
                places,
                every=watchdog,
                when=f"{schedules.say(watchdog)} after its last sign of life to systemd; vLLM never gives one",
                active=own["watchdog"] is not None,
                remark="" if own["watchdog"] else "holds from its next start on",
            )
        )
    if own["lifetime"]:
        found.append(
            Party(
                "lifetime",
                "RuntimeMaxSec",
                "restart" if again and own["restart"] != "on-success" else "stop",
                tuple(written("RuntimeMaxSec", paths, files)),
                every=own["lifetime"],
                when=f"{schedules.say(own['lifetime'])} after its start",
            )
        )
    return found


def triggers(others: t.Mapping[str, units.Properties]) -> t.List[Trigger]:
    """The timers and path units among the units of a host."""
    found = []
    for block in others.values():
        name, service = units.first(block, "Id"), units.first(block, "Unit")
        if not service or not name.endswith((".timer", ".path")):
            continue
        conditions = list(_conditions(block))
        spans = [seconds for _said, seconds in conditions if seconds]
        found.append(
            Trigger(
                name=name,
                service=service,
                active=units.first(block, "ActiveState") == "active",
                files=files_of(block),
                every=min(spans) if spans else None,
                when=", ".join(said for said, _seconds in conditions),
            )
        )
    return found


def _conditions(block: units.Properties) -> t.Iterator[t.Tuple[str, t.Optional[int]]]:
    for value in block.get("TimersMonotonic", ()):
        match = re.match(r"\{ (On\w+?)USec=([^;]*?) ;", value)
        if match:
            repeats = match.group(1) in ("OnUnitActive", "OnUnitInactive")
            yield f"{match.group(1)}Sec={match.group(2)}", schedules.span(match.group(2)) if repeats else None
    for value in block.get("TimersCalendar", ()):
        match = re.match(r"\{ OnCalendar=([^;]*?) ;", value)
        if match:
            yield f"OnCalendar={match.group(1)}", schedules.calendar(match.group(1))
    for value in block.get("Paths", ()):
        match = re.match(r"(\S+) \((\w+)\)", value)
        if match:
            yield f"{match.group(2)}={match.group(1)}", None


def runners(others: t.Mapping[str, units.Properties], uid: t.Optional[int] = None) -> t.List[Runner]:
    """The services among the units of a host."""
    found = []
    for block in others.values():
        name = units.first(block, "Id")
        commands = tuple(
            " ".join(units.command(value)) for kind in _EXEC for value in block.get(kind, ()) if units.command(value)
        )
        if not name.endswith(".service") or not commands:
            continue
        found.append(
            Runner(
                name=name,
                uid=uid,
                active=units.first(block, "ActiveState") in ("active", "activating", "reloading"),
                enabled=units.first(block, "UnitFileState").startswith("enabled"),
                files=files_of(block),
                commands=commands,
                environment=tuple(units.assignments(units.first(block, "Environment"))),
                environment_files=tuple(value.split(" (")[0] for value in block.get("EnvironmentFiles", ()) if value),
                started_when=_started_when(block),
            )
        )
    return found


def _started_when(block: units.Properties) -> str:
    said = []
    for name, words in (("OnFailureOf", "when {} fails"), ("OnSuccessOf", "when {} ends well"), ("UpheldBy", "by {}")):
        said += [words.format(other) for other in units.first(block, name).split()]
    return ", ".join(said)
