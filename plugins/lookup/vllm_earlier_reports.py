# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Earlier reports of the fleet."""

from __future__ import annotations

DOCUMENTATION = r"""
name: vllm_earlier_reports
short_description: Earlier reports of the fleet from a folder
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Reads the JSON files of a folder of the machine that Ansible runs on, as C(vllm_report_file) and the role
    P(fleetcheck.vllm.vllm_report#role) write them.
  - Reads the 30 newest, of at most 8 MiB each. What is no report of this schema is named with the reason, not an error.
options:
  _terms:
    description: The folder. One that does not exist holds no reports.
    type: list
    elements: path
    required: true
"""

EXAMPLES = r"""
earlier: "{{ lookup('fleetcheck.vllm.vllm_earlier_reports', '/var/www/vllm') }}"
"""

RETURN = r"""
_raw:
  description: What was found in each folder.
  type: list
  elements: dict
  contains:
    reports:
      description: The reports, oldest file first, each with C(checked_at) and, of each server, C(host), C(name) and C(verdict).
      type: list
      elements: dict
    left_out:
      description: The files that could not be used, each with C(file) and C(why).
      type: list
      elements: dict
"""

# ansible-test wants them below the documentation, ruff above.
import pathlib  # noqa: E402
import typing as t  # noqa: E402

from ansible.errors import AnsibleLookupError  # noqa: E402
from ansible.plugins.lookup import LookupBase  # noqa: E402

from ..plugin_utils.earlier import earlier_reports  # noqa: E402


class LookupModule(LookupBase):
    """The lookup of this file."""

    def run(
        self, terms: t.Sequence[str], variables: t.Optional[t.Mapping[str, t.Any]] = None, **kwargs: t.Any
    ) -> t.List[t.Dict[str, t.Any]]:
        """What is in each folder."""
        try:
            return [earlier_reports(pathlib.Path(term).expanduser()) for term in terms]
        except OSError as error:
            raise AnsibleLookupError("the folder of earlier reports cannot be read: %s" % error) from error
