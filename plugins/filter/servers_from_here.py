# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The servers of many hosts as one list that can be read over the network."""

from __future__ import annotations

import re
import typing as t
import urllib.parse

from ansible.errors import AnsibleFilterError
from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils import options
from ..plugin_utils.numbers import seconds

DOCUMENTATION = r"""
name: servers_from_here
short_description: The servers of many hosts as one list, to be read from the controller
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Puts the servers of all hosts together for one run of M(fleetcheck.vllm.vllm_health_info) on the controller.
  - A URL of the host's own loopback address gets the host's C(ansible_host) instead.
  - Units are left out, as systemd is only to be asked on the host itself.
  - A host whose variables cannot be right, or not be rendered, is left out and named; it must not stop the check of the others.
options:
  _input:
    description: The variables of all hosts, as in the variable C(hostvars).
    type: dict
    required: true
  hosts:
    description: The names of the hosts.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
here: "{{ hostvars | fleetcheck.vllm.servers_from_here(ansible_play_hosts_all) }}"
"""

RETURN = r"""
_value:
  description:
    - C(options) are those of the module. They may hold API keys.
    - C(places) has the host and the unit of each server, in the same order.
    - C(failed) has a sentence for each host that was left out. C(longest) is the longest patience in seconds.
    - C(wrong) has a sentence for each setting that differs between hosts; nothing may be read then.
  type: dict
  sample:
    options: {"servers": [{"url": "http://192.0.2.7:8000", "name": "vllm.service"}], "timeout": 10}
    places: [["gpu-07", "vllm.service"]]
    failed: {}
    wrong: []
    longest: 120
"""

Vars = t.Mapping[str, t.Any]

_TEMPLATE = re.compile(r"\{\{\s*(\w{1,100})")
_LOOPBACK = ("127.0.0.1", "localhost", "::1", "0.0.0.0", "::")
_DEFAULT_URL = "http://127.0.0.1:8000"
# One run of the module has one of each; in every host's own mode each host has its own.
_COMMON = {"probe": True, "timeout": 10, "validate_certs": True, "ca_path": ""}
_THRESHOLDS = {"patience": 120, "startup_grace": 900}


def servers_from_here(hostvars: t.Mapping[str, Vars], hosts: t.Sequence[str]) -> t.Dict[str, t.Any]:
    """One list of servers. What is wrong for all is returned and not raised, as the task that asks hides its errors."""
    entries: t.List[t.Dict[str, t.Any]] = []
    places: t.List[t.Tuple[str, t.Any]] = []
    failed: t.Dict[str, str] = {}
    common: t.Dict[str, t.Dict[str, t.Any]] = {name: {} for name in _COMMON}
    for host in hosts:
        variables = hostvars[host]  # looked up once: each time Ansible puts all variables of the host together
        try:
            servers = _listed(variables.get("vllm_servers", [{}]))
            mine = [_entry(server, variables, host) for server in servers]
            alike = []
            for name, default in _COMMON.items():
                value = variables.get("vllm_check_" + name)
                value = default if _is_omitted(value) else value
                _refuse_template("vllm_check_" + name, value)
                alike.append((name, _alike(name, value), value))
        # A variable that cannot be rendered (an undefined secret, say) raises what that ansible-core raises for it.
        except Exception as error:  # pylint: disable=broad-exception-caught
            failed[host] = "its variables cannot be used: %s" % error
            continue
        for name, spelling, value in alike:
            common[name].setdefault(spelling, value)
        entries += mine
        places += [(host, server.get("unit")) for server in servers]
    wrong = [_differs(name, values) for name, values in common.items() if len(values) > 1]
    values = {name: next(iter(values.values()), _COMMON[name]) for name, values in common.items()}
    return {
        "options": {"servers": entries, **values},
        "wrong": wrong,
        "places": places,
        "failed": failed,
        "longest": max((seconds(entry["patience"]) or 0.0 for entry in entries), default=0.0),
    }


