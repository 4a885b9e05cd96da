# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From texts that were read to the parties that can restart a unit. Pure: scripts are fetched by a function."""

from __future__ import annotations

import dataclasses
import typing as t

from ..redacting import shown
from . import crontabs, schedules, shellscan, supervisors, unitfacts
from .parties import Party, Place, Target

_HERE = "(here)"
_WEIGHT = ("restart", "kill", "stop", "start")


@dataclasses.dataclass(frozen=True)
class Source:
    """A file that somebody acts by. `user` is who it belongs to; `active` False where its daemon does not run."""

    path: str
    text: str
    user: str = ""
    active: bool = True
    remark: str = ""


@dataclasses.dataclass(frozen=True)
class Context:
    """The unit that is looked at and what is needed to follow a command. `elsewhere` collects what acts on others."""

    target: Target
    read: shellscan.Reader
    elsewhere: t.List[str] = dataclasses.field(default_factory=list)

    def follow(
        self, command: str, place: str, environment: t.Optional[t.Mapping[str, str]] = None
    ) -> t.List[t.Tuple[shellscan.Hit, t.Tuple[Place, ...]]]:
        """The restarts of this host's unit that a command leads to; those of other hosts are only noted."""
        found = []
        for hit, via in shellscan.follow(command, place, self.target, self.read, environment):
            if hit.remote:
                self.elsewhere.append(f"{hit.place} does that to another host: {hit.place.text}")
            else:
                found.append((hit, via))
        return found


Hits = t.Sequence[t.Tuple[shellscan.Hit, t.Tuple[Place, ...]]]


def party(context: Context, base: Party, hits: Hits) -> t.Optional[Party]:
    """A party with the places where its restarts are written, the weightiest first; None without any."""
    if not hits:
        return None
    ranked = sorted(hits, key=lambda one: (_WEIGHT.index(one[0].action), not one[0].certain))
    first, via = ranked[0]
    setting = context.target.setting_towards(first.unit)
    remark = f"through {first.unit} ({setting})" if setting and first.unit != context.target.unit else ""
    return dataclasses.replace(
        base,
        action=first.action,
        places=tuple(dict.fromkeys(hit.place for hit, _via in ranked)),
        via=base.via + tuple(way for way in via),
        certain=any(hit.certain for hit, _via in ranked),
        remark="; ".join(part for part in (base.remark, remark) if part),
    )


def from_services(
    context: Context,
    runners: t.Sequence[unitfacts.Runner],
    triggers: t.Sequence[unitfacts.Trigger],
    read_unit: t.Callable[[str], str],
) -> t.Iterator[Party]:
    """Services whose commands restart the unit, by the timers and path units that start them or by themselves."""
    for runner in runners:
        if (runner.uid, runner.name) == (context.target.uid, context.target.unit):
            continue
        hits = _hits_of(context, runner, read_unit)
        if not hits:
            continue
        starters = [trigger for trigger in triggers if trigger.service == runner.name]
        bases = [_started_by(trigger, runner, read_unit) for trigger in starters] or [_by_itself(runner)]
        for base in bases:
            found = party(context, base, hits)
            if found:
                yield found


def _hits_of(context: Context, runner: unitfacts.Runner, read_unit: t.Callable[[str], str]) -> Hits:
    environment = dict(runner.environment)
    hits: t.List[t.Tuple[shellscan.Hit, t.Tuple[Place, ...]]] = []
    for command in runner.commands:
        for hit, via in context.follow(command, _HERE, environment):
            here = _in_unit_file(context.target, runner, environment, hit, read_unit)
            if hit.place.file == _HERE:
                hits.append((dataclasses.replace(hit, place=here), via))
            else:
                hits.append((hit, via))
    return hits


def _in_unit_file(
    target: Target,
    runner: unitfacts.Runner,
    environment: t.Mapping[str, str],
    hit: shellscan.Hit,
    read_unit: t.Callable[[str], str],
) -> Place:
    """The line of the unit's file that says what `systemctl show` showed without a line number."""
    for path in runner.files:
        for other in shellscan.scan(read_unit(path), path, target, (), environment).hits:
            if other.action == hit.action:
                return other.place
    return Place(runner.files[0] if runner.files else runner.name, None, hit.place.text)


