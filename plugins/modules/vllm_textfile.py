#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vllm_textfile
short_description: Verdicts on vLLM servers for node_exporter's textfile collector
version_added: 0.1.0
description:
  - Writes the verdicts on the servers of a host as metrics into the folder that node_exporter's textfile collector reads.
  - The file appears whole or not at all, and everybody may read it.
  - When a server was last restarted is kept from the file that was there before.
author:
  - The fleetcheck authors (@fleetcheck)
requirements:
  - prometheus-client >= 0.13
attributes:
  check_mode:
    support: full
    description: Nothing is written in check mode.
  diff_mode:
    support: none
    description: The numbers differ in every run.
  platform:
    support: full
    platforms: posix
    description: The systems it runs on.
options:
  directory:
    description: The folder, as in C(--collector.textfile.directory) of node_exporter. It must exist.
    type: path
    required: true
  checked_at:
    description: When the servers were checked, in UTC, as C(2026-11-29T22:00:00Z).
    type: str
    required: true
  servers:
    description: The servers of this host, as P(fleetcheck.vllm.vllm_measures#filter) returns them.
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
"""

EXAMPLES = r"""
- name: Let node_exporter tell of the verdicts
  fleetcheck.vllm.vllm_textfile:
    directory: /var/lib/prometheus/node-exporter
    checked_at: "{{ vllm_fleet.checked_at }}"
    servers: "{{ vllm_fleet | fleetcheck.vllm.vllm_measures | selectattr('host', 'equalto', inventory_hostname) }}"
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
  sample: /var/lib/prometheus/node-exporter/vllm_fleetcheck.prom
"""

import contextlib
import os
import tempfile
import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ..module_utils import metrics

FILE = "vllm_fleetcheck.prom"
MOST_BYTES = 4 * 1024 * 1024


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "checked_at": {"type": "str", "required": True},
            "servers": {"type": "list", "elements": "dict", "required": True, "options": metrics.SERVER_SPEC},
        },
        supports_check_mode=True,
    )
    if metrics.PROMETHEUS_IMPORT_ERROR is not None:
        module.fail_json(msg=missing_required_lib("prometheus-client"), exception=metrics.PROMETHEUS_IMPORT_ERROR)
    directory, servers = module.params["directory"], module.params["servers"]
    if not os.path.isdir(directory):
        module.fail_json(
            msg="directory is '%s', which is no folder of this host: name the one that node_exporter reads" % directory
        )
    try:
        checked_at = metrics.unix_time(module.params["checked_at"])
    except ValueError:
        module.fail_json(msg="checked_at is '%s': give UTC like 2026-11-29T22:00:00Z" % module.params["checked_at"])
    path = os.path.join(directory, FILE)
    before = read(path)
    text = render(servers, checked_at, before)
    try:
        if not module.check_mode:
            write(path, text)
    except OSError as error:
        module.fail_json(msg="%s cannot be written: %s" % (path, error.strerror))
    module.exit_json(changed=text != before, path=path)


def render(servers: t.Sequence[metrics.Measure], checked_at: float, before: bytes) -> bytes:
    """The text of the metrics. before: the text of the last run, or nothing."""
    restarts = metrics.earlier_restarts(before.decode("utf-8", "replace"), servers)
    restarts.update(metrics.restarts_of(servers, checked_at))
    return metrics.text_of(metrics.of_restarts(restarts, metrics.of_check(servers, checked_at)))


def read(path: str) -> bytes:
    """What is there; nothing where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""


def write(path: str, text: bytes) -> None:
    """Put the text in place of the file in one step: the collector reads whenever it likes."""
    # The collector takes files named *.prom only.
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix="." + FILE + ".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


if __name__ == "__main__":
    main()
