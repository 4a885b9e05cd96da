# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds in the text of a script what restarts a unit. Shell and Python are read alike; nothing is run.

A script cannot be understood by reading alone. What is surely meant for the unit is `certain`; a variable
that stays unknown in a script that names the unit elsewhere is not.
"""

from __future__ import annotations

import dataclasses
import itertools
import os.path
import re
import typing as t

from ..redacting import shown
from .parties import Place, Target

VERBS = {
    "restart": "restart",
    "try-restart": "restart",
    "condrestart": "restart",
    "reload-or-restart": "restart",
    "try-reload-or-restart": "restart",
    "reload-or-try-restart": "restart",
    "force-reload": "restart",
    "start": "start",
    "stop": "stop",
    "kill": "kill",
}
"""What systemctl is told, and what that does to a unit."""

_BUS = {
    "RestartUnit": "restart",
    "TryRestartUnit": "restart",
    "ReloadOrRestartUnit": "restart",
    "ReloadOrTryRestartUnit": "restart",
    "StartUnit": "start",
    "StopUnit": "stop",
    "KillUnit": "kill",
}
_CONTAINER_VERBS = {"restart": "restart", "kill": "kill", "stop": "stop", "start": "start", "rm": "kill"}
_CONTAINER_PROGRAMS = ("docker", "podman", "nerdctl", "docker-compose", "podman-compose")
_WITH_VALUE = (
    "-t", "--type", "-p", "--property", "-P", "-n", "--lines", "-o", "--output", "-s", "--signal", "--job-mode",
    "--kill-whom", "--kill-who", "--root", "--what", "--state", "-M", "--machine",
)  # fmt: skip
_BEFORE_A_COMMAND = ("if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "exec", "-", "@", "+")
_ONLY_SAID = re.compile(
    r"(?:echo|printf|print|cat|grep|egrep|fgrep|logger|notify-send|wall|mail|"
    r"(?:self\.)?_?log(?:ger|ging)?\.\w+|sys\.std(?:out|err)\.write)\Z"
)
_INTO_A_SHELL = re.compile(r"\|\s*(?:sudo\s+)?(?:\S*/)?(?:ba|da|z|k)?sh\b|\|\s*(?:\S*/)?(?:at|batch|xargs|ssh)\b")
_SEPARATORS = re.compile(r"\n|;|&&|\|\||\||(?<![>&0-9])&(?![>&])|`|\$\(")
_ASSIGNMENT = re.compile(
    r"(?:^|[\s;({&])(?:export\s+|local\s+|readonly\s+|declare\s+(?:-\w+\s+)?)?"
    r"([A-Za-z_]\w*)(?:(?::\s*[\w.\[\]]+)?\s*=\s*(?=[\"'\[])|=)"
    r"(\"[^\"]*\"|'[^']*'|\$\([^)]*\)|`[^`]*`|\([^)]*\)|\[[^\]]*\]|[^\s;&|]*)"
)
_LOOP = re.compile(r"\bfor\s+([A-Za-z_]\w*)\s+in\s+([^;:\n]*)")
_VARIABLE = re.compile(r"\$(?:(\w+|[@*])|\{(\w+|[@*])(?:\[[@*\d]+\])?(?::?-([^}]*))?\})")
_OWN_FOLDER = re.compile(r"\$\(\s*dirname\s+(?:--\s+)?\"?\$(?:0|\{?BASH_SOURCE[^)\"]*)\"?\s*\)|\$\{(?:0|BASH_SOURCE)%/\*\}")
_LONGEST_LINE = 4000
_MOST_LINES_OF_A_LIST = 50
# A script that makes its variables of each other could make them grow without end.
_LONGEST_VALUE = 400
_MOST_VALUES = 20
_LONGEST_COMMAND = 200
"""Words of one command that are looked at."""
_LONGEST_RANGE = 64
_MOST_WORDS = 50
"""Words of one command in which the name of a script is looked for."""

Variables = t.Dict[str, t.List[str]]


@dataclasses.dataclass(frozen=True)
class Hit:
    """A line that restarts the unit. `remote` says that another host's unit is meant."""

    place: Place
    action: str
    certain: bool = True
    remote: bool = False
    unit: str = ""


