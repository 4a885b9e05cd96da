# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of a host's servers, for the audit."""

from __future__ import annotations

import typing as t
from urllib.parse import urlsplit

DOCUMENTATION = r"""
name: units_to_audit
short_description: The units of a list of vLLM servers, as the audit takes them
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Takes the variable C(vllm_servers) and returns the option O(fleetcheck.vllm.vllm_watchdogs_info#module:units).
  - The list is empty where no server names a unit, or where C(vllm_servers) is no list; then the audit finds the units itself.
options:
  _input:
    description: The servers.
    type: raw
    required: true
  user:
    description: The user that the connection logs in as, whose units those with C(scope=user) are.
    type: str
    default: ""
"""

EXAMPLES = r"""
units: "{{ vllm_servers | fleetcheck.vllm.units_to_audit(ansible_user) | default(omit, true) }}"
"""

RETURN = r"""
_value:
  description: The units, each once.
  type: list
  elements: dict
  sample:
    - unit: vllm.service
      scope: system
      port: 8000
"""


def units_to_audit(servers: t.Any, user: str = "") -> t.List[t.Dict[str, t.Any]]:
    """One dictionary for each unit that `servers` names."""
    found: t.Dict[t.Tuple[str, str], t.Dict[str, t.Any]] = {}
    for server in servers if isinstance(servers, (list, tuple)) else ():
        if not isinstance(server, t.Mapping) or not server.get("unit"):
            continue
        scope = str(server.get("scope") or "system")
        unit = {"unit": str(server["unit"]), "scope": scope}
        if scope == "user" and user:
            unit["user"] = str(user)
        port = _port(server.get("url"))
        found.setdefault((unit["unit"], scope), {**unit, "port": port} if port else unit)
    return list(found.values())


def _port(url: t.Any) -> t.Optional[int]:
    try:
        return urlsplit(str(url)).port if url else 8000
    except ValueError:
        return None


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"units_to_audit": units_to_audit}
