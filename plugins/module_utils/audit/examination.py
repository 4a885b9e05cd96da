# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One audit of a host: reads what is the same for all units once, then says of each who can restart it."""

from __future__ import annotations

import dataclasses
import os
import pwd
import typing as t

from .. import bounded
from ..discovery import containers, finding, survey, units
from ..redacting import shown
from . import crontabs, diary, enginefacts, findings, library, matching, unitfacts
from .parties import Party, Target, ordered

_CRON = ("cron.service", "crond.service", "cronie.service", "anacron.service", "fcron.service")
_AT = ("atd.service",)
_MONIT = ("monit.service",)
_TYPES = ("service", "timer", "path", "target")
_SUPERVISORD = ("supervisor.service", "supervisord.service")


@dataclasses.dataclass(frozen=True)
class Asked:
    """A unit to look at. `ports` are those its server listens on."""

    unit: str
    uid: t.Optional[int] = None
    ports: t.Tuple[int, ...] = ()


def discovered() -> t.Tuple[t.List[Asked], t.List[str]]:
    """The units with vLLM servers in them, and what should be said about those without."""
    look = survey.Survey()
    ports: t.Dict[t.Tuple[str, t.Optional[int]], t.List[int]] = {}
    notes = look.notes
    for one in finding.find(look.host()):
        if one.service is None:
            notes.append(f"no unit runs the vLLM server at {one.url or 'an unknown port'}: it was left out")
            continue
        ports.setdefault((one.service.name, one.service.uid), []).extend([one.port] if one.port else [])
    return [Asked(name, uid, tuple(known)) for (name, uid), known in ports.items()], notes


