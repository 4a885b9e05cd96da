"""Modules of the collection, run on a host without the Ansible around them, which costs more than they do.

They get their arguments as JSON on their standard input, which Ansible's own code provides for. What Ansible makes of
them is tested where playbooks are.
"""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from tests.fleet.hosts import Host
from tests.integration.ansible.running import ROOT, environment_of

_FOLDER = "/opt/modules"
_PLUGINS = "ansible_collections/fleetcheck/vllm/plugins"


def provide(host: Host, core: str) -> None:
    """Put the modules, and what they need of this ansible-core, in the host."""
    (package,) = environment_of(core).glob("lib/python3.*/site-packages/ansible")
    host.write(f"{_FOLDER}/ansible/__init__.py", "")
    _copy(host, package / "module_utils", "ansible/module_utils")
    for kind in ("modules", "module_utils"):
        _copy(host, ROOT / "plugins" / kind, f"{_PLUGINS}/{kind}")


def _copy(host: Host, source: Path, target: str) -> None:
    host.copy_folder(source, f"{_FOLDER}/{target}")


def run(host: Host, name: str, arguments: t.Mapping[str, t.Any], user: str) -> dict[str, t.Any]:
    """What a module returns. Raises FleetError with what it printed where it fails."""
    module = f"{_PLUGINS.replace('/', '.')}.modules.{name}"
    command = ("env", f"PYTHONPATH={_FOLDER}", "python3", "-m", module)
    given = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
    done = host.run(*command, stdin=given) if user == "root" else host.run_as(user, *command, stdin=given)
    result: dict[str, t.Any] = json.loads(done.stdout)
    return result
