# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a module's parameters to targets: the one place of the core that knows AnsibleModule.

Every error names the option, the value and what would be right; an API key is never shown.
"""

from __future__ import annotations

import os
import typing as t
import urllib.parse

from ansible.module_utils.basic import missing_required_lib

from . import exposition, reading, systemd
from .driving import Target
from .looks import Limits
from .vllm_api import Server

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

SERVER_SPEC: t.Dict[str, t.Any] = {
    "url": {"type": "str", "default": "http://127.0.0.1:8000"},
    "name": {"type": "str"},
    "unit": {"type": "str"},
    "scope": {"type": "str", "choices": ["system", "user"], "default": "system"},
    "kind": {"type": "str", "choices": ["backend", "proxy"], "default": "backend"},
    "api_key": {"type": "str", "no_log": True},
    "model": {"type": "str"},
    "patience": {"type": "float"},
    "startup_grace": {"type": "float"},
}

ARGUMENT_SPEC: t.Dict[str, t.Any] = {
    "servers": {"type": "list", "elements": "dict", "default": [{}], "options": SERVER_SPEC},
    "patience": {"type": "float", "default": 120.0},
    "startup_grace": {"type": "float", "default": 900.0},
    "probe": {"type": "bool", "default": True},
    "timeout": {"type": "float", "default": 10.0},
    "validate_certs": {"type": "bool", "default": True},
    "ca_path": {"type": "path"},
}


_NOT_BASE = ("/v1", "/v1/models", "/v1/completions", "/v1/chat/completions", "/metrics", "/health")

LONGEST = 7 * 24 * 3600.0
"""The most seconds that any option takes."""


class OptionError(ValueError):
    """An option has a value that cannot be right."""

    def __init__(self, option: str, value: object, right: str) -> None:
        super().__init__("%s is %r: %s" % (option, value, right))


def require_libraries(module: "AnsibleModule") -> None:
    """Fail with Ansible's usual words where requests or prometheus_client cannot be imported."""
    for library, error in (
        ("requests", reading.REQUESTS_IMPORT_ERROR),
        ("prometheus-client", exposition.PROMETHEUS_IMPORT_ERROR),
    ):
        if error is not None:
            module.fail_json(msg=missing_required_lib(library), exception=error)


def targets(params: t.Mapping[str, t.Any], check_mode: bool) -> t.Tuple[t.List[str], t.List[Target]]:
    """The names and targets of the servers asked for. Raises OptionError."""
    if not params["servers"]:
        raise OptionError("servers", [], "name at least one server, or leave the option out for http://127.0.0.1:8000")
    check_connection(params)
    rows = [_target("servers[%d]." % at, server, params, check_mode) for at, server in enumerate(params["servers"])]
    return [name for name, _target_ in rows], [target for _name, target in rows]


def check_connection(params: t.Mapping[str, t.Any]) -> None:
    """Raise OptionError where timeout or ca_path cannot be right."""
    check_seconds("timeout", params["timeout"], 0.1)
    if params["ca_path"] is not None and not os.path.exists(params["ca_path"]):
        raise OptionError("ca_path", params["ca_path"], "it must be a file or folder of CA certificates on this host")


def _target(
    where: str, server: t.Mapping[str, t.Any], params: t.Mapping[str, t.Any], check_mode: bool
) -> t.Tuple[str, Target]:
    url = base_url(where + "url", server["url"])
    limits = _limits(where, server, params, check_mode)
    core = Server(
        endpoint=reading.Endpoint(url, api_key(where + "api_key", server["api_key"]), verify(params)),
        timeout=params["timeout"],
        unit=unit_name(where + "unit", server["unit"]),
        scope=server["scope"],
        model=server["model"],
    )
    return server["name"] or server["unit"] or url, Target(core, limits, server["kind"])


def _limits(
    where: str, server: t.Mapping[str, t.Any], params: t.Mapping[str, t.Any], check_mode: bool
) -> Limits:
    def threshold(option: str, least: float) -> float:
        own = server[option] is not None
        value = server[option] if own else params[option]
        check_seconds((where if own else "") + option, value, least)
        return value

    return Limits(threshold("patience", 1.0), threshold("startup_grace", 0.0), params["probe"] and not check_mode)


def check_seconds(option: str, value: float, least: float) -> None:
    """Raise OptionError for a number of seconds that is too small, or larger than a clock can wait for."""
    if not least <= value <= LONGEST:
        raise OptionError(option, value, "it must be a number of seconds, %g or more, and a week at most" % least)


def base_url(option: str, url: str) -> str:
    """The URL without a trailing slash. Raises OptionError where it is no base URL of a server."""
    right = "it must be a base URL such as http://127.0.0.1:8000, without /v1 or /metrics"
    if "@" in url:  # whatever else is wrong with it, a password is not shown
        raise OptionError(option, "(not shown)", "it must not hold a user or password; use api_key for a key")
    try:
        parts = urllib.parse.urlsplit(url)
        port_is_right = parts.port is None or parts.port > 0
    except ValueError:
        raise OptionError(option, url, right) from None
    path = parts.path.rstrip("/")
    fits = parts.scheme in ("http", "https") and parts.hostname and port_is_right
    if not fits or parts.query or parts.fragment or path.endswith(_NOT_BASE) or not url.isprintable() or " " in url:
        raise OptionError(option, url, right)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def unit_name(option: str, unit: t.Optional[str]) -> t.Optional[str]:
    """The name as it is. Raises OptionError where no unit can be named so."""
    if unit is not None and not systemd.UNIT_NAME.fullmatch(unit):
        raise OptionError(option, unit, "it must be the name of a systemd unit, such as vllm.service")
    return unit


def verify(params: t.Mapping[str, t.Any]) -> t.Union[bool, str]:
    """What validate_certs and ca_path mean together, in the terms of requests."""
    return params["validate_certs"] and (params["ca_path"] or True)


def api_key(option: str, key: t.Optional[str]) -> t.Optional[str]:
    """The key as it is. Raises OptionError, without showing it, where no header can hold it."""
    if key is not None and not (key and key.isascii() and key.isprintable()):
        raise OptionError(option, "(not shown)", "it must be printable ASCII text without line breaks")
    return key
