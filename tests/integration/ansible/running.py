"""Run Ansible as an operator does: a release of it, a folder to stand in, and an inventory."""

from __future__ import annotations

import json
import os
import subprocess
import typing as t
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CORES = ("2.15", "2.16", "2.18", "2.19")
SECONDS = 240  # for one command, on a busy machine

# Where no other configuration is found. By itself Ansible looks a thousand times a second at what is not done yet, and
# starts five processes for each module. Over SSH not: there a pipe that breaks can hide why a host cannot be reached.
_SAVING = """\
[defaults]
internal_poll_interval = 0.02
[connection]
pipelining = True
[ssh_connection]
pipelining = False
"""


def environment_of(core: str) -> Path:
    """The virtual environment with this ansible-core (`make envs`)."""
    return ROOT / ".venvs" / f"core-{core}"


@dataclass
class Run:
    """What a command did."""

    code: int
    output: str

    @property
    def table(self) -> list[str]:
        """The lines of the table, without the head and the counts."""
        after = self.output.split("TASK [Show the fleet, worst first]")[1].split("TASK [")[0].splitlines()
        quoted = [line.strip().rstrip(",") for line in after if line.strip().startswith('"')]
        lines = [json.loads(line) for line in quoted if line.endswith('"')]
        return lines[1 : lines.index("")]

    def row(self, host: str) -> str:
        """The only line of the table about a host."""
        (line,) = [line for line in self.table if line.split()[0] == host]
        return line


@dataclass
class Ansible:
    """One release of Ansible, run from a folder, with a home of its own."""

    core: str
    folder: Path
    home: Path

    def __call__(self, program: str, *arguments: str | Path, **extra: str) -> Run:
        """Run a program of this release; environment variables as keywords."""
        command = [str(environment_of(self.core) / "bin" / program), *map(str, arguments)]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment(extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Run(done.returncode, done.stdout)

    def environment(self, extra: t.Mapping[str, str]) -> dict[str, str]:
        """An environment without settings for Ansible and without the shims of a version manager."""
        (self.home / ".ansible.cfg").write_text(_SAVING)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        path = [part for part in kept["PATH"].split(os.pathsep) if "shims" not in part]
        ours = {"HOME": str(self.home), "PATH": os.pathsep.join(path), "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"}
        return {**kept, **ours, **extra}


def inventory(folder: Path, hosts: t.Mapping[str, t.Mapping[str, t.Any]], group: str = "vllm", **everywhere: t.Any) -> Path:
    """An inventory in a folder: a group of hosts that are this machine, with their variables."""
    for name, variables in hosts.items():
        _write(folder / "host_vars" / f"{name}.yml", variables)
    _write(folder / "group_vars" / "all.yml", {"ansible_connection": "local", **everywhere})
    (folder / "hosts").write_text("\n".join([f"[{group}]", *hosts, ""]))
    return folder


def _write(path: Path, variables: t.Mapping[str, t.Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # JSON is YAML.
    path.write_text(json.dumps(variables))
