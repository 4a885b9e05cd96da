"""A pause ends when it was said to, wherever in the world the controller stands."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart import pause

from tests.integration.ansible.conftest import Anywhere
from tests.integration.ansible.running import environment_of, inventory


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_a_pause_of_four_hours_ends_in_four_hours(zone: str, edge: str, anywhere: Anywhere, clone: Path, tmp_path: Path):
    python = str(environment_of(edge) / "bin" / "python")
    hosts = inventory(tmp_path / "i", {"here": {"ansible_connection": "local", "ansible_python_interpreter": python}})
    said = {
        "vllm_pause_reason": "a test",
        "vllm_pause_hours": 4,
        "vllm_restart_become": False,
        "__vllm_restart_state": str(tmp_path / "state"),
    }
    before = time.time()
    playbook = clone / "playbooks" / "pause.yml"
    run = anywhere(edge)("ansible-playbook", "-i", hosts, playbook, "-e", json.dumps(said), TZ=zone)
    assert run.code == 0, run.output
    until = pause.unix(json.loads((tmp_path / "state" / "pause.json").read_text())["until"])
    assert -1 <= until - before - 4 * 3600 <= time.time() - before
