# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of an audit: the unit that is looked at, who can restart it, and where that is written."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
import typing as t

SUFFIXES = (".service", ".target", ".timer", ".path", ".socket", ".slice", ".scope", ".mount")


@dataclasses.dataclass(frozen=True)
class Target:
    """The unit that is looked at.

    `through` names the units whose restart or stop takes this one along, with the setting that says so.
    """

    unit: str
    uid: t.Optional[int] = None
    aliases: t.Tuple[str, ...] = ()
    through: t.Tuple[t.Tuple[str, str], ...] = ()
    containers: t.Tuple[str, ...] = ()
    ports: t.Tuple[int, ...] = ()

    @property
    def stem(self) -> str:
        """The name as people write it."""
        return self.unit[: -len(".service")] if self.unit.endswith(".service") else self.unit

    def meant_by(self, word: str) -> t.Optional[str]:
        """The unit that `word` means to systemctl: this one, one that takes it along, or None."""
        if not re.fullmatch(r"[\w@.:\\*?\[\]-]{1,256}", word):
            return None
        pattern = word if word.endswith(SUFFIXES) else word + ".service"
        for name in (self.unit, *self.aliases, *(name for name, _setting in self.through)):
            if fnmatch.fnmatchcase(name, pattern):
                return name
        return None

    def setting_towards(self, unit: str) -> t.Optional[str]:
        """The setting by which `unit` takes this one along."""
        return dict(self.through).get(unit)


@dataclasses.dataclass(frozen=True)
class Place:
    """Where it is written. `line` counts from 1; None where the file is known and the line is not."""

    file: str
    line: t.Optional[int]
    text: str

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclasses.dataclass(frozen=True)
class Party:
    """Somebody that can restart, start, stop or kill the unit.

    `every` counts seconds. `active` is False for what is written but switched off. `service` and `command` are what
    the journal knows it by; a command may hold secrets and is never shown.
    """

    kind: str
    name: str
    action: str
    places: t.Tuple[Place, ...] = ()
    via: t.Tuple[Place, ...] = ()
    every: t.Optional[int] = None
    when: str = ""
    certain: bool = True
    active: bool = True
    remark: str = ""
    service: str = ""
    command: str = ""


KINDS = (
    "timer",
    "cron",
    "at",
    "service",
    "path",
    "watchdog",
    "lifetime",
    "dependency",
    "monit",
    "supervisord",
    "container",
    "autoheal",
    "logrotate",
)
"""The kinds of parties, in the order in which they are listed."""


def ordered(parties: t.Iterable[Party]) -> t.List[Party]:
    """Those that act now first, the most frequent first."""
    return sorted(
        parties,
        key=lambda party: (
            not party.active,
            KINDS.index(party.kind),
            party.every if party.every is not None else 1 << 40,
            party.name,
        ),
    )
