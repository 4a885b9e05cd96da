#!/usr/bin/python
# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find everybody that can restart a vLLM unit."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vllm_watchdogs_info
short_description: Find everybody that can restart a vLLM unit
version_added: 0.1.0
description:
  - Finds, for each unit that runs a vLLM server, every other party on the host that can restart, start, stop or kill it, and
    where that is written.
  - "Looked at are: systemd timers and path units and the services they start, other services, cron and at (of the system and of
    users), units that take this one along (C(PartOf), C(BindsTo), C(Requires), C(Conflicts), C(OnFailure), C(Upholds),
    C(PropagatesStopTo)), C(WatchdogSec) and C(RuntimeMaxSec) of the unit itself, monit, supervisord, logrotate, restart
    policies and health checks of containers, and autoheal."
  - Scripts that these run are read, and the scripts that those call. Nothing is run that was not made for reading, and
    nothing is changed.
  - From the journal it tells the restarts of the last days, how long after the one before each came, and who asked, as far
    as the journal tells.
  - A script cannot be understood by reading alone. What is only likely is marked as not certain. What acts from another host
    shows in the journal only.
  - Run it as root. As another user it sees less, and says what it could not read.
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
options:
  units:
    description:
      - The units to look at. If not given, those in which M(fleetcheck.vllm.vllm_servers_info) finds a vLLM server.
    type: list
    elements: dict
    suboptions:
      unit:
        description: Name of the unit.
        type: str
        required: true
      scope:
        description: Whether it is a unit of the system or of a user.
        type: str
        choices: [system, user]
        default: system
      user:
        description: Whose unit it is, with O(units[].scope=user). If not given, the user's that the module runs as.
        type: str
      port:
        description: The port its server listens on, to tell a C(fuser -k 8000/tcp) that is meant for it.
        type: int
  days:
    description: How many days of the journal to read.
    type: int
    default: 30
  loading_time:
    description:
      - Seconds that the server takes to load its model. A restart that comes sooner after the one before has interrupted the
        loading.
    type: float
    default: 600
seealso:
  - module: fleetcheck.vllm.vllm_servers_info
author:
  - The fleetcheck authors (@fleetcheck)
"""

EXAMPLES = r"""
- name: Find out who else restarts the vLLM servers of a host
  fleetcheck.vllm.vllm_watchdogs_info:
  become: true
  register: audit

- name: Say it
  ansible.builtin.debug:
    msg: "{{ audit.units | map(attribute='summary') }}"

- name: Look at one unit and the last week, for a model that takes 15 minutes to load
  fleetcheck.vllm.vllm_watchdogs_info:
    units:
      - unit: vllm.service
        port: 8000
    days: 7
    loading_time: 900
  become: true
