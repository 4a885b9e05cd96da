# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`podman run …` and `docker run …`: which image, which ports, and what is told to vLLM inside."""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

from . import commandline

# Options of `run` that stand alone. Every other one takes the next word, so a new one that stands alone
# would hide the image; then the image is looked for by its name.
# fmt: off
_ALONE = frozenset(
    (
        "-d", "--detach", "-i", "--interactive", "-t", "--tty", "-it", "-ti", "-itd", "-P", "--publish-all", "--rm",
        "--replace", "--privileged", "--init", "--read-only", "--no-healthcheck", "--no-hosts", "--no-hostname",
        "--oom-kill-disable", "--disable-content-trust", "--tls-verify", "--sig-proxy", "--quiet", "-q", "--systemd",
        "--env-host", "--http-proxy", "--rmi", "--help",
    )
)
# fmt: on
_IMAGE = re.compile(r"vllm", re.IGNORECASE)
_IS_VLLM_IMAGE = re.compile(
    r"(?=.*vllm)(?=.*[/:])[a-z0-9][\w.-]*(?::\d+(?=/))?(?:/[\w.-]+)*(?::[\w.-]+)?(?:@sha256:[0-9a-f]+)?", re.IGNORECASE
).fullmatch
# What follows one of these is a name, however much it looks like an image.
_NAMED_BY = (
    "--name", "-e", "--env", "-l", "--label", "--network", "--net", "-h", "--hostname", "--pod", "-v", "--volume", "--entrypoint"
)  # fmt: skip