def _started_by(trigger: unitfacts.Trigger, runner: unitfacts.Runner, read_unit: t.Callable[[str], str]) -> Party:
    settings = ("OnUnitActiveSec", "OnUnitInactiveSec", "OnCalendar", "OnBootSec", "PathChanged", "PathExists")
    files = {path: read_unit(path) for path in trigger.files}
    via = [place for setting in settings for place in unitfacts.written(setting, trigger.files, files)]
    when = schedules.say_every([trigger.every]) if trigger.every else trigger.when
    return Party(
        trigger.kind, trigger.name, "", via=tuple(via[:1]), every=trigger.every, when=shown(when),
        active=trigger.active, service=runner.name,
    )  # fmt: skip


def _by_itself(runner: unitfacts.Runner) -> Party:
    active = runner.active or runner.enabled or bool(runner.started_when)
    when = runner.started_when or ("while it runs" if active else "when somebody starts it")
    return Party("service", runner.name, "", when=shown(when), active=active, service=runner.name)


def from_triggers_of_the_unit(
    target: Target, triggers: t.Sequence[unitfacts.Trigger], read_unit: t.Callable[[str], str]
) -> t.Iterator[Party]:
    """Timers and path units that start the unit itself: it is started again where it was stopped or had ended."""
    for trigger in triggers:
        if trigger.service == target.unit:
            found = _started_by(trigger, unitfacts.Runner(target.unit, None, True, True, (), (), (), ()), read_unit)
            yield dataclasses.replace(found, action="start", places=found.via, via=(), service="")


def from_crontab(context: Context, source: Source, entries: t.Iterable[crontabs.Entry]) -> t.Iterator[Party]:
    """The jobs of one crontab."""
    for entry in entries:
        hits = [_at_line(one, source.path, entry.line) for one in context.follow(entry.command, source.path)]
        user = entry.user or source.user
        when = schedules.say_every([entry.every]) if entry.every else entry.when
        base = Party(
            "cron", f"cron of {shown(user)}" if user else "cron", "", every=entry.every, when=shown(when),
            active=source.active, remark=source.remark, command=entry.command,
        )  # fmt: skip
        found = party(context, base, hits)
        if found:
            own = Place(source.path, entry.line, "")
            yield found if found.places[0].file == source.path else dataclasses.replace(found, via=(own, *found.via))


def _at_line(
    one: t.Tuple[shellscan.Hit, t.Tuple[Place, ...]], path: str, line: int
) -> t.Tuple[shellscan.Hit, t.Tuple[Place, ...]]:
    hit, via = one
    if hit.place.file != path:
        return one
    return dataclasses.replace(hit, place=dataclasses.replace(hit.place, line=line)), via


def from_script(context: Context, source: Source, base: Party) -> t.Iterator[Party]:
    """A file that is run, or read, as a whole: of cron.daily, of at, of logrotate."""
    found = party(context, base, context.follow(source.text, source.path))
    if found:
        yield dataclasses.replace(found, active=source.active and base.active, remark=base.remark or source.remark)


def from_monit(context: Context, source: Source) -> t.Iterator[Party]:
    """The checks of one monit file."""
    for block in supervisors.monit(source.text):
        hits = [
            _at_line(one, source.path, line) for line, command in block.commands for one in context.follow(command, source.path)
        ]
        base = Party(
            "monit", shown(block.name), "", when="when its check fails", active=source.active and block.reacts,
            remark=source.remark,
        )  # fmt: skip
        found = party(context, base, hits)
        if found:
            # monit restarts by stopping and starting: both together are one restart.
            both = {"start", "stop"} <= {hit.action for hit, _via in hits}
            yield dataclasses.replace(found, action="restart") if both else found


def from_supervisord(context: Context, source: Source, is_the_unit: bool) -> t.Iterator[Party]:
    """The programs of one supervisord file. `is_the_unit` says that the unit is supervisord with vLLM inside."""
    for block in supervisors.supervisord(source.text):
        base = Party(
            "supervisord", shown(block.name), "", when="when its program ends", active=source.active,
            remark=source.remark,
        )  # fmt: skip
        if block.runs_vllm and is_the_unit:
            place = Place(source.path, block.line, shown(f"[program:{block.name}]"))
            yield dataclasses.replace(base, action="restart", places=(place,), active=source.active and block.reacts)
            continue
        hits = [
            _at_line(one, source.path, line) for line, command in block.commands for one in context.follow(command, source.path)
        ]
        found = party(context, dataclasses.replace(base, when="while its program runs"), hits)
        if found:
            yield found
