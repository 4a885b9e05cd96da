"""The folder that AWX makes for each job: the project, a generated inventory, variables, environment and arguments.

Written after AWX 24.6.1: awx/main/tasks/jobs.py (BaseTask, RunJob, RunInventoryUpdate), awx/main/models/inventory.py
(get_script_data) and awx/main/utils/safe_yaml.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

import yaml

Variables = t.Dict[str, t.Any]
Inventory = t.Dict[str, t.Any]

# awx/settings/defaults.py: whatever is called ANSIBLE_something goes into the environment of a job.
SETTINGS = {
    "ANSIBLE_HOST_KEY_CHECKING": "False",
    "ANSIBLE_PARAMIKO_RECORD_HOST_KEYS": "False",
    "ANSIBLE_FORCE_COLOR": "True",
    "ANSIBLE_INVENTORY_UNPARSED_FAILED": "True",
}
PREFIXES = ("awx", "tower")


@dataclass
class Launch:
    """A job template and what was said when it was launched."""

    playbook: str
    template_vars: Variables = field(default_factory=dict)
    asked_vars: Variables = field(default_factory=dict)
    credential_vars: Variables = field(default_factory=dict)
    limit: str = ""
    job_type: str = "run"
    slice_number: int = 1
    slice_count: int = 1


def import_inventory(ansible_inventory: Path, project: Path, folder: str, environment: t.Mapping[str, str]) -> Inventory:
    """What AWX reads of an inventory in a project. Raises CalledProcessError where Ansible cannot read it."""
    source = project / folder
    command = [ansible_inventory, "--list", "--export", "-i", source, "--playbook-dir", source]
    done = subprocess.run(command, env=dict(environment), check=True, capture_output=True, text=True, cwd=project)
    return json.loads(done.stdout)


def generated(inventory: Inventory, slice_number: int = 1, slice_count: int = 1) -> Inventory:
    """The inventory of a job: hosts in the order of their names, of those every so manieth, and all variables."""
    groups = {name: group for name, group in inventory.items() if name not in ("_meta", "all")}
    variables = inventory.get("_meta", {}).get("hostvars", {})
    known = sorted({host for group in inventory.values() for host in group.get("hosts", [])} | set(variables))
    hosts = known[slice_number - 1 :: slice_count]
    data: Inventory = {"all": {"hosts": [], "children": list(groups)}}
    if inventory.get("all", {}).get("vars"):
        data["all"]["vars"] = inventory["all"]["vars"]
    for name, group in groups.items():
        kept = {**group, "hosts": [host for host in group.get("hosts", []) if host in hosts]}
        data[name] = {key: value for key, value in kept.items() if value}
    grouped = {host for name in groups for host in data[name].get("hosts", [])}
    data["all"]["hosts"] = [host for host in hosts if host not in grouped]
    data["_meta"] = {"hostvars": {host: {**variables.get(host, {}), **_of_awx(number)} for number, host in enumerate(hosts, 1)}}
    return data


def _of_awx(number: int) -> Variables:
    return {key: value for prefix in ("host", "tower") for key, value in (
        (f"remote_{prefix}_enabled", "true"), (f"remote_{prefix}_id", number))}


def write(folder: Path, project: Path, inventory: Inventory, launch: Launch) -> dict[str, t.Any]:
    """Lay the folder out; returns the arguments that AWX gives to ansible_runner.run, but for the callbacks."""
    for part in ("inventory", "env", "cp", "artifacts"):
        (folder / part).mkdir(parents=True)
    shutil.copytree(project, folder / "project", symlinks=True)
    script = folder / "inventory" / "hosts"
    data = json.dumps(generated(inventory, launch.slice_number, launch.slice_count))
    script.write_text(f"#! /usr/bin/env python3\n# -*- coding: utf-8 -*-\nprint({data!r})\n")
    script.chmod(0o700)
    (folder / "env" / "extravars").write_text(_extra_vars(launch))
    (folder / "env" / "cmdline").write_text(" ".join(_arguments(folder, launch)))
    settings = {"job_timeout": 0, "suppress_ansible_output": True, "suppress_output_file": True}
    (folder / "env" / "settings").write_text(json.dumps(settings))
    return {
        "ident": "42",
        "private_data_dir": str(folder),
        "playbook": launch.playbook,
        "inventory": str(script),
        "suppress_env_files": True,
        "envvars": _environment(folder),
        "fact_cache_type": "",
    }


def _extra_vars(launch: Launch) -> str:
    """All is unsafe text but what the template itself says, if nobody changed it at the launch."""
    everything = {**launch.template_vars, **launch.asked_vars, **_meta_vars()}
    return "".join(
        yaml.dump({key: value}, Dumper=yaml.SafeDumper if launch.template_vars.get(key) == value else _Unsafe)
        for key, value in everything.items()
    )


class _Unsafe(yaml.SafeDumper):
    def represent_data(self, data: t.Any) -> yaml.Node:
        return self.represent_scalar("!unsafe", data) if isinstance(data, str) else super().represent_data(data)


def _meta_vars() -> Variables:
    said = {
        "job_id": 42, "job_launch_type": "manual", "user_id": 1, "user_name": "night-shift", "user_email": "",
        "user_first_name": "", "user_last_name": "", "inventory_id": 2, "inventory_name": "vLLM fleet",
        "project_revision": "0" * 40, "project_scm_branch": "main", "job_template_id": 10, "job_template_name": "vLLM",
    }
    return {f"{prefix}_{key}": value for prefix in PREFIXES for key, value in said.items()}


def _arguments(folder: Path, launch: Launch) -> list[str]:
    arguments = ["--check"] if launch.job_type == "check" else []
    arguments += ["-u", "root"]
    if launch.limit:
        arguments += ["-l", launch.limit]
    if launch.credential_vars:
        path = folder / "env" / "tmpcredential"
        path.write_text(yaml.dump(launch.credential_vars, Dumper=_Unsafe))
        arguments += ["-e", f"@{path}"]
    return arguments


def _environment(folder: Path) -> dict[str, str]:
    collections = f"{folder}/requirements_collections:~/.ansible/collections:/usr/share/ansible/collections"
    return {
        **SETTINGS,
        "AWX_PRIVATE_DATA_DIR": str(folder),
        "JOB_ID": "42",
        "INVENTORY_ID": "2",
        "PROJECT_REVISION": "0" * 40,
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "MAX_EVENT_RES": "700000",
        "AWX_HOST": "https://awx.example.com",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),
        # Both spellings, as AWX does.
        "ANSIBLE_COLLECTIONS_PATHS": collections,
        "ANSIBLE_COLLECTIONS_PATH": collections,
        "ANSIBLE_ROLES_PATH": f"{folder}/requirements_roles:~/.ansible/roles:/usr/share/ansible/roles:/etc/ansible/roles",
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