@dataclasses.dataclass(frozen=True)
class Scan:
    """What one script does to the unit, and the files that it may call."""

    hits: t.Tuple[Hit, ...]
    calls: t.Tuple[t.Tuple[str, t.Tuple[str, ...]], ...]


def scan(
    text: str,
    path: str,
    target: Target,
    arguments: t.Sequence[str] = (),
    environment: t.Optional[t.Mapping[str, str]] = None,
) -> Scan:
    """Read a script that is called with these arguments in this environment."""
    variables: Variables = {name: [value] for name, value in (environment or {}).items()}
    variables.update({str(number): [word] for number, word in enumerate(arguments, 1)})
    variables["@"] = variables["*"] = list(arguments)
    names_it = target.stem in text or any(target.stem in word for word in arguments)
    hits: t.List[Hit] = []
    calls: t.List[t.Tuple[str, t.Tuple[str, ...]]] = []
    for number, raw in lines(text):
        line = _OWN_FOLDER.sub(lambda _match: os.path.dirname(path), raw)
        _learn(line, variables)
        reader = _Line(line, target, variables, names_it)
        for action, said, certain, remote, unit in reader.restarts():
            hits.append(Hit(Place(path, number, shown(said)), action, certain, remote, unit))
        calls += _calls(line, path, variables)
    return Scan(tuple(_distinct(hits)), tuple(dict.fromkeys(calls)))


def lines(text: str) -> t.Iterator[t.Tuple[int, str]]:
    """The lines with their numbers, without comments; a backslash at the end joins two, an open list of Python all of it."""
    start, parts = 0, []  # type: int, t.List[str]
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip("\r")
        if not parts:
            start = number
        if line.endswith("\\") and len(parts) < 200:
            parts.append(line[:-1])
            continue
        parts.append(_uncommented(line) if parts else line)
        whole = _uncommented(" ".join(parts))
        if _is_open(whole) and len(parts) < _MOST_LINES_OF_A_LIST:
            continue
        parts = []
        if whole.strip():
            yield start, whole[:_LONGEST_LINE]


def _is_open(line: str) -> bool:
    """Whether a list of Python goes on in the next line. A test of the shell is never left open so."""
    return line.rstrip().endswith(("[", ",")) and line.count("[") > line.count("]")


def _uncommented(line: str) -> str:
    if line.lstrip().startswith("#"):
        return ""
    quote = ""
    for index, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#" and line[index - 1].isspace():
            return line[:index]
    return line


def _distinct(hits: t.Sequence[Hit]) -> t.List[Hit]:
    seen: t.Dict[t.Tuple[t.Optional[int], str], Hit] = {}
    for hit in hits:
        seen.setdefault((hit.place.line, hit.action), hit)
    return list(seen.values())


def _learn(line: str, variables: Variables) -> None:
    for match in _ASSIGNMENT.finditer(line):
        value = match.group(2)
        values = value.strip("()[]").split(",") if value[:1] in "([" else [value]
        words = [word for part in values for word in part.split()] if value[:1] in "([" else values
        variables[match.group(1)] = _all_filled((word.strip("\"'") for word in words), variables)
    for match in _LOOP.finditer(line):
        words = _words(match.group(2))
        # In Python a variable stands there without a sign: for unit in UNITS
        variables[match.group(1)] = _all_filled((value for word in words for value in variables.get(word, [word])), variables)


def _all_filled(words: t.Iterable[str], variables: Variables) -> t.List[str]:
    return list(itertools.islice((filled for word in words for filled in _filled(word, variables)), _MOST_VALUES))


def _filled(word: str, variables: Variables) -> t.List[str]:
    """All that a word may stand for. A variable that is not known stays in it."""
    found, longest = [word], len(word) + _LONGEST_VALUE
    for _round in range(4):
        match = next((m for m in map(_VARIABLE.search, found) if m and _known(m, variables)), None)
        if match is None:
            break
        values = variables.get(match.group(1) or match.group(2)) or [match.group(3) or ""]
        found = [one.replace(match.group(0), value)[:longest] for one in found for value in values][:_MOST_VALUES]
    return found


def _each_of_range(word: str) -> t.List[str]:
    """What the shell makes of `vllm@{1..4}`."""
    match = re.search(r"\{(\d{1,4})\.\.(\d{1,4})\}", word)
    if not match:
        return [word]
    first, last = int(match.group(1)), int(match.group(2))
    return [word.replace(match.group(0), str(number)) for number in range(first, min(last, first + _LONGEST_RANGE) + 1)]


