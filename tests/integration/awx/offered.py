"""Which files of a project AWX offers as playbooks, and which as inventories.

Written after AWX 24.6.1: awx/main/utils/ansible.py and awx/main/models/projects.py.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_PLAYBOOK = re.compile(r"^\s*?-?\s*?(?:hosts|(ansible\.builtin\.)?include|(ansible\.builtin\.)?import_playbook):\s*?.*?$")
_INVENTORY = re.compile(r"^[a-zA-Z0-9_.=\[\]]")
_NOT_IN = {"roles", "tasks", "group_vars", "host_vars"}


def playbooks(project: Path) -> list[str]:
    """The paths that the list of playbooks of a job template shows."""
    return sorted(str(file.relative_to(project)) for file in _files(project) if _could_be_playbook(file))


def inventories(project: Path) -> list[str]:
    """The paths that the list of inventory files of a source shows; one may also type a folder."""
    return sorted(str(file.relative_to(project)) for file in _files(project) if _could_be_inventory(file))


def _files(project: Path) -> list[Path]:
    found = []
    # Links are not followed unless an administrator of AWX wants it.
    for folder, _folders, names in os.walk(project):
        parts = Path(folder).relative_to(project).parts
        if not _NOT_IN.intersection(parts) and not any(part.startswith(".") for part in parts):
            found += [Path(folder) / name for name in names]
    return [file for file in found if file.is_file()]


def _could_be_playbook(file: Path) -> bool:
    lines = file.read_text(errors="ignore").splitlines() if file.suffix in (".yml", ".yaml") else []
    return any(_PLAYBOOK.match(line) for line in lines) or bool(lines and lines[0].startswith("$ANSIBLE_VAULT;"))


def _could_be_inventory(file: Path) -> bool:
    if file.name in ("inventory", "hosts") or file.suffix == ".ini" or os.access(file, os.X_OK):
        return True
    return "." not in file.suffix and any(_INVENTORY.match(line) for line in file.read_text(errors="ignore").splitlines()[:11])
