# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a pause mark."""

from __future__ import annotations

import math
import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils.restart import pause
from ..plugin_utils.plain import never_templated

DOCUMENTATION = r"""
name: pause_mark
short_description: The text of the mark that keeps automatic restarts away from a host
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Makes the content of C(pause.json). M(fleetcheck.vllm.vllm_unit_restart) restarts nothing while it is in force.
options:
  _input:
    description: Why. It must not be empty.
    type: str
    required: true
  who:
    description: Who wants the pause.
    type: str
    required: true
  hours:
    description: For how many hours; 0 for a pause without an end.
    type: float
    required: true
  now:
    description: The current time, Unix seconds.
    type: float
    required: true
"""

EXAMPLES = r"""
mark: "{{ 'new driver' | fleetcheck.vllm.pause_mark('alice', 4, now().timestamp()) }}"
"""

RETURN = r"""
_value:
  description: The text.
  type: str
"""


def pause_mark(why: str, who: str, hours: t.Any, now: float) -> str:
    """The text of a mark. Raises AnsibleFilterError where it would say nothing."""
    if not str(why).strip():
        raise AnsibleFilterError("vllm_pause_reason is empty: say why, such as -e vllm_pause_reason='new driver'")
    try:
        length = float(hours)
    except (TypeError, ValueError):
        length = -1.0
    if not 0 <= length <= 24 * 366 or not math.isfinite(length):
        raise AnsibleFilterError("vllm_pause_hours is %r: it must be a number of hours, or 0 for no end" % (hours,))
    until = now + 3600 * length if length else None
    return never_templated(pause.write(str(who) or "somebody", str(why), until))


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"pause_mark": pause_mark}