def _listed(servers: t.Any) -> t.Sequence[Vars]:
    right = "read from the controller, the servers must be listed"
    if isinstance(servers, str):
        raise options.OptionError("vllm_servers", _word(servers), right)
    if not isinstance(servers, (list, tuple)) or not servers or not all(isinstance(one, t.Mapping) for one in servers):
        raise options.OptionError("vllm_servers", _shape(servers), right)
    return [{name: value for name, value in server.items() if not _is_omitted(value)} for server in servers]


def _shape(value: t.Any) -> str:
    """What kind of value it is, without what is in it."""
    if not value:
        return "empty"
    if isinstance(value, t.Mapping):
        return "one dictionary"
    return "a list of other things" if isinstance(value, (list, tuple)) else "no list"


def _is_omitted(value: t.Any) -> bool:
    """Whether the module would take it as not given; C(omit) is such a text, since ansible-core 2.19 such an object."""
    return value is None or str(value).startswith(("__omit_place_holder__", "<<Omit>>"))


def _word(text: str) -> str:
    """A short word as it is. A longer text may be a whole list, with keys in it."""
    return text if re.fullmatch(r"\w{1,20}", text) else "(a text)"


def _alike(name: str, value: t.Any) -> str:
    """One text for all spellings that the module takes for the same value."""
    if name in ("probe", "validate_certs"):
        return str(boolean(value, strict=False)).lower()
    number = seconds(value) if name == "timeout" else None
    return str(value or "") if number is None else "%g" % number


def _differs(name: str, values: t.Iterable[str]) -> str:
    return "vllm_check_%s differs between hosts (%s): read from the controller, all hosts must have the same" % (
        name,
        ", ".join(sorted(values)),
    )


def _entry(server: Vars, variables: Vars, host: str) -> t.Dict[str, t.Any]:
    for name, value in {**server, "ansible_host": variables.get("ansible_host", host)}.items():
        _refuse_template(name, value)
    entry = {key: value for key, value in server.items() if key not in ("unit", "scope")}
    unknown = sorted(set(server) - set(options.SERVER_SPEC))
    if unknown:
        raise options.OptionError("vllm_servers", unknown, "a server has %s" % ", ".join(sorted(options.SERVER_SPEC)))
    url = options.base_url("url", str(server.get("url", _DEFAULT_URL)))
    entry["url"] = _reachable(url, str(variables.get("ansible_host", host)))
    entry["name"] = server.get("name") or server.get("unit") or url
    for name, default in _THRESHOLDS.items():
        value = server.get(name, variables.get("vllm_check_" + name, default))
        least = 1.0 if name == "patience" else 0.0
        number = seconds(value)
        if number is None:
            raise options.OptionError(name, value, "it must be a number of seconds, %g or more" % least)
        options.check_seconds(name, number, least)
        entry[name] = value
    key = server.get("api_key")
    options.api_key("api_key", key if key is None else str(key))  # a number becomes text, as the module would have it
    for name in ("kind", "scope"):
        choices = options.SERVER_SPEC[name]["choices"]
        if server.get(name, choices[0]) not in choices:
            raise options.OptionError(name, server[name], "it must be one of %s" % ", ".join(choices))
    return entry


def _refuse_template(name: str, value: t.Any) -> None:
    """Before ansible-core 2.19 a variable that cannot be rendered comes as the text of its template."""
    unknown = None if getattr(value, "__UNSAFE__", False) else _TEMPLATE.search(str(value))
    if unknown:
        # Not the value itself, which may be a key.
        raise AnsibleFilterError("%s needs the variable %s, which is not defined" % (name, unknown.group(1)))


def _reachable(url: str, address: str) -> str:
    parts = urllib.parse.urlsplit(url)
    if parts.hostname not in _LOOPBACK:
        return url
    host = "[%s]" % address if ":" in address else address
    port = "" if parts.port is None else ":%d" % parts.port
    return urllib.parse.urlunsplit(parts._replace(netloc=host + port))


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"servers_from_here": servers_from_here}
