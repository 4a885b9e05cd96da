"""An Ansible inventory of a run: a folder with an INI file ``hosts`` and a file of variables for each host."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import keys
from .runs import HostRecord, Run


def write(run: Run, group: str = "vllm", user: str = "ops", variables: Mapping[str, Any] | None = None) -> Path:
    """Write the inventory of all hosts into the run's folder and return its path.

    Ansible logs in as ``user``; ``variables`` are added to those of every host, as JSON, which is YAML.
    """
    folder = run.folder / "inventory"
    (folder / "host_vars").mkdir(parents=True, exist_ok=True)
    (folder / "hosts").write_text("\n".join([f"[{group}]", *(host.name for host in run.hosts), ""]))
    for host in run.hosts:
        values = {**_connection(run, host, user), **(variables or {})}
        text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in values.items())
        (folder / "host_vars" / f"{host.name}.yml").write_text("---\n" + text)
    return folder


def _connection(run: Run, host: HostRecord, user: str) -> dict[str, Any]:
    return {
        "ansible_host": host.address,
        "ansible_user": user,
        "ansible_ssh_private_key_file": str(run.key),
        "ansible_ssh_common_args": shlex.join(keys.options(run)),
        # An address may be used again by a later run: its connections must never be shared with this run's.
        "ansible_control_path_dir": str(run.sockets),
        "ansible_python_interpreter": "/usr/bin/python3",
    }
