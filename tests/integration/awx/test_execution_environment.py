"""execution-environment.yml, as ansible-builder understands it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.integration.awx.jobs import RUNNER

pytestmark = pytest.mark.awx


@pytest.fixture(scope="module")
def context(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ansible-builder gives to podman or docker."""
    if not (RUNNER / "ansible-builder").exists():
        pytest.skip("ansible-builder is not installed in .venvs/awx (make envs)")
    folder = tmp_path_factory.mktemp("context")
    said = ["--verbosity", "3", "--context", folder, "--output-filename", "Containerfile"]
    command = [RUNNER / "ansible-builder", "create", *said]
    done = subprocess.run(command, cwd=project, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warn" not in (done.stdout + done.stderr).lower()
    return folder


def test_it_is_accepted_and_takes_nothing_from_galaxy(context: Path):
    build = (context / "Containerfile").read_text()
    assert "ansible-core>=2.16,<2.19" in build
    assert "ansible-galaxy" not in build.replace("check_galaxy", "")
    assert not (context / "_build" / "requirements.yml").exists()


def test_the_controller_gets_what_the_check_needs(context: Path):
    packages = (context / "_build" / "requirements.txt").read_text()
    assert "requests>=" in packages
    assert "prometheus-client>=" in packages
    assert "openssh-clients" in (context / "_build" / "bindep.txt").read_text()
