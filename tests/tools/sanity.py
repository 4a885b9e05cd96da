"""ansible-test sanity on the collection as it is built and installed, which is what it insists on.

    sanity.py [ARGUMENT ...]     further arguments go to ansible-test: --test validate-modules, for one
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from checkout import copy_to

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
# ansible-test keeps its own environments in the home directory; here they are removed by `make clean`.
HOME = ROOT / ".cache" / "ansible-test-home"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

# Instead of the installer that ansible-test would download: pip as it comes with Python, unpacked and not installed,
# which in each of its environments took longer than most of the tests.
INSTALLER = """\
import ensurepip, pathlib, sysconfig, zipfile
folders = [pathlib.Path(ensurepip.__file__).parent / "_bundled", pathlib.Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or "/")]
(wheel, *_) = [wheel for folder in folders for wheel in folder.glob("pip-*.whl")]
zipfile.ZipFile(wheel).extractall(sysconfig.get_path("purelib"))
"""


def main(arguments: list[str]) -> int:
    """Build, install and test; the exit code of ansible-test."""
    provide_installer()
    with tempfile.TemporaryDirectory(prefix="fleetcheck-sanity-") as name:
        collection = installed(Path(name))
        command = [BIN / "ansible-test", "sanity", "--python", PYTHON, "--color", "no", *arguments]
        result = subprocess.run(command, cwd=collection, env=environment(), check=False, capture_output=True, text=True)
    print(readable(result.stdout + result.stderr))
    return result.returncode


def readable(output: str) -> str:
    """The output without what pip says while ansible-test makes its environments."""
    pip = ("  Downloading", "     ")
    ours = ("Running sanity test", "ERROR", "WARNING", "FATAL", "See documentation", "Traceback", " ")
    return "\n".join(line for line in output.splitlines() if line.startswith(ours) and not line.startswith(pip))


def installed(folder: Path) -> Path:
    """The collection, installed from what is built from the files that git knows or would add."""
    source = copy_to(folder / "source")
    galaxy = [BIN / "ansible-galaxy", "collection"]
    run([*galaxy, "build", source, "--output-path", folder])
    (artifact,) = folder.glob("*.tar.gz")
    run([*galaxy, "install", artifact, "--collections-path", folder / "collections", "--offline"])
    return folder / "collections" / "ansible_collections" / "fleetcheck" / "vllm"


def run(command: list[str | Path]) -> None:
    """Run a command whose output matters only if it fails."""
    result = subprocess.run(command, env=environment(), check=False, capture_output=True, text=True)
    if result.returncode:
        sys.exit(result.stdout + result.stderr)


def provide_installer() -> None:
    """Put the installer where ansible-test looks before it downloads one."""
    text = (Path(ansible_test()) / "_internal" / "python_requirements.py").read_text(encoding="utf-8")
    versions = set(re.findall(r"\bpip='([\d.]+)'", text))
    folder = HOME / ".ansible" / "test" / "cache"
    folder.mkdir(parents=True, exist_ok=True)
    for version in versions:
        (folder / f"get_pip_{version.replace('.', '_')}.py").write_text(INSTALLER, encoding="utf-8")


def ansible_test() -> str:
    """The folder of ansible-test's own code."""
    import ansible_test  # noqa: PLC0415  (only where it is installed)

    return next(iter(ansible_test.__path__))


def environment() -> dict[str, str]:
    """The environment without the shims of a version manager, which are not the Pythons they are named after."""
    path = [str(BIN)] + [part for part in os.environ["PATH"].split(os.pathsep) if "shims" not in part]
    cache = os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))
    return {**os.environ, "HOME": str(HOME), "PATH": os.pathsep.join(path), "PIP_CACHE_DIR": cache}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
