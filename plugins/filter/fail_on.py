# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdicts that fail a run, checked before anything runs."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils.verdicts import VERDICTS

DOCUMENTATION = r"""
name: fail_on
short_description: The verdicts that fail a run, as a list
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Reads the verdicts in O(_input), given as a list or, as on a command line, joined with commas.
  - Nothing, as in a field of a survey that was left empty, means V(stuck), V(dead) and V(unresponsive).
    The word V(none), and an empty list, mean no verdict at all.
  - A word that is no verdict is an error.
options:
  _input:
    description: Verdicts, as a list or a string.
    type: raw
    required: true
"""

EXAMPLES = r"""
verdicts: "{{ 'stuck, dead' | fleetcheck.vllm.fail_on }}"
"""

RETURN = r"""
_value:
  description: The verdicts.
  type: list
  elements: str
"""


DEFAULT = ("stuck", "dead", "unresponsive")
_RIGHT = f"Give some of {', '.join(VERDICTS)}, as a list or joined with commas, or none."


def fail_on(verdicts: t.Union[str, t.Sequence[str], None]) -> t.List[str]:
    """C(verdicts) as a list of known words. Raises AnsibleFilterError for a word that is no verdict."""
    words = verdicts.split(",") if isinstance(verdicts, str) else verdicts
    if words is None:
        return list(DEFAULT)
    if not isinstance(words, (list, tuple)):
        raise AnsibleFilterError(f"vllm_fail_on is {verdicts!r}: {_RIGHT}")
    chosen = [word for word in (str(word).strip() for word in words) if word]
    if words and not chosen:
        return list(DEFAULT)
    if chosen == ["none"]:
        return []
    wrong = [word for word in chosen if word not in VERDICTS]
    if wrong:
        raise AnsibleFilterError(f"vllm_fail_on: '{', '.join(wrong)}' is no verdict. {_RIGHT}")
    return chosen


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"fail_on": fail_on}
