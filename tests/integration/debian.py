"""Programs from Debian for tests: those that are installed, or fetched where that is possible.

Nothing that is fetched is started by the package: a test machine must not end up with another Prometheus on its ports.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "debian"
SECONDS = 600


@functools.lru_cache(maxsize=None)
def unpacked(package: str, program: str) -> str:
    """The path of a program that needs nothing around it. Its package is unpacked into the cache where it is not installed."""
    cached = CACHE / package
    found = shutil.which(program) or shutil.which(program, path=str(cached / "usr" / "bin"))
    if found is None and shutil.which("dpkg-deb"):
        cached.mkdir(parents=True, exist_ok=True)
        _refresh()
        if _run("apt-get", "download", "-qq", package, folder=cached):
            for file in cached.glob("*.deb"):
                _run("dpkg-deb", "-x", str(file), ".", folder=cached)
        found = shutil.which(program, path=str(cached / "usr" / "bin"))
    if found is None:
        pytest.skip(f"{program} is not here and cannot be fetched (Debian's package {package})")
    return found


@functools.lru_cache(maxsize=None)
def installed(program: str, *packages: str) -> str:
    """The path of a program that needs its libraries. Its packages are installed where root may do so."""
    found = shutil.which(program)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _refresh()
        _run("apt-get", "install", "-qq", "-y", "--no-install-recommends", *packages, folder=Path("/"))
        found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not here and cannot be installed (Debian's packages {', '.join(packages)}, as root)")
    return found


@functools.lru_cache(maxsize=None)
def _refresh() -> None:
    if os.geteuid() == 0:
        _run("apt-get", "update", "-qq", folder=Path("/"))


def _run(*command: str, folder: Path) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, cwd=folder, env=environment, timeout=SECONDS, check=False).returncode == 0
