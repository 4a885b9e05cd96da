# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of a vLLM server: is it one, and what does it say about the endpoint.

Nothing but the facts named in Serving leaves this file: values of other options, among them the keys, are
not kept.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

DEFAULT_PORT = 8000
"""What vLLM listens on where nothing else is said. VLLM_PORT does not change it: that one is for the
processes of a server among themselves."""

_MODULES = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.cli.main", "vllm")
_VLLM = re.compile(r"vllm(?:\[[\w,]+\])?(?:(?:@|==)[\w.]+)?").fullmatch  # uvx names a version
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*[a-z]?\Z")
_PYTHON_MODULE = re.compile(r"-[bBdEiIOPqsSuvx]{0,4}m(.*)", re.DOTALL).fullmatch
_PYTHON_FLAGS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_SHORT = {
    "-dp": "--data-parallel-size",
    "-dpl": "--data-parallel-size-local",
    "-asc": "--api-server-count",
}
_ONE_VALUE = {
    "--port": "port",
    "--host": "host",
    "--uds": "uds",
    "--root-path": "root_path",
    "--ssl-certfile": "ssl_certfile",
    "--model": "model",
    "--data-parallel-size": "data_parallel_size",
    "--data-parallel-size-local": "data_parallel_size_local",
    "--api-server-count": "api_server_count",
    "--config": "config",
}
_SWITCHES = {
    "--headless": "headless",
    "--grpc": "grpc",
    "--data-parallel-multi-port-external-lb": "multi_port",
}
_NUMBERS = ("port", "data_parallel_size", "data_parallel_size_local", "api_server_count")


@dataclasses.dataclass(frozen=True)
class Serving:
    """What a command line or a configuration file says. None, False or () where it is silent."""

    port: t.Optional[int] = None
    host: t.Optional[str] = None
    uds: t.Optional[str] = None
    root_path: t.Optional[str] = None
    tls: bool = False
    model: t.Optional[str] = None
    served_model_names: t.Tuple[str, ...] = ()
    data_parallel_size: t.Optional[int] = None
    data_parallel_size_local: t.Optional[int] = None
    api_server_count: t.Optional[int] = None
    api_key: bool = False
    config: t.Optional[str] = None
    headless: bool = False
    grpc: bool = False
    multi_port: bool = False
    unclear: t.Tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Command:
    """A command line that starts a vLLM server: the interpreter where it is named, and the arguments."""

    arguments: t.Tuple[str, ...]
    interpreter: t.Optional[str] = None
    script: t.Optional[str] = None


def recognise(argv: t.Sequence[str]) -> t.Optional[Command]:
    """The vLLM server that `argv` is, or None.

    `vllm serve …`, `python …/vllm serve …` (what the kernel shows of a script), `python -m
    vllm.entrypoints.openai.api_server …`, `python …/vllm/entrypoints/openai/api_server.py …`.
    """
    if not argv:
        return None
    if _is_vllm_script(argv[0]):
        return _after_serve(argv[1:], None, argv[0])
    if not _PYTHON.match(_base(argv[0])):
        return None
    return _python_program(argv[0], list(argv[1:]))


def recognise_within(argv: t.Sequence[str]) -> t.Optional[Command]:
    """As recognise, but the server may be started by others (`numactl … vllm serve`, `uv run vllm serve`)."""
    for start in range(min(len(argv), 64)):
        found = recognise(argv[start:])
        if found:
            return found
    return None


def _python_program(interpreter: str, rest: t.List[str]) -> t.Optional[Command]:
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        module = _PYTHON_MODULE(flag)
        if module:
            return _module(interpreter, [module.group(1), *rest] if module.group(1) else rest)
        if flag in ("-c", "--"):
            return None
        if flag in _PYTHON_FLAGS_WITH_VALUE and rest:
            rest.pop(0)
    if not rest:
        return None
    if _is_vllm_script(rest[0]):
        return _after_serve(rest[1:], interpreter, rest[0])
    if rest[0].endswith("vllm/entrypoints/openai/api_server.py"):
        return Command(tuple(rest[1:]), interpreter, rest[0])
    return None


def _module(interpreter: str, rest: t.List[str]) -> t.Optional[Command]:
    if not rest or rest[0] not in _MODULES:
        return None
    if rest[0].endswith(".api_server"):
        return Command(tuple(rest[1:]), interpreter)
    return _after_serve(rest[1:], interpreter, None)


