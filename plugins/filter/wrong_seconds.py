# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say which setting is no number of seconds, and what it should be."""

from __future__ import annotations

import typing as t

from ..plugin_utils.numbers import seconds
from ..plugin_utils.plain import never_templated, plain

DOCUMENTATION = r"""
name: wrong_seconds
short_description: Which of some settings is no number of seconds
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Names the settings that are no number of seconds, with what they are and what is right.
  - Text that is a number, as it comes from a command line or a survey, is right.
options:
  _input:
    description: The settings by name.
    type: dict
    required: true
"""

EXAMPLES = r"""
wrong: "{{ {'vllm_check_patience': vllm_check_patience} | fleetcheck.vllm.wrong_seconds }}"
"""

RETURN = r"""
_value:
  description: One sentence, or an empty string where all are numbers.
  type: str
"""


def wrong_seconds(settings: t.Mapping[str, t.Any]) -> str:
    """One sentence that names the settings which are no number; empty where all are."""
    wrong = [f"{name} is '{plain(value, 40)}'" for name, value in settings.items() if seconds(value) is None]
    return never_templated(f"{', '.join(wrong)}: give a number of seconds, like 120." if wrong else "")


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"wrong_seconds": wrong_seconds}