def _known(match: t.Match[str], variables: Variables) -> bool:
    return (match.group(1) or match.group(2)) in variables or match.group(3) is not None


def _words(text: str) -> t.List[str]:
    """The words, whether they stand in a shell command or in a list of strings."""
    return re.sub(r"[\"',()\[\]]", " ", text).split()


def _base(word: str) -> str:
    return re.split(r"[/=]", word)[-1]


Found = t.Tuple[str, str, bool, bool, str]
"""action, what it says, certain, remote, the unit that was named"""


class _Line:
    """One line, read for restarts."""

    def __init__(self, line: str, target: Target, variables: Variables, names_it: bool) -> None:
        self.line = line
        self.target = target
        self.variables = variables
        self.names_it = names_it

    def restarts(self) -> t.Iterator[Found]:
        into_a_shell = _INTO_A_SHELL.search(self.line)
        for segment in _segments(self.line, bool(into_a_shell)):
            words = _words(segment)[:_LONGEST_COMMAND]
            yield from self._systemctl(words)
            yield from self._service(words)
            yield from self._bus(words)
            yield from self._container(words)
            yield from self._named_kill(words)
        yield from self._listed()
        yield from self._kill()

    def _listed(self) -> t.Iterator[Found]:
        """`systemctl restart $(systemctl list-units …)`: which units these are shows only when it runs."""
        match = re.search(r"\bsystemctl\s+(?:-\S+\s+)*([\w-]+)\s+[\"']?(?:\$\(|`)", self.line)
        of_user = match is not None and "--user" in match.group(0)
        if match and match.group(1) in VERBS and self.names_it and of_user == (self.target.uid is not None):
            said = f"systemctl {match.group(1)} (what a command lists)"
            yield VERBS[match.group(1)], said, False, False, self.target.unit

    def _systemctl(self, words: t.List[str]) -> t.Iterator[Found]:
        for index, word in enumerate(words):
            if _base(word) != "systemctl":
                continue
            yield from self._told(words[index + 1 :], _after_ssh(words, index))
            if "xargs" in words[:index]:
                yield from self._told_by_pipe(words[index + 1 :])

    def _told_by_pipe(self, words: t.List[str]) -> t.Iterator[Found]:
        """`… | xargs systemctl restart`: which units these are shows only when it runs."""
        plain = [word for word in words if not word.startswith("-")]
        if self.names_it and len(plain) == 1 and plain[0] in VERBS and ("--user" in words) == (self.target.uid is not None):
            yield VERBS[plain[0]], f"xargs systemctl {plain[0]}", False, False, self.target.unit

    def _told(self, words: t.List[str], remote: bool) -> t.Iterator[Found]:
        plain: t.List[str] = []
        of_user = False
        skip = False
        for word in words:
            if skip:
                skip = False
            elif word.startswith("-"):
                of_user = of_user or word == "--user"
                remote = remote or word.startswith(("-H", "--host"))
                skip = word in _WITH_VALUE or word in ("-H", "--host")
            elif re.match(r"\d?[<>]", word):
                break
            else:
                plain.append(word)
        if not plain or of_user != (self.target.uid is not None):
            return
        verbs = {VERBS.get(verb) for verb in _filled(plain[0], self.variables)} - {None}
        certain = bool(verbs)
        if not verbs and not plain[0].startswith("$"):
            return
        for word in plain[1:]:
            unit, sure = self._unit(word)
            if unit:
                action = sorted(verb for verb in verbs if verb)[0] if verbs else "restart"
                user = " --user" if of_user else ""
                yield action, f"systemctl{user} {plain[0]} {word}", certain and sure, remote, unit

    def _unit(self, word: str) -> t.Tuple[t.Optional[str], bool]:
        candidates = _filled(word, self.variables)
        if word in self.variables:
            candidates = candidates + self.variables[word]
        if re.fullmatch(r"\{\w+\}", word):
            candidates = candidates + self.variables.get(word[1:-1], [])
        for candidate in itertools.chain.from_iterable(map(_each_of_range, candidates)):
            for part in candidate.split() or [candidate]:
                unit = self.target.meant_by(part)
                if unit:
                    return unit, True
        for candidate in candidates:
            loose = re.sub(r"\$\{[^}]*\}|\$\w+|\{\w+\}", "*", candidate)
            if loose != candidate or loose.startswith("$"):
                if loose.strip("*$") and not loose.startswith("$"):
                    unit = self.target.meant_by(loose)
                    return unit, False
                if self.names_it:
                    return self.target.unit, False
        return None, False

    def _service(self, words: t.List[str]) -> t.Iterator[Found]:
        if self.target.uid is not None:
            return
        for index, word in enumerate(words[:-1]):
            remote, rest = _after_ssh(words, index), words[index + 1 :]
            if _base(word) in ("service", "invoke-rc.d", "rc-service") and len(rest) > 1 and rest[1] in VERBS:
                unit, sure = self._unit(rest[0])
                if unit:
                    yield VERBS[rest[1]], f"{_base(word)} {rest[0]} {rest[1]}", sure, remote, unit
            if "/init.d/" in word and rest[0] in VERBS:
                unit, sure = self._unit(_base(word))
                if unit:
                    yield VERBS[rest[0]], f"{word} {rest[0]}", sure, remote, unit

    def _bus(self, words: t.List[str]) -> t.Iterator[Found]:
        for word in words:
            method = word.rsplit(".", 1)[-1]
            if method not in _BUS:
                continue
            for other in words:
                unit = self.target.meant_by(other.rsplit(":", 1)[-1]) if other.endswith(".service") else None
                if unit:
                    yield _BUS[method], f"{method} {unit}", True, False, unit

    def _container(self, words: t.List[str]) -> t.Iterator[Found]:
        names = self.target.containers
        for index, word in enumerate(words):
            if not names or _base(word) not in _CONTAINER_PROGRAMS:
                continue
            rest = [other for other in words[index + 1 :] if other not in ("container", "compose")]
            verb = next((other for other in rest if other in _CONTAINER_VERBS), None)
            for other in rest:
                if verb and any(name in names for name in _filled(other, self.variables)):
                    yield _CONTAINER_VERBS[verb], f"{_base(word)} {verb} {other}", True, False, self.target.unit
            if verb and "xargs" in words[:index] and any(name in self.line for name in names):
                yield _CONTAINER_VERBS[verb], f"xargs {_base(word)} {verb}", False, False, self.target.unit

    def _named_kill(self, words: t.List[str]) -> t.Iterator[Found]:
        for index, word in enumerate(words):
            rest = words[index + 1 :]
            if _base(word) in ("pkill", "killall", "skill") and not _asks_only(rest):
                pattern = " ".join(other for other in rest if not other.startswith("-"))
                pattern = " ".join(_filled(pattern, self.variables)[:1])
                if re.search(r"vllm|api_server", pattern, re.IGNORECASE):
                    yield "kill", " ".join([_base(word), *rest]), True, False, self.target.unit
                elif re.search(r"(?:^|\s)python[\d.]*(?:\s|$)", pattern):
                    yield "kill", " ".join([_base(word), *rest]), False, False, self.target.unit
            if _base(word) == "fuser" and self._fuser_kills(rest):
                yield "kill", " ".join([_base(word), *rest]), True, False, self.target.unit

    def _fuser_kills(self, words: t.Sequence[str]) -> bool:
        kills = any(re.fullmatch(r"-\w*k\w*|--kill", word) for word in words)
        return kills and any(re.match(rf"{port}(?:/tcp)?\Z", word) for word in words for port in self.target.ports)

    def _kill(self) -> t.Iterator[Found]:
        """`kill $(pgrep -f vllm)` and its kin: the command and its prey stand in different parts of the line."""
        kills = re.search(r"(?:^|[\s;|&(/])kill(?:\s|$)|os\.kill(?:pg)?\b", self.line)
        if not kills or re.search(r"kill\s+-0\b", self.line):
            return
        meant = " ".join(_filled(self.line, self.variables)[:5])
        finds = re.search(r"pgrep|pidof|MainPID|\.pid\b|lsof|fuser|\bss\s|ps\s+-?[a-z]", meant)
        ports = any(re.search(rf":{port}\b", meant) for port in self.target.ports)
        if finds and (re.search(r"vllm", meant, re.IGNORECASE) or self.target.stem in meant or ports):
            match = re.search(r"kill\b.*", self.line)
            yield "kill", match.group(0).strip() if match else "kill", False, False, self.target.unit


