# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers as a party of their own: restart policies, health checks, and the helper called autoheal.

docker and podman start a container again by themselves, beside the systemd unit that runs it.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

from ..discovery import containers
from ..redacting import shown
from .parties import Party, Place

_AUTOHEAL = re.compile(r"autoheal")


@dataclasses.dataclass(frozen=True)
class Inspected:
    """What `docker inspect` or `podman inspect` says of one container."""

    engine: str
    name: str
    image: str
    running: bool
    policy: str
    has_health_check: bool
    on_unhealthy: str
    labels: t.Tuple[str, ...]
    heals: t.Optional[str]


def inspected(engine: str, text: str) -> t.List[Inspected]:
    """The containers in the output of `inspect`."""
    try:
        rows = json.loads(text)
    except ValueError:
        return []
    return [_inspected(engine, row) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _inspected(engine: str, row: t.Dict[str, t.Any]) -> Inspected:
    config, host = _dict(row.get("Config")), _dict(row.get("HostConfig"))
    test = _dict(config.get("Healthcheck")).get("Test")
    image = str(config.get("Image") or row.get("ImageName") or "")
    return Inspected(
        engine=engine,
        name=str(row.get("Name") or "").lstrip("/"),
        image=image,
        running=bool(_dict(row.get("State")).get("Running")),
        policy=str(_dict(host.get("RestartPolicy")).get("Name") or "no"),
        has_health_check=bool(test) and test != ["NONE"],
        on_unhealthy=str(config.get("HealthcheckOnFailureAction") or "none"),
        labels=tuple(str(name) for name, value in _dict(config.get("Labels")).items() if str(value).lower() in ("true", "1")),
        heals=_heals(image, config.get("Env")),
    )


def _heals(image: str, environment: t.Any) -> t.Optional[str]:
    """The label that an autoheal container looks for; `all` for every container with a health check."""
    if not _AUTOHEAL.search(image.rsplit(":", 1)[0]):
        return None
    for pair in environment if isinstance(environment, list) else ():
        name, _equals, value = str(pair).partition("=")
        if name == "AUTOHEAL_CONTAINER_LABEL":
            return value
    return "autoheal"


def _dict(value: t.Any) -> t.Dict[str, t.Any]:
    return value if isinstance(value, dict) else {}


def parties(names: t.Sequence[str], known: t.Sequence[Inspected]) -> t.List[Party]:
    """Who restarts the containers with these names."""
    found: t.List[Party] = []
    for one in known:
        if one.name not in names:
            continue
        place = (Place(f"{one.engine} inspect {shown(one.name)}", None, f"restart policy {shown(one.policy)}"),)
        if one.policy not in ("no", "", "none"):
            when = "when the container ends" + (" with an error" if one.policy == "on-failure" else "")
            found.append(Party("container", f"{one.engine} ({one.policy})", "restart", place, when=when))
        if one.has_health_check and one.on_unhealthy in ("restart", "kill", "stop"):
            found.append(Party("container", f"{one.engine} health check", one.on_unhealthy, place, when="when it is unhealthy"))
        found += _healers(one, known)
    return found


def _healers(one: Inspected, known: t.Sequence[Inspected]) -> t.Iterator[Party]:
    for healer in known:
        if healer.heals is None or not one.has_health_check or healer.engine != one.engine:
            continue
        if healer.heals == "all" or healer.heals in one.labels:
            place = Place(f"{one.engine} inspect {shown(healer.name)}", None, f"looks for {shown(healer.heals)}")
            yield Party("autoheal", shown(healer.name), "restart", (place,), when="when it is unhealthy", active=healer.running)


def written_in_unit(container: containers.Container, files: t.Mapping[str, str]) -> t.List[Party]:
    """What the command or the quadlet of the unit tells the container engine to do by itself."""
    found = []
    if container.restart and container.restart.split(":")[0] not in ("no", "none"):
        name = f"{container.engine} ({shown(container.restart)})"
        places = tuple(_lines(r"--restart[= ]", files))
        found.append(Party("container", name, "restart", places, when="when the container ends"))
    if container.on_unhealthy in ("restart", "kill", "stop"):
        places = tuple(_lines(r"--health-on-failure[= ]|^HealthOnFailure=", files))
        name = f"{container.engine} health check"
        found.append(Party("container", name, container.on_unhealthy, places, when="when it is unhealthy"))
    return found


def _lines(pattern: str, files: t.Mapping[str, str]) -> t.Iterator[Place]:
    for path, text in files.items():
        for number, line in enumerate(text.split("\n"), 1):
            match = re.search(pattern, line)
            if match:
                yield Place(path, number, shown(line[match.start() :].split(" -", 1)[0]))
