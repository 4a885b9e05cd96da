# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a run has to fail, in one sentence."""

from __future__ import annotations

import typing as t

from ..plugin_utils.plain import never_templated, plain

DOCUMENTATION = r"""
name: fleet_alarm
short_description: Why a run of the check has to fail, or nothing
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Names the servers whose verdict fails the run, and the hosts that were not checked.
options:
  _input:
    description: What P(fleetcheck.vllm.fleet_report#filter) returned.
    type: dict
    required: true
  verdicts:
    description: The verdicts that fail a run.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
alarm: "{{ fleet | fleetcheck.vllm.fleet_alarm(['stuck', 'dead']) }}"
"""

RETURN = r"""
_value:
  description: One sentence, or an empty string where nothing has to fail.
  type: str
"""

# A person reads the first few; the table above has them all.
NAMED = 10


def fleet_alarm(fleet: t.Mapping[str, t.Any], verdicts: t.Sequence[str]) -> str:
    """One sentence that names what fails the run; empty where nothing does."""
    alarming = [server for server in fleet["servers"] if _alarming(server, verdicts)]
    if not alarming:
        return ""
    named = ", ".join(map(_named, alarming[:NAMED]))
    more = f" and {len(alarming) - NAMED} more" if len(alarming) > NAMED else ""
    return never_templated(f"{len(alarming)} of {len(fleet['servers'])} need attention: {named}{more}.")


def _alarming(server: t.Mapping[str, t.Any], verdicts: t.Sequence[str]) -> bool:
    return server["verdict"] in verdicts or server.get("action") == "restart_failed" or _not_checked(server)


def _not_checked(server: t.Mapping[str, t.Any]) -> bool:
    return server["name"] == "-"


def _named(server: t.Mapping[str, t.Any]) -> str:
    if _not_checked(server):
        return f"{plain(server['host'], 60)} {plain(server['reason'].replace('_', ' '), 40)}"
    return f"{plain(server['host'], 60)} {plain(server['name'], 60)} {server['verdict']} ({plain(server['reason'], 40)})"


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"fleet_alarm": fleet_alarm}
