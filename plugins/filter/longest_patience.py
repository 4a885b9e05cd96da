# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a run may watch a silent server."""

from __future__ import annotations

import typing as t

from ..plugin_utils.numbers import seconds

DOCUMENTATION = r"""
name: longest_patience
short_description: The longest patience of any server of some hosts
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Finds the longest time that a check of these hosts may watch a silent server.
  - Reads C(vllm_check_patience) and C(patience) in C(vllm_servers) of each host.
    What is not a number is left out here; the check of that host reports it.
options:
  _input:
    description: The variables of all hosts, as in the variable C(hostvars).
    type: dict
    required: true
  hosts:
    description: The names of the hosts that are checked.
    type: list
    elements: str
    required: true
  default:
    description: The patience in seconds where a host sets none.
    type: float
    default: 120
"""

EXAMPLES = r"""
seconds: "{{ hostvars | fleetcheck.vllm.longest_patience(ansible_play_hosts_all) }}"
"""

RETURN = r"""
_value:
  description: Seconds.
  type: float
"""


def longest_patience(
    hostvars: t.Mapping[str, t.Mapping[str, t.Any]], hosts: t.Iterable[str], default: float = 120.0
) -> float:
    """The longest patience in seconds that any server of C(hosts) is given."""
    return max((seconds for host in hosts for seconds in _of_host(hostvars[host], default)), default=default)


def _of_host(variables: t.Mapping[str, t.Any], default: float) -> t.Iterator[float]:
    given = _variable(variables, "vllm_check_patience")
    general = default if given is None else seconds(given)
    servers = _variable(variables, "vllm_servers")
    if not isinstance(servers, (list, tuple)) or not servers:
        servers = [{}]
    for server in servers:
        own = seconds(_variable(server, "patience")) if isinstance(server, t.Mapping) else None
        longest = general if own is None else own
        if longest is not None:
            yield longest


def _variable(variables: t.Mapping[str, t.Any], name: str) -> t.Any:
    try:
        return variables[name]
    # A variable that cannot be rendered (an undefined secret, say) raises what that ansible-core raises for it.
    except Exception:  # pylint: disable=broad-exception-caught
        return None


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"longest_patience": longest_patience}
