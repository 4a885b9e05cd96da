#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vllm_health_info
short_description: Tell a busy vLLM server from a stuck one
version_added: 0.1.0
description:
  - Reads C(/metrics) of one or more vLLM servers and says of each whether it is busy, idle, stuck, dead, starting and so on.
  - A server that shows any sign of work between two reads is answered at once, and no request is sent to it.
  - Only a server with nothing in flight, or one that has been silent for half of O(patience), gets one completion of one token.
  - A server is V(stuck) only if one and the same process showed no sign of life in three or more reads over the whole O(patience)
    and did not answer that request.
  - A sick server is a result, not a failure. The module fails only for wrong options or missing libraries.
author:
  - The fleetcheck authors (@fleetcheck)
requirements:
  - requests >= 2.25
  - prometheus-client >= 0.13
attributes:
  check_mode:
    support: full
    description: Nothing is ever changed. In check mode no request is sent to an engine either, so nothing can be V(stuck).
  diff_mode:
    support: none
    description: Nothing is ever changed.
  platform:
    support: full
    platforms: posix
    description: The systems it runs on. Facts of systemd units need systemd.
options:
  servers:
    description:
      - The servers to check, all at the same time.
      - One server with all defaults if left out.
    type: list
    elements: dict
    default: [{}]
    suboptions:
      url:
        description: Base URL without C(/v1); a root path may follow.
        type: str
        default: http://127.0.0.1:8000
      name:
        description: What to call the server. The unit or the URL if left out.
        type: str
      unit:
        description: The systemd unit that runs the server. Its state and invocation become part of the evidence.
        type: str
      scope:
        description: Whether O(servers[].unit) belongs to the system's or the user's service manager.
        type: str
        choices: [system, user]
        default: system
      kind:
        description:
          - A V(proxy) is only asked for its list of models. Name its backends as servers of their own.
        type: str
        choices: [backend, proxy]
        default: backend
      api_key:
        description: The server's API key. It is sent to O(servers[].url) and nowhere else.
        type: str
      model:
        description: The model to name in the one request that may be sent. The first base model of C(/v1/models) if left out.
        type: str
      patience:
        description: Overrides O(patience) for this server.
        type: float
      startup_grace:
        description: Overrides O(startup_grace) for this server.
        type: float
  patience:
    description:
      - The seconds of silence that prove a hang, 1 or more.
      - It must be longer than the longest single step of the engine, such as the prefill of the longest prompt that is not cut in chunks.
    type: float
    default: 120.0
  startup_grace:
    description:
      - So many seconds after its start a process is never called stuck, and a closed port is V(starting).
    type: float
    default: 900.0
  probe:
    description: Whether the one request may be sent. With V(false) an idle server is not asked, and nothing can become V(stuck).
    type: bool
    default: true
  timeout:
    description: The total deadline of one read in seconds. A busy server may take more than two.
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
  - Runs beside the engine by default. It may run anywhere that can reach the URLs.
  - No proxy is taken from the environment, no redirect is followed, and no more than 32 MiB are read.
"""

EXAMPLES = r"""
- name: Check the server on port 8000 of each host
  fleetcheck.vllm.vllm_health_info:

- name: Check two servers and a proxy before them, all at the same time
  fleetcheck.vllm.vllm_health_info:
    servers:
      - url: http://127.0.0.1:8001
        unit: vllm@chat.service
      - url: http://127.0.0.1:8002
        unit: vllm@embed.service
        patience: 300
      - url: https://llm.example.com
        kind: proxy
        api_key: "{{ vault_llm_api_key }}"
  register: vllm

- name: Say what was seen
  ansible.builtin.debug:
    msg: "{{ vllm.servers | map(attribute='message') }}"
"""

RETURN = r"""
verdict:
  description:
    - The worst verdict of all servers.
    - Worst first these are V(stuck), V(dead), V(unresponsive), V(stalled), V(unknown), V(starting), V(paused), V(sleeping), V(busy),
      V(idle), V(serving).
  returned: success
  type: str
  sample: busy
healthy:
  description: Whether the worst verdict is a healthy one; null where it leaves that open.
  returned: success
  type: bool
  sample: true
counts:
  description: How many servers have each verdict.
  returned: success
  type: dict
  sample: {"busy": 2, "idle": 1}
restarts_paused:
  description: Who keeps automatic restarts away from this host, until when and why; null where nobody does.
  returned: success
  type: str
  sample: "paused by alice until 2026-11-30T06:00:00Z: new driver"
