"""Run a job the way AWX does and read it the way AWX does: from the events."""

from __future__ import annotations

import json
import os
import re
import subprocess
import typing as t
from dataclasses import dataclass
from pathlib import Path

from tests.integration.ansible.running import ROOT, environment_of
from tests.integration.awx.private_data import Inventory, Launch, write

RUNNER = ROOT / ".venvs" / "awx" / "bin"
PROGRAM = Path(__file__).with_name("run_job.py")
SECONDS = 400  # for one job, on a busy machine
COLOURS = re.compile(r"\x1b\[[0-9;]*m")

# AWX sets the old spelling of this variable; ansible-core 2.16 to 2.18 say that it goes away. Not ours to change.
OF_AWX = "COLLECTIONS_PATHS"

Event = t.Dict[str, t.Any]


@dataclass
class Job:
    """A job that has ended, as AWX knows it."""

    status: str
    rc: int
    events: list[Event]

    @property
    def output(self) -> str:
        """What the page of the job shows, without colours."""
        return COLOURS.sub("", self.raw_output)

    @property
    def raw_output(self) -> str:
        """The same as it is stored."""
        return "\n".join(event["stdout"] for event in self.events if event.get("stdout"))

    @property
    def artifacts(self) -> dict[str, t.Any]:
        """What later nodes of a workflow get: AWX takes it from the last event of a play's statistics."""
        (stats,) = [event for event in self.events if event["event"] == "playbook_on_stats"]
        return stats["event_data"].get("artifact_data", {})

    @property
    def fleet(self) -> dict[str, t.Any]:
        """The report among the artifacts."""
        return self.artifacts["vllm_fleet"]

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict of the server of each host, where each has one."""
        return {row["host"]: row["verdict"] for row in self.fleet["servers"]}

    @property
    def warnings(self) -> list[str]:
        """Lines that warn, but for the one that AWX brings about itself."""
        lines = self.output.splitlines()
        loud = ("[WARNING]", "[DEPRECATION WARNING]")
        return [line for line in lines if line.startswith(loud) and OF_AWX not in line]


def run(core: str, folder: Path, project: Path, inventory: Inventory, launch: Launch) -> Job:
    """Run a job on a release of ansible-core, in a folder that does not exist yet."""
    folder.mkdir(mode=0o700)
    arguments = write(folder / "job", project, inventory, launch)
    path = [environment_of(core) / "bin", *(part for part in os.environ["PATH"].split(os.pathsep) if "shims" not in part)]
    arguments["envvars"]["PATH"] = os.pathsep.join(map(str, path))
    (folder / "arguments.json").write_text(json.dumps(arguments))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    done = subprocess.run(
        [RUNNER / "python", PROGRAM, folder / "arguments.json", folder / "events.jsonl"],
        env={**kept, "PATH": arguments["envvars"]["PATH"]},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return Job(events=events, **json.loads(done.stdout.splitlines()[-1]))
