#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vllm_pushgateway
short_description: Verdicts on vLLM servers for a Pushgateway
version_added: 0.1.0
description:
  - Pushes the verdicts on the servers of a fleet as metrics to a Pushgateway of Prometheus, one group for each host.
  - A group is named by the job C(vllm_fleetcheck) and the host as C(instance). It is replaced as a whole, and no other one is touched.
  - When a server was last restarted goes to a group of its own, with the job C(vllm_fleetcheck_restarts), where it stays.
author:
  - The fleetcheck authors (@fleetcheck)
requirements:
  - prometheus-client >= 0.13
attributes:
  check_mode:
    support: full
    description: Nothing is pushed in check mode.
  diff_mode:
    support: none
    description: The numbers differ in every run.
  platform:
    support: full
    platforms: posix
    description: The systems it runs on.
options:
  url:
    description: Where the Pushgateway is, such as C(http://pushgateway:9091).
    type: str
    required: true
  username:
    description: The user for HTTP basic authentication.
    type: str
  password:
    description: The password for it.
    type: str
  checked_at:
    description: When the servers were checked, in UTC, as C(2026-11-29T22:00:00Z).
    type: str
    required: true
  servers:
    description: The servers of the fleet, as P(fleetcheck.vllm.vllm_measures#filter) returns them.
    type: list
    elements: dict
    required: true
    suboptions:
      host:
        description: Its host.
        type: str
        required: true
      server:
        description: Its name.
        type: str
        required: true
      verdict:
        description: Its verdict.
        type: str
        choices: [stuck, dead, unresponsive, stalled, unknown, starting, paused, sleeping, busy, idle, serving]
        required: true
      probes:
        description: How many one-token requests the check sent.
        type: int
        default: 0
      action:
        description: What was done about it, V(restarted) or V(restart_failed), or why nothing was. Empty where there was nothing to do.
        type: str
        default: ""
      engines:
        description: What was seen of its engines.
        type: list
        elements: dict
        default: []
        suboptions:
          engine:
            description: The engine's label.
            type: str
            required: true
          silent_for:
            description: Seconds without a sign of life.
            type: float
            default: 0.0
  timeout:
    description: Seconds that one push may take.
    type: float
    default: 10.0
  validate_certs:
    description: Whether TLS certificates are checked.
    type: bool
    default: true
  ca_path:
    description: A file or folder of CA certificates to check them with.
    type: path
notes:
  - No proxy is taken from the environment, and no redirect is followed.
"""

EXAMPLES = r"""
- name: Push the verdicts from the machine that Ansible runs on
  run_once: true
  delegate_to: localhost
  fleetcheck.vllm.vllm_pushgateway:
    url: http://pushgateway:9091
    checked_at: "{{ vllm_fleet.checked_at }}"
    servers: "{{ vllm_fleet | fleetcheck.vllm.vllm_measures }}"
"""

RETURN = r"""
hosts:
  description: The number of hosts whose groups were replaced.
  returned: success
  type: int
  sample: 12
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ..module_utils import metrics, pushing


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "username": {"type": "str"},
            "password": {"type": "str", "no_log": True},
            "checked_at": {"type": "str", "required": True},
            "servers": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": metrics.SERVER_SPEC,
            },
            "timeout": {"type": "float", "default": 10.0},
            "validate_certs": {"type": "bool", "default": True},
            "ca_path": {"type": "path"},
        },
        required_together=[("username", "password")],
        supports_check_mode=True,
    )
    if metrics.PROMETHEUS_IMPORT_ERROR is not None:
        module.fail_json(msg=missing_required_lib("prometheus-client"), exception=metrics.PROMETHEUS_IMPORT_ERROR)
    try:
        checked_at = metrics.unix_time(module.params["checked_at"])
    except ValueError:
        module.fail_json(msg="checked_at is '%s': give UTC like 2026-11-29T22:00:00Z" % module.params["checked_at"])
    by_host: t.Dict[str, t.List[metrics.Measure]] = {}
    for server in module.params["servers"]:
        by_host.setdefault(server["host"], []).append(server)
    if not module.check_mode:
        push(module, by_host, checked_at)
    module.exit_json(changed=bool(by_host), hosts=len(by_host))


def push(module: AnsibleModule, by_host: t.Mapping[str, t.Sequence[metrics.Measure]], checked_at: float) -> None:
    """Push host after host; the first failure ends it, as the next would wait as long."""
    params = module.params
    try:
        gateway = pushing.Gateway(
            params["url"], params["username"], params["password"], params["timeout"], params["validate_certs"], params["ca_path"]
        )
        for done, (host, servers) in enumerate(by_host.items()):
            try:
                gateway.push(host, servers, checked_at)
            except pushing.NotPushed as error:
                module.fail_json(
                    msg="the Pushgateway at %s took the verdicts on %d of %d hosts, then: %s"
                    % (params["url"], done, len(by_host), error)
                )
    except pushing.WrongOption as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