servers:
  description: One entry per server, in the order asked.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: What the server is called.
      returned: success
      type: str
      sample: vllm.service
    url:
      description: Its base URL.
      returned: success
      type: str
      sample: http://127.0.0.1:8000
    unit:
      description: Its systemd unit, where one was given.
      returned: success
      type: str
      sample: vllm.service
    kind:
      description: V(backend) or V(proxy).
      returned: success
      type: str
      sample: backend
    verdict:
      description: The verdict.
      returned: success
      type: str
      sample: busy
    reason:
      description: Why, in one word. Each verdict has reasons of its own.
      returned: success
      type: str
      sample: progress
    healthy:
      description: Whether the server is healthy; null where the verdict leaves that open.
      returned: success
      type: bool
      sample: true
    message:
      description: One sentence with the numbers that decide.
      returned: success
      type: str
      sample: 2 running, 0 waiting, 107 tokens in 0.5 s (214 tokens/s); no request was sent
    engines:
      description: What was seen of each engine behind the server.
      returned: success
      type: list
      elements: dict
      contains:
        engine:
          description: The engine's label.
          returned: success
          type: str
          sample: "0"
        running:
          description: Requests running.
          returned: success
          type: float
          sample: 2.0
        waiting:
          description: Requests waiting.
          returned: success
          type: float
          sample: 0.0
        steps:
          description: Steps of the engine since its start, where exported.
          returned: success
          type: float
          sample: 1059.0
        tokens:
          description: Tokens generated since its start, where exported.
          returned: success
          type: float
          sample: 2116.0
        tokens_per_second:
          description: Tokens generated per second between the last two reads.
          returned: success
          type: float
          sample: 214.0
        kv_cache_usage:
          description: Share of the KV cache in use, 0 to 1.
          returned: success
          type: float
          sample: 0.05
        signs_of_life:
          description: The series that only a working engine moves and that moved.
          returned: success
          type: list
          elements: str
          sample: ["generation_tokens_total", "iteration_tokens_total_count"]
        silent_for:
          description: Seconds from the first to the last read, if nothing moved in between; else 0.
          returned: success
          type: float
          sample: 0.0
    reads:
      description: Good reads of C(/metrics).
      returned: success
      type: int
      sample: 2
    probes:
      description: Requests of one token sent.
      returned: success
      type: int
      sample: 0
    elapsed:
      description: Seconds from the first read to the verdict.
      returned: success
      type: float
      sample: 0.27
    restarted_meanwhile:
      description: Whether the process changed during the check. The verdict is on the new one.
      returned: success
      type: bool
      sample: false
    vllm_version:
      description: What C(/version) says.
      returned: success
      type: str
      sample: 0.32.0
    models:
      description: Names of the served models.
      returned: success
      type: list
      elements: str
      sample: ["llama-70b"]
    process_start_time:
      description: Unix time at which the process started, where exported.
      returned: success
      type: float
      sample: 1795988000.12
    systemd:
      description: Facts of the unit, where one was given. Only RV(servers[].systemd.error) where they cannot be read.
      returned: success
      type: dict
      contains:
        active_state:
          description: Its ActiveState.
          returned: success
          type: str
          sample: active
        sub_state:
          description: Its SubState.
          returned: success
          type: str
          sample: running
        invocation_id:
          description: Its InvocationID.
          returned: success
          type: str
          sample: 5c0ee6c2b5ff4b4e8b1e6f9a6a1c9a52
        main_pid:
          description: Its MainPID.
          returned: success
          type: int
          sample: 4711
        restarts:
          description: Its NRestarts.
          returned: success
          type: int
          sample: 0
        started_at:
          description: When its main process started, UTC.
          returned: success
          type: str
          sample: "2026-11-29T22:00:00Z"
        error:
          description: Why the facts cannot be read.
          returned: when they cannot be read
          type: str
          sample: systemctl did not answer within 5 s
    last_sample:
      description: The numbers of the last good read, for a later step that asks whether the server is still frozen at them.
      returned: success
      type: dict
      sample: {"process_start_time": 1795988000.12, "engines": {"0": {"counters": {}, "running": 2.0, "waiting": 0.0, "kv_cache_usage": 0.05}}}
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import driving, options, results
from ..module_utils.restart import pause


def main() -> None:
    module = AnsibleModule(argument_spec=options.ARGUMENT_SPEC, supports_check_mode=True)
    options.require_libraries(module)
    try:
        names, targets = options.targets(module.params, module.check_mode)
    except options.OptionError as error:
        module.fail_json(msg=str(error))
    judgements = driving.check(targets)
    paused = pause.current(time.time(), pause.user_state())
    report = results.report(names, targets, judgements)
    module.exit_json(changed=False, restarts_paused=paused and str(paused), **report)


if __name__ == "__main__":
    main()
