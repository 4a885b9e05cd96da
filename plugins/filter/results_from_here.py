# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was read of many hosts in one run on the controller, by host."""

from __future__ import annotations

import typing as t

from ..module_utils.verdicts import counts, healthy, worst
from ..plugin_utils.plain import never_templated

DOCUMENTATION = r"""
name: results_from_here
short_description: The results of one run on the controller by host
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Gives each host what M(fleetcheck.vllm.vllm_health_info) would have returned on it.
options:
  _input:
    description: What P(fleetcheck.vllm.servers_from_here#filter) returned.
    type: dict
    required: true
  result:
    description: What the module returned for its options.
    type: dict
    required: true
  healthy_too:
    description: Whether hosts whose servers are all healthy are wanted as well.
    type: bool
    default: true
"""

EXAMPLES = r"""
results: "{{ here | fleetcheck.vllm.results_from_here(result) }}"
"""

RETURN = r"""
_value:
  description: By host, what the module returns. A host that was left out has C(failed) and C(msg).
  type: dict
"""

Row = t.Dict[str, t.Any]


def results_from_here(
    here: t.Mapping[str, t.Any], result: t.Mapping[str, t.Any], healthy_too: bool = True
) -> t.Dict[str, Row]:
    """The results by host. C(from_controller) says where they come from."""
    rows: t.Dict[str, t.List[Row]] = {}
    for (host, unit), row in zip(here["places"], result.get("servers", [])):
        rows.setdefault(host, []).append({**row, "unit": unit})
    results = {host: _host_result(servers) for host, servers in rows.items()}
    if not healthy_too:
        results = {host: row for host, row in results.items() if not row["healthy"]}
    results.update({host: {"failed": True, "msg": why} for host, why in here["failed"].items()})
    return never_templated(results)


def _host_result(servers: t.List[Row]) -> Row:
    words = [server["verdict"] for server in servers]
    verdict = worst(words)
    return {
        "changed": False,
        "from_controller": True,
        "verdict": verdict,
        "healthy": healthy(verdict),
        "counts": counts(words),
        "servers": servers,
    }


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"results_from_here": results_from_here}
