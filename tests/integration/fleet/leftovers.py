"""What a run of test hosts has on this machine, by its id: empty when it was taken down properly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def leftovers(run_id: str) -> list[str]:
    """Everything of this run that still exists outside its own folder."""
    return [*_processes(run_id), *_links(run_id), *_mounts(run_id), *_groups(run_id), *_files(run_id)]


def _processes(run_id: str) -> Iterator[str]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            about = (folder / "cgroup").read_text() + (folder / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ended = stat.rpartition(")")[2].split()[0] == "Z"  # only its parent's list still knows it
        if run_id in about and not ended and int(folder.name) != os.getpid():
            yield f"process {folder.name}: {about}"


def _links(run_id: str) -> Iterator[str]:
    yield from (f"link {path.name}" for path in Path("/sys/class/net").iterdir() if run_id in path.name)


def _mounts(run_id: str) -> Iterator[str]:
    yield from (f"mount {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines() if run_id in line)


def _groups(run_id: str) -> Iterator[str]:
    for path, folders, _ in os.walk("/sys/fs/cgroup"):
        yield from (f"control group {path}/{folder}" for folder in folders if run_id in folder)


def _files(run_id: str) -> Iterator[str]:
    for folder in ("/run/netns", "/run/fleetcheck-fleet", "/run/systemd/nspawn/propagate", "/run/systemd/nspawn/locks"):
        if Path(folder).is_dir():
            yield from (f"file {path}" for path in Path(folder).iterdir() if run_id in path.name)
