"""The collection awx.awx 24.6.1, out of the package `ansible`: of its 50 MB, the one that is needed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.integration.ansible.running import ROOT

PACKAGE = "ansible==12.3.0"
CACHE = ROOT / ".cache" / "awx-collection"
WANTED = "ansible_collections/awx/awx/"
SECONDS = 600


def unpacked() -> Path:
    """A folder of collections with this one in it. Fetched once; a test that needs it is skipped where that fails."""
    if not (CACHE / "complete").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", CACHE, PACKAGE]
        if subprocess.run(command, check=False, timeout=SECONDS, stdin=subprocess.DEVNULL).returncode:
            pytest.skip(f"the collection awx.awx cannot be fetched (pip download {PACKAGE})")
        (wheel,) = CACHE.glob("ansible-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(CACHE, [name for name in archive.namelist() if name.startswith(WANTED)])
        wheel.unlink()
        (CACHE / "complete").touch()
    return CACHE
