"""The root file system that all test hosts share: built once with mmdebstrap, then only read."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .commands import FleetError, missing, run

SUITE = "bookworm"
PACKAGES = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "dbus-user-session",
    "libpam-systemd",
    "libnss-myhostname",
    "openssh-server",
    "sudo",
    "cron",
    "at",
    "iproute2",
    "procps",
    "systemd-journal-remote",
    "python3",
    "python3-requests",
    "python3-prometheus-client",
)
# A host is thrown away after minutes: no fsync for each file, and nothing that only people read.
DPKG_OPTIONS = ("force-unsafe-io", *(f"path-exclude=/usr/share/{folder}/*" for folder in ("doc", "man", "locale")))
SETUP = Path(__file__).parent / "files" / "rootfs-setup.sh"
REPOSITORY = Path(__file__).resolve().parents[2]
BUILD_SECONDS = 900


def cache_folder() -> Path:
    """Where built root file systems are kept: FLEET_CACHE, or ``.cache/fleet`` in the repository."""
    return Path(os.environ.get("FLEET_CACHE") or REPOSITORY / ".cache" / "fleet").resolve()


def ensure(cache: Path | None = None) -> Path:
    """The path of the root file system, built now (about half a minute) if this recipe was never built before.

    Two callers at once build it once: the second waits for the first.
    """
    cache = cache or cache_folder()
    root = cache / f"rootfs-{recipe_hash()}"
    if root.is_dir():
        return root
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / "rootfs.lock"):
        if not root.is_dir():
            _build(root)
    return root


def recipe_hash() -> str:
    """A short name for everything that decides what the root file system contains."""
    recipe = "\n".join((SUITE, *PACKAGES, *DPKG_OPTIONS, SETUP.read_text()))
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def _build(root: Path) -> None:
    """Build beside the final place and rename at the end, so that a half-built root is never taken for a whole one."""
    aside = root.with_name(root.name + ".building")
    shutil.rmtree(aside, ignore_errors=True)
    command = [
        "mmdebstrap",
        "--quiet",
        "--mode=root",
        "--variant=minbase",
        f"--include={','.join(PACKAGES)}",
        '--aptopt=APT::Install-Recommends "false"',
        *(f"--dpkgopt={option}" for option in DPKG_OPTIONS),
        f"--customize-hook={SETUP}",
        SUITE,
        str(aside),
    ]
    try:
        run(command, timeout=BUILD_SECONDS)
    except FleetError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise FleetError(f"the root file system of the test hosts could not be built: {error}") from error
    aside.rename(root)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# The program each needed package is known by.
_NEEDED = {
    "mmdebstrap": "mmdebstrap",
    "systemd-nspawn": "systemd-container",
    "ip": "iproute2",
    "ssh": "openssh-client",
    "nsenter": "util-linux",
}


def ensure_tools() -> None:
    """See that this machine can build and boot hosts; on Debian and Ubuntu install what is missing.

    Raises FleetError saying what is missing, and that root is needed.
    """
    if os.geteuid() != 0:
        raise FleetError("the test hosts need root: they are containers with a network of their own")
    packages = sorted(_NEEDED[program] for program in missing(list(_NEEDED)))
    if not packages:
        return
    if missing(["apt-get"]):
        raise FleetError(f"the test hosts need {', '.join(packages)}; please install them (the names are Debian's)")
    run(["apt-get", "update"], timeout=300)
    install = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes", "--no-install-recommends"]
    run([*install, *packages], timeout=600)
