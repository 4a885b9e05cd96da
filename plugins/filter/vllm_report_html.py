# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as one HTML page."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ..plugin_utils.page.document import page
from ..plugin_utils.plain import never_templated

DOCUMENTATION = r"""
name: vllm_report_html
short_description: The report of a fleet as one HTML page
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Renders what P(fleetcheck.vllm.fleet_report#filter) returned as one HTML page that needs no network and no script.
  - What servers and hosts said is text on the page, whatever it holds. No template of Ansible can be in the result.
  - Of a row that tells what was done about a server (C(action), C(action_message), C(verdict_before), C(verdict_after),
    C(seconds_down), C(evidence)) that is shown too.
options:
  _input:
    description: The report.
    type: dict
    required: true
  earlier:
    description: Earlier reports, as P(fleetcheck.vllm.vllm_earlier_reports#lookup) returns them. The last 29 are shown.
    type: dict
"""

EXAMPLES = r"""
page: "{{ vllm_fleet | fleetcheck.vllm.vllm_report_html(lookup('fleetcheck.vllm.vllm_earlier_reports', '/var/www/vllm')) }}"
"""

RETURN = r"""
_value:
  description: The page.
  type: str
"""


def vllm_report_html(fleet: t.Mapping[str, t.Any], earlier: t.Optional[t.Mapping[str, t.Any]] = None) -> str:
    """The page. Raises AnsibleFilterError where C(fleet) is no report."""
    if not isinstance(fleet, t.Mapping) or not isinstance(fleet.get("servers"), (list, tuple)):
        raise AnsibleFilterError(
            "vllm_report_html got no report of a fleet: give it vllm_fleet, which playbooks/check.yml publishes."
        )
    return never_templated(str(page(fleet, earlier)))


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"vllm_report_html": vllm_report_html}