class Examination:
    """Everything of the host that does not depend on the unit, read when it is first needed."""

    def __init__(self, days: int, loading_time: float) -> None:
        self.library = library.Library()
        self.diary = diary.Diary(days, loading_time)
        self.loading_time = loading_time
        self.user_names = survey.user_names()
        self._notes: t.List[str] = []
        self._units: t.Dict[t.Optional[int], t.Dict[str, units.Properties]] = {}
        self._inspected: t.Optional[t.List[enginefacts.Inspected]] = None
        managers = survey.managers(os.geteuid())
        for uid in (None, *managers):
            self._read_manager(uid)
        if os.geteuid() != 0:
            self._notes.append("timers and jobs of other users cannot be read without root")

    @property
    def notes(self) -> t.List[str]:
        """What could not be read."""
        return [*dict.fromkeys([*self._notes, *self.library.notes, *self.diary.notes])]

    def _read_manager(self, uid: t.Optional[int]) -> None:
        whose = "the system" if uid is None else f"the user {self.user_names.get(uid, uid)}"
        listed = survey.systemctl(uid, "list-unit-files", "--no-legend", *(f"--type={name}" for name in _TYPES))
        names = unitfacts.listed(listed.text) if isinstance(listed, bounded.Text) else []
        # The patterns match what is loaded, such as instances of templates; the names also what is not.
        patterns = [f"*.{name}" for name in _TYPES]
        answer = survey.systemctl(uid, "show", "--all", "--property=" + unitfacts.ALL_SHOWN, *patterns, *names[:2000])
        gone = uid is not None and uid not in survey.managers(os.geteuid())
        for reading in (listed, answer):
            # A user's manager ends soon after the last session of the user: then it starts nothing either.
            if isinstance(reading, bounded.Unreadable) and not gone:
                self._notes.append(f"the units of {whose} could not be read: {reading.why}")
        self._units[uid] = unitfacts.blocks(answer.text) if isinstance(answer, bounded.Text) else {}

    def unit(self, asked: Asked) -> t.Dict[str, t.Any]:
        """Who can restart this unit, and who did."""
        properties = self._properties(asked)
        files = {path: self.library.unit_file(path) for path in unitfacts.files_of(properties)}
        target = self._target(asked, properties)
        context = matching.Context(target, self.library.script)
        found = ordered(
            [
                *unitfacts.own_parties(properties, files),
                *self._dependencies(asked, properties, files),
                *self._services(context),
                *self._jobs(context),
                *self._supervisors(context, properties),
                *self._containers(target, properties, files),
            ]
        )
        history = self.diary.history(target, found)
        return self._said(asked, properties, found, history, context.elsewhere)

    def _properties(self, asked: Asked) -> units.Properties:
        answer = survey.systemctl(asked.uid, "show", asked.unit, "--property=" + unitfacts.UNIT_SHOWN)
        if isinstance(answer, bounded.Unreadable):
            self._notes.append(f"{asked.unit} could not be asked for: {answer.why}")
            return {"Id": [asked.unit]}
        blocks = units.split_units(answer.text)
        return blocks[0] if blocks else {"Id": [asked.unit]}

    def _target(self, asked: Asked, properties: units.Properties) -> Target:
        name = units.first(properties, "Id") or asked.unit
        names = [other for other in units.first(properties, "Names").split() if other != name]
        started = [containers.recognise(units.command(value)) for value in properties.get("ExecStart", ())]
        return Target(
            unit=name,
            uid=asked.uid,
            aliases=tuple(names),
            through=unitfacts.takes_along(properties),
            containers=tuple(one.name for one in started if one and one.name),
            ports=asked.ports,
        )

    def _dependencies(self, asked: Asked, properties: units.Properties, files: t.Mapping[str, str]) -> t.List[Party]:
        others = self._units.get(asked.uid, {})
        texts = dict(files)
        for name in unitfacts.linked(properties, others):
            texts.update({path: self.library.unit_file(path) for path in unitfacts.files_of(others.get(name, {}))})
        return unitfacts.dependencies(properties, texts, others)

    def _services(self, context: matching.Context) -> t.Iterator[Party]:
        for uid, others in self._units.items():
            runners, triggers = unitfacts.runners(others, uid), unitfacts.triggers(others)
            yield from matching.from_services(context, runners, triggers, self.library.unit_file)
        own = unitfacts.triggers(self._units.get(context.target.uid, {}))
        yield from matching.from_triggers_of_the_unit(context.target, own, self.library.unit_file)

    def _jobs(self, context: matching.Context) -> t.Iterator[Party]:
        cron, at = self._runs(_CRON), self._runs(_AT)
        for source in self.library.system_crontabs(cron):
            yield from matching.from_crontab(context, source, crontabs.entries(source.text, with_user=True))
        for source in self.library.user_crontabs(cron):
            yield from matching.from_crontab(context, source, crontabs.entries(source.text, with_user=False))
        for source in self.library.anacrontab(cron):
            yield from matching.from_crontab(context, source, crontabs.anacron(source.text))
        for period, source in self.library.periodic(cron):
            base = Party("cron", f"cron.{period}", "", every=crontabs.PERIODS[period], when=period, command=source.path)
            yield from matching.from_script(context, source, base)
        for source in self.library.at_jobs(at):
            due = crontabs.at_time(source.path.rsplit("/", 1)[-1]) or 0
            base = Party("at", source.path.rsplit("/", 1)[-1], "", when=f"once, at {findings.moment(due)}")
            yield from matching.from_script(context, source, base)
        for source in self.library.logrotate():
            name = source.path.rsplit("/", 1)[-1]
            base = Party("logrotate", name, "", when="when it rotates a log", service="logrotate.service")
            yield from matching.from_script(context, source, base)

    def _supervisors(self, context: matching.Context, properties: units.Properties) -> t.Iterator[Party]:
        for source in self.library.monit(self._runs(_MONIT)):
            yield from matching.from_monit(context, source)
        inside = any("supervisord" in value for value in properties.get("ExecStart", ()))
        for source in self.library.supervisord(self._runs(_SUPERVISORD) or inside):
            yield from matching.from_supervisord(context, source, inside)

    def _containers(self, target: Target, properties: units.Properties, files: t.Mapping[str, str]) -> t.Iterator[Party]:
        started = [containers.recognise(units.command(value)) for value in properties.get("ExecStart", ())]
        for container in filter(None, started):
            written = enginefacts.written_in_unit(container, files)
            yield from written
            said = {party.name for party in written}
            for party in enginefacts.parties(target.containers, self._inspect(container.engine)):
                if party.name not in said:
                    yield party

    def _inspect(self, engine: str) -> t.List[enginefacts.Inspected]:
        if self._inspected is None:
            self._inspected = []
            listed = bounded.run([engine, "ps", "--all", "--quiet"])
            answer: bounded.Reading = listed
            if isinstance(listed, bounded.Text) and listed.text.split():
                answer = bounded.run([engine, "inspect", *listed.text.split()[:200]])
            if isinstance(answer, bounded.Unreadable):
                self._notes.append(f"the restart policies of {engine} could not be read: {answer.why}")
            elif answer is not listed:
                self._inspected = enginefacts.inspected(engine, answer.text)
        return self._inspected

    def _runs(self, names: t.Sequence[str]) -> bool:
        system = self._units.get(None, {})
        return any(units.first(system.get(name, {}), "ActiveState") == "active" for name in names)

    def _said(
        self,
        asked: Asked,
        properties: units.Properties,
        found: t.Sequence[Party],
        history: findings.History,
        elsewhere: t.Sequence[str],
    ) -> t.Dict[str, t.Any]:
        missing = units.first(properties, "LoadState") == "not-found"
        notes = [f"systemd knows no unit {asked.unit}"] if missing else []
        notes += [*elsewhere]
        own = unitfacts.own_settings(properties)
        incomplete = bool(self.notes) or bool(history.why_not)
        return {
            "unit": asked.unit,
            "scope": "system" if asked.uid is None else "user",
            "user": None if asked.uid is None else self.user_names.get(asked.uid, str(asked.uid)),
            "active_state": units.first(properties, "ActiveState") or None,
            "parties": [findings.party_data(party) for party in found],
            "count": sum(party.active for party in found),
            "own": own,
            "restarts": [findings.restart_data(restart, asker, history.loading_time) for restart, asker in history.restarts],
            "restart_count": None if history.why_not else len(history.restarts),
            "close_count": None if history.why_not else history.close,
            "journal_begins": None if history.begins is None else findings.moment(history.begins),
            "incomplete": incomplete,
            "notes": [shown(note) for note in notes],
            "summary": shown(findings.sentence(asked.unit, found, history, incomplete, own["restart"]), 600),
        }


def now_asked(options: t.Optional[t.Sequence[t.Mapping[str, t.Any]]]) -> t.Tuple[t.List[Asked], t.List[str]]:
    """The units of the module's option, or those that are found. Raises ValueError for a user that is not known."""
    if options is None:
        return discovered()
    return [
        Asked(option["unit"], _owner(option), tuple(port for port in (option.get("port"),) if port)) for option in options
    ], []


def _owner(option: t.Mapping[str, t.Any]) -> t.Optional[int]:
    if option["scope"] == "system":
        return None
    user = option.get("user")
    if not user:
        return os.geteuid()
    answer = bounded.within(bounded.FILE_TIMEOUT, user, lambda: _number(user))
    if not isinstance(answer, int):
        raise ValueError(f"this host knows no user {shown(str(user), 60)}")
    return answer


def _number(user: str) -> t.Optional[int]:
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None
