# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of `systemctl show` for services, and how systemd's own way of writing commands is read."""

from __future__ import annotations

import dataclasses
import re
import shlex
import typing as t

Properties = t.Dict[str, t.List[str]]
"""The properties of one unit; those of commands come several times."""


@dataclasses.dataclass(frozen=True)
class Service:
    """One service as systemd knows it. `uid` is the owner of a user's service manager, None for the system's."""

    name: str
    uid: t.Optional[int] = None
    active_state: str = ""
    unit_file_state: str = ""
    main_pid: int = 0
    commands: t.Tuple[t.Tuple[str, ...], ...] = ()
    environment: t.Tuple[t.Tuple[str, str], ...] = ()
    environment_files: t.Tuple[str, ...] = ()
    fragment: str = ""
    source: str = ""

    @property
    def scope(self) -> str:
        """`system` or `user`, as in the option of that name."""
        return "system" if self.uid is None else "user"

    @property
    def running(self) -> bool:
        """Whether systemd has it up or is bringing it up or down."""
        return self.active_state in ("active", "activating", "deactivating", "reloading")

    @property
    def wanted(self) -> bool:
        """Whether somebody means it to run: it failed, or it is enabled at boot."""
        return self.active_state == "failed" or self.unit_file_state in ("enabled", "enabled-runtime", "generated")


SHOWN = "Id,LoadState,ActiveState,UnitFileState,MainPID,ExecStart,Environment,EnvironmentFiles,FragmentPath,SourcePath"
"""The properties that services() needs."""


def split_units(text: str) -> t.List[Properties]:
    """The blocks of `systemctl show UNIT UNIT …`, which an empty line separates."""
    blocks: t.List[Properties] = []
    current: Properties = {}
    for line in text.splitlines() + [""]:
        name, equals, value = line.partition("=")
        if equals and re.fullmatch(r"[A-Za-z0-9]+", name):
            current.setdefault(name, []).append(value)
        elif not line and current:
            blocks.append(current)
            current = {}
    return blocks


def first(properties: Properties, name: str) -> str:
    """The value of a property, empty where there is none."""
    return properties.get(name, [""])[0]


def services(text: str, uid: t.Optional[int] = None) -> t.List[Service]:
    """The services in the output of `systemctl show`."""
    return [_service(block, uid) for block in split_units(text) if first(block, "Id").endswith(".service")]


def _service(block: Properties, uid: t.Optional[int]) -> Service:
    pid = first(block, "MainPID")
    return Service(
        name=first(block, "Id"),
        uid=uid,
        active_state=first(block, "ActiveState"),
        unit_file_state=first(block, "UnitFileState"),
        main_pid=int(pid) if pid.isdigit() else 0,
        commands=tuple(command(value) for value in block.get("ExecStart", ())),
        environment=tuple(assignments(first(block, "Environment"))),
        environment_files=tuple(value.split(" (")[0] for value in block.get("EnvironmentFiles", ()) if value),
        fragment=first(block, "FragmentPath"),
        source=first(block, "SourcePath"),
    )


def command(value: str) -> t.Tuple[str, ...]:
    """The words of `{ path=… ; argv[]=… ; ignore_errors=no ; … }`.

    systemd joins them with single spaces and leaves the quotes out, so an argument with a space in it falls
    apart here: good enough to recognise a server by.
    """
    match = re.search(r"argv\[\]=(.*?) ; ignore_errors=", value)
    return tuple(match.group(1).split()) if match else ()


def assignments(value: str) -> t.Iterator[t.Tuple[str, str]]:
    """The pairs of `Environment=A=b "C=d e"`."""
    for word in words(value):
        name, equals, text = word.partition("=")
        if equals:
            yield name, text


def environment_file(text: str) -> t.Iterator[t.Tuple[str, str]]:
    """The pairs of a file named by EnvironmentFile=."""
    for line in text.splitlines():
        if re.match(r"\s*[A-Za-z_]\w*=", line):
            yield from assignments(line.strip())


def expanded(argv: t.Sequence[str], environment: t.Mapping[str, str]) -> t.Tuple[str, ...]:
    """The command with `${NAME}` and `$NAME` put in, and `$$` as `$`, as systemd does it; an unknown one stays as it is."""
    result: t.List[str] = []
    for word in argv:
        alone = re.fullmatch(r"\$(\w+)", word)
        if alone and alone.group(1) in environment:
            result += environment[alone.group(1)].split()
        else:
            result.append(re.sub(r"\$\$|\$\{(\w+)\}", lambda m: _put(m, environment), word))
    return tuple(result)


def _put(match: t.Match[str], environment: t.Mapping[str, str]) -> str:
    return environment.get(match.group(1), match.group(0)) if match.group(1) else "$"


def words(text: str) -> t.List[str]:
    """The words of a line with quotes; of one with a quote too many, what stands between the spaces."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
