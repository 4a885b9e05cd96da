# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pattern that is known to match: a check of no host must not look like a healthy fleet."""

from __future__ import annotations

import typing as t

from ansible import context
from ansible.errors import AnsibleFilterError
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader

DOCUMENTATION = r"""
name: hosts_to_check
short_description: A host pattern, or an error where it matches no host
version_added: 0.1.0
author:
  - The fleetcheck authors (@fleetcheck)
description:
  - Returns the pattern it is given, for C(hosts) of a play.
  - Where no host of the inventory matches it, it is an error. Ansible by itself skips such a play and ends green,
    which a scheduled health check must not do.
  - A C(--syntax-check) reads no inventory and is let pass.
options:
  _input:
    description: The pattern, as a string or a list.
    type: raw
    required: true
  groups:
    description: The groups of the inventory, as in the variable of that name.
    type: dict
    required: true
  limit:
    description: The C(--limit) of the run, as in the variable C(ansible_limit).
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: A play that fails where the group vllm is empty
  hosts: "{{ 'vllm' | fleetcheck.vllm.hosts_to_check(groups, ansible_limit | default('')) }}"
  gather_facts: false
"""

RETURN = r"""
_value:
  description: The pattern, unchanged.
  type: raw
"""


def hosts_to_check(pattern: t.Any, groups: t.Mapping[str, t.Sequence[str]], limit: str = "") -> t.Any:
    """C(pattern) unchanged. Raises AnsibleFilterError where it, narrowed by C(limit), matches no host."""
    if context.CLIARGS.get("syntax") or _matching(pattern, groups, limit):
        return pattern
    narrowed = f" within --limit '{limit}'" if limit else ""
    raise AnsibleFilterError(
        f"no host to check: '{pattern}'{narrowed} matches no host of the inventory."
        " Put your servers' hosts into the group 'vllm' (see inventory/example/hosts),"
        " or name other hosts or groups with -e vllm_hosts=PATTERN."
    )


def _matching(pattern: t.Any, groups: t.Mapping[str, t.Sequence[str]], limit: str) -> t.Sequence[t.Any]:
    inventory = InventoryManager(DataLoader(), parse=False)
    for group, hosts in groups.items():
        inventory.add_group(group)
        for host in hosts:
            inventory.add_host(host, group=group)
    if limit:
        inventory.subset(limit)
    return inventory.get_hosts(pattern)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"hosts_to_check": hosts_to_check}