def _after_serve(rest: t.Sequence[str], interpreter: t.Optional[str], script: t.Optional[str]) -> t.Optional[Command]:
    if not rest or rest[0] != "serve":
        return None
    return Command(tuple(rest[1:]), interpreter, script)


def _is_vllm_script(word: str) -> bool:
    return _VLLM(_base(word)) is not None


def _base(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def read_arguments(arguments: t.Sequence[str]) -> Serving:
    """What the arguments after `serve` say; as in vLLM, a later one wins, and `_` may stand for `-`."""
    said: t.Dict[str, t.Any] = {}
    unclear: t.List[str] = []
    words = list(arguments)
    if words and not words[0].startswith("-"):
        said["model"] = words[0]
    for index, word in enumerate(words):
        option, value = _split(word)
        following = words[index + 1 :]
        if option in _ONE_VALUE:
            _keep(said, unclear, _ONE_VALUE[option], value if value is not None else _first(following))
        elif option == "--served-model-name":
            said["served_model_names"] = (value,) if value is not None else _until_option(following)
        elif option == "--api-key":
            said["api_key"] = True
        elif option in _SWITCHES:
            said[_SWITCHES[option]] = True
    return _serving(said, unclear)


def read_configuration(text: str) -> Serving:
    """What a file given with `--config` says: the simple `key: value` lines (and lists) of a YAML file.

    The target has no YAML library, and no more is needed: vLLM takes only the long names of options there.
    """
    words: t.List[str] = []
    for key, values in _yaml_pairs(text):
        option = "--" + key
        if _split(option)[0] in _SWITCHES:
            words += [option] if values == ["true"] else []
        elif values != [""]:
            words += [option, *values]
    return read_arguments(words)


def over(first: Serving, second: Serving) -> Serving:
    """`first` where it says something, else `second`: the command line goes before the file."""
    merged = {}
    for field in dataclasses.fields(Serving):
        own = getattr(first, field.name)
        merged[field.name] = own if own not in (None, False, ()) else getattr(second, field.name)
    merged["unclear"] = first.unclear + second.unclear
    return Serving(**merged)


def _split(word: str) -> t.Tuple[str, t.Optional[str]]:
    if not word.startswith("-"):
        return "", None
    option, equals, value = word.partition("=")
    if option.startswith("--"):
        option = "--" + option[2:].replace("_", "-")
    return _SHORT.get(option, option), value if equals else None


def _first(words: t.Sequence[str]) -> t.Optional[str]:
    return words[0] if words else None


def _until_option(words: t.Sequence[str]) -> t.Tuple[str, ...]:
    taken: t.List[str] = []
    for word in words:
        if word.startswith("-"):
            break
        taken.append(word)
    return tuple(taken)


def _keep(said: t.Dict[str, t.Any], unclear: t.List[str], name: str, value: t.Optional[str]) -> None:
    if value is None:
        return
    if name in _NUMBERS:
        if not re.fullmatch(r"[0-9]{1,5}", value):
            unclear.append(name)
            return
        said[name] = int(value)
    elif name == "ssl_certfile":
        said["tls"] = True
    else:
        said[name] = value


def _serving(said: t.Dict[str, t.Any], unclear: t.List[str]) -> Serving:
    port = said.get("port")
    if port is not None and not 0 < port < 65536:
        del said["port"]
        unclear.append("port")
    return Serving(**said, unclear=tuple(unclear))


def _yaml_pairs(text: str) -> t.Iterator[t.Tuple[str, t.List[str]]]:
    key: t.Optional[str] = None
    values: t.List[str] = []
    for line in text.splitlines():
        item = re.match(r"\s*-\s+(.*)", line)
        pair = re.match(r"([A-Za-z][\w-]*)\s*:(?:\s+(.*))?\Z", line)
        if pair:
            if key is not None:
                yield key, values or [""]
            key, values = pair.group(1), _yaml_values(pair.group(2) or "")
        elif item and key is not None:
            values = values + _yaml_values(item.group(1))
    if key is not None:
        yield key, values or [""]


def _yaml_values(text: str) -> t.List[str]:
    text = text.strip()
    if text.startswith("["):
        return [_yaml_scalar(part) for part in text.strip("[] ").split(",") if part.strip()]
    value = _yaml_scalar(text)
    return [value] if value else []


def _yaml_scalar(text: str) -> str:
    text = text.strip()
    quoted = re.match(r"([\"'])(.*?)\1", text)
    if quoted:
        return quoted.group(2)
    return re.sub(r"(?:^|\s)#.*", "", text).strip()
