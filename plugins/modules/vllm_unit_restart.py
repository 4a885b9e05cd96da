#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vllm_unit_restart
short_description: Restart the unit of a vLLM server that is proven to be stuck
version_added: 0.1.0
description:
  - Restarts one systemd unit, if every guard agrees. All of it happens in one run on the host, so that nothing can come between
    the guards and the restart.
  - The guards are a lock per unit, the unit's invocation as it was judged, the unit that the server's port belongs to, a pause
    mark, a budget of starts by anyone, counted in the journal, the GPUs, and a last look at the server.
  - If a guard says no, nothing is changed, and RV(skipped_because) and RV(message) say why. That is not a failure.
  - Before the restart the state of the hung server is kept on the host.
  - Locks, the pause mark and evidence lie in C(/var/lib/fleetcheck-vllm), for units of a user in C(~/.local/state/fleetcheck-vllm).
  - It returns as soon as systemd has started the unit. Whether the server serves again is for a later look.
author:
  - The fleetcheck authors (@fleetcheck)
requirements:
  - requests >= 2.25
  - prometheus-client >= 0.13
  - systemd
attributes:
  check_mode:
    support: full
    description: The guards are asked, and the module says what it would do. No evidence is kept and nothing is restarted.
  diff_mode:
    support: full
    description: Shows the invocation that goes.
  platform:
    support: full
    platforms: posix
    description: Systems with systemd.
options:
  server:
    description: The server, as it was given to M(fleetcheck.vllm.vllm_health_info). Its O(server.unit) is what is restarted.
    type: dict
    required: true
    suboptions:
      url:
        description: Base URL without C(/v1); a root path may follow.
        type: str
        default: http://127.0.0.1:8000
      name:
        description: What the server is called.
        type: str
      unit:
        description: The systemd unit that runs the server.
        type: str
        required: true
      scope:
        description: Whether O(server.unit) belongs to the system's or the user's service manager.
        type: str
        choices: [system, user]
        default: system
      kind:
        description: Only a V(backend) is ever restarted.
        type: str
        choices: [backend, proxy]
        default: backend
      api_key:
        description: The server's API key.
        type: str
      model:
        description: The model to name in a request.
        type: str
      patience:
        description: Not used here. It may be there since the whole entry of a server can be given.
        type: float
      startup_grace:
        description: Not used here. It may be there since the whole entry of a server can be given.
        type: float
  verdict:
    description: What the server was judged to be. The last look must confirm it.
    type: str
    choices: [stuck, dead, unresponsive]
    default: stuck
  invocation_id:
    description: The unit's InvocationID when it was judged.
    type: str
    required: true
  last_sample:
    description: What M(fleetcheck.vllm.vllm_health_info) returned as C(last_sample). Needed for O(verdict=stuck).
    type: dict
  min_interval:
    description: Seconds that must have passed since the unit's last start, by whomever.
    type: float
    default: 1800.0
  max_starts:
    description: So many starts, by whomever, within O(window), and no more.
    type: int
    default: 2
  window:
    description: Seconds over which the starts are counted.
    type: float
    default: 86400.0
  timeout:
    description: The total deadline of one read in seconds.
    type: float
    default: 10.0
  validate_certs:
    description: Whether TLS certificates are checked.
    type: bool
    default: true
  ca_path:
    description: A file or folder of CA certificates to check them with.
    type: path
"""

EXAMPLES = r"""
- name: Check the server
  fleetcheck.vllm.vllm_health_info:
    servers:
      - unit: vllm.service
  register: vllm

- name: Restart it if it is stuck
  fleetcheck.vllm.vllm_unit_restart:
    server:
      unit: vllm.service
    invocation_id: "{{ vllm.servers[0].systemd.invocation_id }}"
    last_sample: "{{ vllm.servers[0].last_sample }}"
  when: vllm.servers[0].verdict == 'stuck'
"""

RETURN = r"""
skipped_because:
  description:
    - Why nothing was done, in one word; empty where the unit was restarted.
    - One of V(locked), V(restarted_already), V(unit_changing), V(unit_unreadable), V(wrong_unit), V(paused), V(too_soon), V(quarantined),
      V(gpu_lost), V(recovered), V(not_permitted).
  returned: success
  type: str
  sample: too_soon
message:
  description: One sentence for a person.
  returned: success
  type: str
  sample: "vllm.service was left alone: it was started 12 minutes ago, and 30 minutes must lie between two starts"
evidence:
  description: The folder on the host with what was kept of the hung server.
  returned: success
  type: str
  sample: /var/lib/fleetcheck-vllm/evidence/vllm.service-20261129T220000Z
missing_evidence:
  description: What could not be kept, a sentence each.
  returned: success
  type: list
  elements: str
  sample: ["py-spy.txt: no answer in time"]
invocation_id:
  description: The unit's InvocationID after the restart.
  returned: success
  type: str
  sample: 5c0ee6c2b5ff4b4e8b1e6f9a6a1c9a52
active_state:
  description: The unit's ActiveState after the restart.
  returned: success
  type: str
  sample: active
down_since:
  description: Unix time at which the restart began.
  returned: success
  type: float
  sample: 1795988000.12
seconds:
  description: Seconds until systemd had restarted the unit.
  returned: success
  type: float
  sample: 12.4
"""

import dataclasses

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import options, restart_options
from ..module_utils.restart import restarting


def main() -> None:
    module = AnsibleModule(
        argument_spec=restart_options.ARGUMENT_SPEC,
        required_if=[("verdict", "stuck", ["last_sample"])],
        supports_check_mode=True,
    )
    options.require_libraries(module)
    try:
        order = restart_options.order(module.params)
    except options.OptionError as error:
        module.fail_json(msg=str(error))
    outcome = restarting.restart(order, dry_run=module.check_mode)
    diff = restart_options.diff(order, outcome) if outcome.changed else {}
    module.exit_json(diff=diff, **dataclasses.asdict(outcome))


if __name__ == "__main__":
    main()
