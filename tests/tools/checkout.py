"""Copies of the repository as a clone would have it, with what is not committed yet."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def copy_to(folder: Path) -> Path:
    """Copy the files that git knows or would add, links as links; returns the folder."""
    for name in _listed_by_git():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)
    return folder


def _listed_by_git() -> list[str]:
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return [name for name in names if name and os.path.lexists(ROOT / name)]