def _segments(line: str, into_a_shell: bool) -> t.Iterator[str]:
    """The commands of a line, but for those that only say something.

    What stands in quotes may be a command itself (bash -c), unless the whole of it is only said.
    """
    for outer in _outside_quotes(line):
        if into_a_shell or not _only_said(_words(outer)):
            for inner in _SEPARATORS.split(outer):
                if into_a_shell or not _only_said(_words(inner)):
                    yield inner


def _outside_quotes(line: str) -> t.Iterator[str]:
    """The line split at separators outside of quotes; `$(` and a backtick count within double quotes too."""
    start, quote = 0, ""
    found = {match.start(): match for match in _SEPARATORS.finditer(line)}
    for index, character in enumerate(line):
        match = found.get(index)
        if match and (not quote or (quote == '"' and match.group(0) in ("$(", "`"))):
            yield line[start:index]
            start = match.end()
        elif quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
    yield line[start:]


def _only_said(words: t.Sequence[str]) -> bool:
    for word in words:
        if word not in _BEFORE_A_COMMAND:
            return bool(_ONLY_SAID.match(word))
    return True


def _after_ssh(words: t.Sequence[str], index: int) -> bool:
    return "ssh" in words[:index] or any(word.endswith("/ssh") for word in words[:index])


def _asks_only(words: t.Sequence[str]) -> bool:
    """Signal 0 only asks whether the process is there."""
    return "-0" in words or ("-s" in words and "0" in words)


