#!/usr/bin/python
# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the vLLM servers of a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vllm_servers_info
short_description: Find the vLLM servers of a host
version_added: 0.1.0
description:
  - Finds the vLLM servers of a host from its processes and its systemd units, so that an inventory need be no more than
    a list of hosts.
  - No server is asked anything, and nothing is changed. A server that hangs is found like any other.
  - A server that does not run is found too if systemd means it to run (its unit failed, or is enabled), since a server
    that died must not vanish from the check.
  - Servers in containers are found as far as the unit that starts them (C(podman run), C(docker run), a quadlet) shows it.
  - Values of options and variables that are not named below are not kept. Of an API key only that there is one.
  - As root everything can be read. As another user the sockets and the environment of other users' processes stay in the
    dark; RV(notes) and RV(found[].notes) say so.
attributes:
  check_mode:
    description: Can run in check mode and return the same.
    support: full
  diff_mode:
    description: Nothing is changed, so there is no difference to show.
    support: none
  platform:
    description: What it runs on.
    platforms: linux
    support: full
options: {}
notes:
  - "C(VLLM_PORT) does not set the port of the API: vLLM uses it for its own processes among themselves."
  - The URL never holds the root path, since vLLM answers without it too.
  - A host name or an address on a command line is used only if it is one of the host's own.
seealso:
  - module: fleetcheck.vllm.vllm_health_info
  - module: fleetcheck.vllm.vllm_watchdogs_info
author:
  - The fleetcheck authors (@fleetcheck)
"""

EXAMPLES = r"""
- name: Find the vLLM servers
  fleetcheck.vllm.vllm_servers_info:
  become: true
  register: discovered

- name: Check what was found
  fleetcheck.vllm.vllm_health_info:
    servers: "{{ discovered.servers }}"
  when: discovered.servers | length > 0

- name: Show what stayed in the dark
  ansible.builtin.debug:
    var: discovered.notes
"""

RETURN = r"""
servers:
  description: The servers that can be checked, in the form of the option O(fleetcheck.vllm.vllm_health_info#module:servers).
  returned: always
  type: list
  elements: dict
  contains:
    url:
      description: Base URL, seen from the host itself.
      returned: always
      type: str
      sample: http://127.0.0.1:8000
    name:
      description: The unit, or the URL where no unit runs the server.
      returned: always
      type: str
      sample: vllm.service
    kind:
      description: Always V(backend).
      returned: always
      type: str
      sample: backend
    unit:
      description: The systemd unit.
      returned: if a unit runs it that the connecting user may ask for
      type: str
      sample: vllm.service
    scope:
      description: V(system) or V(user).
      returned: together with the unit
      type: str
      sample: system
found:
  description: Everything that was found, with the evidence, also what cannot be checked.
  returned: always
  type: list
  elements: dict
  contains:
    url:
      description: Base URL, V(null) where there is none.
      returned: always
      type: str
      sample: http://127.0.0.1:8000
    checked:
      description: Whether it is in RV(servers).
      returned: always
      type: bool
      sample: true
    unit:
      description: The systemd unit that runs it.
      returned: always
      type: str
      sample: vllm.service
    scope:
      description: V(system) or V(user).
      returned: always
      type: str
      sample: system
    unit_file:
      description: Where the unit is written.
      returned: always
      type: str
      sample: /etc/systemd/system/vllm.service
    active_state:
      description: As systemd says it.
      returned: always
      type: str
      sample: active
    enabled:
      description: The state of the unit file.
      returned: always
      type: str
      sample: enabled
    running:
      description: Whether there is a process, or systemd says that there is.
      returned: always
      type: bool
      sample: true
    pid:
      description: The server's first process.
      returned: always
      type: int
      sample: 4711
    user:
      description: The user it runs as.
      returned: always
      type: str
      sample: vllm
    host:
      description: The address on the command line or in the configuration file.
      returned: always
      type: str
      sample: 0.0.0.0
    port:
      description: The port on the host.
      returned: always
      type: int
      sample: 8000
    port_from:
      description: Where the port was read, such as V(command line), V(configuration file), V(default), V(listening socket),
        V(published port of podman run) or V(unknown).
      returned: always
      type: str
      sample: command line
    listening:
      description: Whether the server was seen to listen (in a container, on its port inside); V(null) where sockets could not
        be read.
      returned: always
      type: bool
      sample: true
    root_path:
      description: The root path it is told of.
      returned: always
      type: str
      sample: /llm
    tls:
      description: Whether it speaks TLS.
      returned: always
      type: bool
      sample: false
    model:
      description: The model it loads.
      returned: always
      type: str
      sample: meta-llama/Llama-3.1-8B-Instruct
    served_model_names:
      description: The names it serves the model by.
      returned: always
      type: list
      elements: str
      sample: [llama]
    data_parallel_size:
      description: Number of data-parallel engines.
      returned: always
      type: int
      sample: 1
    api_server_count:
      description: Number of API processes, V(null) where the release decides.
      returned: always
      type: int
      sample: 2
    interpreter:
      description: The Python that runs it. It has the libraries that the check needs.
      returned: always
      type: str
      sample: /opt/vllm/bin/python3
    api_key:
      description: Whether it asks for an API key; V(null) where that cannot be ruled out.
      returned: always
      type: bool
      sample: false
    config_file:
      description: The file given with C(--config).
      returned: always
      type: str
      sample: /etc/vllm/config.yaml
    container:
      description: The container it runs in, V(null) for none.
      returned: always
      type: dict
      sample:
        engine: podman
        id: null
        image: docker.io/vllm/vllm-openai:latest
        name: systemd-vllm
    notes:
      description: What an operator should know about this one.
      returned: always
      type: list
      elements: str
      sample: [nothing listens on port 8000 yet]
incomplete:
  description: Whether something could not be read that may have shown more.
  returned: always
  type: bool
  sample: false
notes:
  description: What could not be read, and what else holds for the whole host.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.discovery import finding, results, survey


def main() -> None:
    """Read the host, find, say."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    look = survey.Survey()
    host = look.host()
    module.exit_json(changed=False, **results.result(finding.find(host), host, look.notes))


if __name__ == "__main__":
    main()