Options = t.List[t.Tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class Published:
    """A port of the container made reachable on the host. `host_port` is None where the host picks one."""

    container_port: int
    host_port: t.Optional[int]
    address: t.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Container:
    """What the command that starts a container says."""

    engine: str
    image: str
    name: t.Optional[str] = None
    host_network: bool = False
    pod: t.Optional[str] = None
    published: t.Tuple[Published, ...] = ()
    restart: t.Optional[str] = None
    on_unhealthy: t.Optional[str] = None
    api_key: bool = False
    command: t.Optional[commandline.Command] = None


@dataclasses.dataclass(frozen=True)
class Listed:
    """A running container as `docker ps` lists it."""

    ident: str
    name: str
    image: str
    published: t.Tuple[Published, ...]


def recognise(argv: t.Sequence[str]) -> t.Optional[Container]:
    """The vLLM container that this command starts, or None.

    It is one if its image or its command is vLLM's own.
    """
    for index, word in enumerate(argv[:16]):
        if word.rsplit("/", 1)[-1] in ("podman", "docker", "nerdctl"):
            return _run(word.rsplit("/", 1)[-1], list(argv[index + 1 :]))
    return None


def _run(engine: str, words: t.List[str]) -> t.Optional[Container]:
    if words[:1] == ["container"]:
        words = words[1:]
    while words and words[0].startswith("-"):
        words = words[1:] if "=" in words[0] else words[2:]
    if not words or words[0] != "run":
        return None
    for parts in (_parts, _parts_by_image):
        options, image, inner = parts(words[1:])
        command = _inner_command(options, image, inner) if image else None
        if image and command:
            return _container(engine, options, image, command)
    return None


def _container(engine: str, options: Options, image: str, command: commandline.Command) -> Container:
    return Container(
        engine=engine,
        image=image,
        name=_last(options, "--name"),
        host_network=_last(options, "--network", "--net") == "host",
        pod=_last(options, "--pod"),
        published=tuple(_published(options)),
        restart=_last(options, "--restart"),
        on_unhealthy=_last(options, "--health-on-failure"),
        api_key=any(value.startswith("VLLM_API_KEY") for value in _all(options, "-e", "--env")),
        command=command,
    )


def _parts(words: t.List[str]) -> t.Tuple[Options, t.Optional[str], t.List[str]]:
    options: Options = []
    index = 0
    while index < len(words) and words[index].startswith("-"):
        more, index = _option(words, index)
        options += more
    return options, words[index] if index < len(words) else None, words[index + 1 :]


def _parts_by_image(words: t.List[str]) -> t.Tuple[Options, t.Optional[str], t.List[str]]:
    """The same where a value of several words, which systemd shows without their quotes, hides the image."""
    places = range(len(words))
    image = next((at for at in places if _IS_VLLM_IMAGE(words[at]) and not (at and words[at - 1] in _NAMED_BY)), None)
    if image is None:
        return [], None, []
    options: Options = []
    index = 0
    while index < image:
        more, index = _option(words, index) if words[index].startswith("-") else ([], index + 1)
        options += more
    return options, words[image], words[image + 1 :]


def _option(words: t.Sequence[str], index: int) -> t.Tuple[Options, int]:
    """The option at a place, and where the next word stands."""
    word = words[index]
    name, equals, value = word.partition("=")
    short = re.match(r"(-[pev])(.+)", word)
    if equals and name.startswith("--"):
        return [(name, value)], index + 1
    if word in _ALONE or re.fullmatch(r"-[ditPq]+", word):
        return [(word, "")], index + 1
    if short:
        return [(short.group(1), short.group(2).lstrip("="))], index + 1
    return [(word, text) for text in words[index + 1 : index + 2]], index + 2


def _inner_command(options: Options, image: str, inner: t.List[str]) -> t.Optional[commandline.Command]:
    entrypoint = _last(options, "--entrypoint")
    if entrypoint:
        return commandline.recognise_within(_entry_words(entrypoint) + inner)
    found = commandline.recognise_within(inner)
    if found or not _IMAGE.search(image.rsplit("/", 1)[-1] + image):
        return found
    # The image's own entry point is the server, what follows are its arguments.
    return commandline.Command(tuple(inner))


def _entry_words(text: str) -> t.List[str]:
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    return [str(word) for word in words] if isinstance(words, list) else text.split()


def _all(options: Options, *names: str) -> t.List[str]:
    return [value for name, value in options if name in names]


def _last(options: Options, *names: str) -> t.Optional[str]:
    values = _all(options, *names)
    return values[-1] if values else None


def _published(options: Options) -> t.Iterator[Published]:
    for value in _all(options, "-p", "--publish"):
        yield from publication(value)


def publication(text: str) -> t.Iterator[Published]:
    """The ports of `[[address:]host:]container[/tcp]`, single ones or ranges."""
    text = re.sub(r"/tcp\Z", "", text)
    match = re.fullmatch(r"(?:(?:(\[[0-9a-fA-F:.%]+\]|[^:]*):)?([0-9-]*):)?([0-9-]+)", text)
    if not match:
        return
    inside = _range(match.group(3))
    outside: t.Sequence[t.Optional[int]] = _range(match.group(2) or "") or [None] * len(inside)
    address = (match.group(1) or "").strip("[]") or None
    for container_port, host_port in zip(inside, outside):
        yield Published(container_port, host_port, address)


def _range(text: str) -> t.List[int]:
    match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", text)
    if not match:
        return []
    low = int(match.group(1))
    return list(range(low, min(int(match.group(2) or low), low + 1000) + 1))


def listed(text: str) -> t.List[Listed]:
    """The containers in `docker ps --no-trunc --format '{{json .}}'`, one object a line."""
    found = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and row.get("ID"):
            found.append(_listed(row))
    return found


def _listed(row: t.Dict[str, t.Any]) -> Listed:
    ports: t.List[Published] = []
    for part in str(row.get("Ports") or "").split(","):
        outside, arrow, inside = part.strip().partition("->")
        if arrow:
            outside = re.sub(r"\A:::", "[::]:", outside)
            ports += publication(f"{outside}:{inside}")
    return Listed(str(row["ID"]), str(row.get("Names") or ""), str(row.get("Image") or ""), tuple(ports))