"""

RETURN = r"""
units:
  description: One dictionary a unit.
  returned: always
  type: list
  elements: dict
  contains:
    unit:
      description: Name of the unit.
      returned: always
      type: str
      sample: vllm.service
    scope:
      description: V(system) or V(user).
      returned: always
      type: str
      sample: system
    user:
      description: Whose unit it is, V(null) for the system's.
      returned: always
      type: str
      sample: null
    active_state:
      description: As systemd says it.
      returned: always
      type: str
      sample: active
    summary:
      description: The finding in one sentence.
      returned: always
      type: str
      sample: >-
        4 parties can restart vllm.service (timers every 5, 10, 15 and 30 minutes); 8 restarts on 22 July, 5 of them less than
        10 minutes after the one before
    count:
      description: How many parties act now (those that are switched off are not counted).
      returned: always
      type: int
      sample: 4
    parties:
      description: Everybody that can restart, start, stop or kill the unit.
      returned: always
      type: list
      elements: dict
      contains:
        kind:
          description: V(timer), V(cron), V(at), V(service), V(path), V(watchdog), V(lifetime), V(dependency), V(monit),
            V(supervisord), V(container), V(autoheal) or V(logrotate).
          returned: always
          type: str
          sample: timer
        name:
          description: What it is called.
          returned: always
          type: str
          sample: vllm-check.timer
        action:
          description: V(restart), V(kill), V(stop) or V(start); the weightiest where there are several.
          returned: always
          type: str
          sample: restart
        certain:
          description: Whether the text leaves no doubt.
          returned: always
          type: bool
          sample: true
        active:
          description: Whether it acts now. V(false) for what is written but switched off.
          returned: always
          type: bool
          sample: true
        every:
          description: Seconds between two times, V(null) where there is no fixed one.
          returned: always
          type: int
          sample: 300
        when:
          description: When it acts, in words.
          returned: always
          type: str
          sample: every 5 minutes
        file:
          description: The file in which the restart is written.
          returned: always
          type: str
          sample: /usr/local/bin/vllm-check.sh
        line:
          description: The line of that file.
          returned: always
          type: int
          sample: 12
        text:
          description: What stands there, without secrets.
          returned: always
          type: str
          sample: systemctl restart vllm.service
        places:
          description: All places, when there are several.
          returned: always
          type: list
          elements: str
          sample: ["/usr/local/bin/vllm-check.sh:12: systemctl restart vllm.service"]
        via:
          description: The files on the way to it.
          returned: always
          type: list
          elements: str
          sample: ["/etc/systemd/system/vllm-check.timer:5"]
        remark:
          description: What else to know.
          returned: always
          type: str
          sample: through llm.target (PartOf)
        message:
          description: All of it in one line.
          returned: always
          type: str
          sample: >-
            timer vllm-check.timer: restart, every 5 minutes, written in /usr/local/bin/vllm-check.sh:12 (by way of
            /etc/systemd/system/vllm-check.timer:5)
    own:
      description: What the unit itself says about being started again.
      returned: always
      type: dict
      sample:
        lifetime: null
        restart: on-failure
        restart_delay: 5
        start_limit_action: none
        start_limit_burst: 5
        start_limit_interval: 10
        watchdog: null
    restarts:
      description: The restarts of the last days, oldest first.
      returned: always
      type: list
      elements: dict
      contains:
        at:
          description: When, in UTC.
          returned: always
          type: str
          sample: "2026-07-22T03:15:02Z"
        after:
          description: Seconds since the start before, V(null) where that is not in the journal.
          returned: always
          type: int
          sample: 300
        close:
          description: Whether that is less than O(loading_time).
          returned: always
          type: bool
          sample: true
        by:
          description: Who asked, as far as the journal tells.
          returned: always
          type: str
          sample: vllm-check.timer
        by_kind:
          description: V(systemd), V(user), V(ansible), V(null) where it is not known, or a kind of party.
          returned: always
          type: str
          sample: timer
        certain:
          description: Whether the journal leaves no doubt.
          returned: always
          type: bool
          sample: true
        result:
          description: How the process before ended, as systemd says it.
          returned: always
          type: str
          sample: signal
    restart_count:
      description: Number of restarts, V(null) where the journal could not be read.
      returned: always
      type: int
      sample: 8
    close_count:
      description: How many of them came less than O(loading_time) after the one before.
      returned: always
      type: int
      sample: 5
    journal_begins:
      description: When the journal begins, if that is later than O(days) ago.
      returned: always
      type: str
      sample: "2026-07-20T00:00:00Z"
    incomplete:
      description: Whether something could not be read.
      returned: always
      type: bool
      sample: false
    notes:
      description: What else to know about this unit.
      returned: always
      type: list
      elements: str
      sample: []
summary:
  description: The sentences of all units, in one text.
  returned: always
  type: str
  sample: Nothing but systemd itself (Restart=on-failure) can restart vllm.service; no restart in the last 30 days
incomplete:
  description: Whether something could not be read.
  returned: always
  type: bool
  sample: false
notes:
  description: What could not be read.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.audit import examination
from ..module_utils.redacting import shown

ARGUMENTS = {
    "units": {
        "type": "list",
        "elements": "dict",
        "options": {
            "unit": {"type": "str", "required": True},
            "scope": {"type": "str", "choices": ["system", "user"], "default": "system"},
            "user": {"type": "str"},
            "port": {"type": "int"},
        },
    },
    "days": {"type": "int", "default": 30},
    "loading_time": {"type": "float", "default": 600},
}


def main() -> None:
    """Read the host, look at each unit, say."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    if not 1 <= module.params["days"] <= 3650:
        module.fail_json(msg="days must be between 1 and 3650")
    try:
        asked, notes = examination.now_asked(module.params["units"])
    except ValueError as error:
        module.fail_json(msg=str(error))
    look = examination.Examination(module.params["days"], module.params["loading_time"])
    units = [look.unit(one) for one in asked]
    notes = [shown(note) for note in notes + look.notes]
    summary = ". ".join(unit["summary"] for unit in units) or "No unit with a vLLM server was found"
    module.exit_json(changed=False, units=units, summary=summary, incomplete=bool(notes), notes=notes)


if __name__ == "__main__":
    main()
