"""This repository as a project of AWX: what it offers, what it needs, and what its inventory becomes there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.integration.ansible.running import environment_of
from tests.integration.awx import offered
from tests.integration.awx.private_data import generated, import_inventory

pytestmark = pytest.mark.awx


def test_only_entry_points_are_offered_as_playbooks(project: Path):
    assert offered.playbooks(project) == sorted(f"playbooks/{file.name}" for file in (project / "playbooks").glob("*.yml"))


def test_both_inventories_are_offered(project: Path):
    assert {"inventory/demo/hosts", "inventory/example/hosts"} <= set(offered.inventories(project))


def test_nothing_is_to_be_fetched_from_galaxy(project: Path):
    # AWX looks for these, and calls ansible-galaxy where it finds one.
    names = [f"{folder}/requirements.{ending}" for folder in ("roles", "collections") for ending in ("yml", "yaml")]
    names += ["requirements.yml", "requirements.yaml"]
    assert [name for name in names if (project / name).exists()] == []


@pytest.fixture
def imported(core: str, project: Path, tmp_path: Path) -> dict:
    """The example inventory as AWX reads it, without any password."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    return import_inventory(environment_of(core) / "bin" / "ansible-inventory", project, "inventory/example", environment)


def test_the_example_fleet_becomes_an_inventory_of_awx(imported: dict):
    job = generated(imported)
    assert job["vllm"]["vars"]["vllm_check_patience"] == 120
    assert job["vllm_large"]["vars"]["vllm_check_patience"] == 300
    assert "vllm_large" in job["vllm"]["children"]
    assert job["_meta"]["hostvars"]["proxy-01.example.com"]["vllm_servers"][0]["kind"] == "proxy"
    # The secret stays encrypted: the one who imports does not know the password.
    assert list(job["vllm_keyed"]["vars"]["vault_vllm_api_key"]) == ["__ansible_vault"]


def test_ansible_reads_the_generated_inventory_back(imported: dict, core: str, tmp_path: Path):
    script = tmp_path / "hosts"
    script.write_text(f"#!/usr/bin/env python3\nprint({json.dumps(generated(imported))!r})\n")
    script.chmod(0o700)
    command = [environment_of(core) / "bin" / "ansible", "-i", script, "vllm", "--list-hosts"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "hosts (11)" in done.stdout
    assert done.stderr == ""