_NO_SCRIPT = re.compile(r"\A/(?:dev|proc|sys|run|tmp)/|\.(?:log|txt|pid|lock|json|ya?ml|conf|env|service|timer|gz|sock)\Z")
_SCRIPT_NAME = re.compile(r"[\w.-]+\.(?:sh|bash|py|pl|rb)\Z")
_FOLDERS = ("/usr/local/bin", "/usr/local/sbin")


def _calls(line: str, path: str, variables: Variables) -> t.Iterator[t.Tuple[str, t.Tuple[str, ...]]]:
    """The files that a line may run, with the words that follow each."""
    for segment in _SEPARATORS.split(line):
        words = [filled for word in _words(segment)[:_MOST_WORDS] for filled in _filled(word, variables)[:1]]
        for index, raw in enumerate(words):
            word = raw.split("=")[-1] if raw.startswith("Exec") else raw
            following = tuple(words[index + 1 : index + 9])
            for candidate in _paths(word, os.path.dirname(path)):
                yield candidate, following


def _paths(word: str, folder: str) -> t.List[str]:
    if word.startswith("/"):
        plain = os.path.normpath(word)
        return [] if _NO_SCRIPT.search(plain) or not re.fullmatch(r"[\w./@+:-]+", plain) else [plain]
    if word.startswith(("./", "../")):
        return [os.path.normpath(os.path.join(folder, word))]
    if _SCRIPT_NAME.match(word):
        return [os.path.join(place, word) for place in (folder, *_FOLDERS)]
    return []


Reader = t.Callable[[str], t.Optional[str]]
"""Gives the text of a script, None for what is none or cannot be read."""


def follow(
    command: str,
    place: str,
    target: Target,
    read: Reader,
    environment: t.Optional[t.Mapping[str, str]] = None,
    depth: int = 2,
) -> t.List[t.Tuple[Hit, t.Tuple[Place, ...]]]:
    """The restarts of a command and of the scripts it calls, each with the way that led there.

    A depth of 2 reads the scripts a command names and those that they name.
    """
    found: t.List[t.Tuple[Hit, t.Tuple[Place, ...]]] = []
    first = scan(command, place, target, (), environment)
    found += [(hit, ()) for hit in first.hits]
    waiting: t.List[t.Tuple[str, t.Tuple[str, ...], t.Tuple[Place, ...], int]] = [
        (call, arguments, (), 1) for call, arguments in first.calls
    ]
    seen: t.Set[str] = set()
    while waiting:
        path, arguments, way, level = waiting.pop(0)
        text = None if path in seen or len(seen) > 60 else read(path)
        seen.add(path)
        if text is None:
            continue
        inner = scan(text, path, target, arguments, environment)
        found += [(hit, way) for hit in inner.hits]
        if level < depth:
            here = (*way, Place(path, None, ""))
            waiting += [(call, words, here, level + 1) for call, words in inner.calls]
    return found
