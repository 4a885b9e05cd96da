"""A host whose own Python lacks the packages is checked with that of its vLLM, or says what to install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
import venv
from pathlib import Path

import pytest

from tests.integration.ansible.conftest import Anywhere, Servers
from tests.integration.ansible.running import environment_of, inventory

# Stands in for systemd, which a machine that runs tests may not have: one unit runs, the others do not.
SYSTEMCTL = """\
#!/bin/sh
for unit; do :; done
case "$unit" in
    vllm.service) echo "MainPID={pid}";;
    *) echo "MainPID=0";;
esac
"""


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python without requests and prometheus_client."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


@pytest.fixture
def systemctl(edge: str, tmp_path: Path) -> t.Iterator[Path]:
    """A folder with a systemctl that says which process is vllm.service: one of a Python that has the packages."""
    python = environment_of(edge) / "bin" / "python"
    # It ends with the test, however that ends: its input is a pipe of ours.
    process = subprocess.Popen([python, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(SYSTEMCTL.format(pid=process.pid))
    program.chmod(0o755)
    yield program.parent
    process.communicate()


def test_the_python_of_the_unit_is_used(
    edge: str, anywhere: Anywhere, clone: Path, servers: Servers, bare_python: Path, systemctl: Path, tmp_path: Path
):
    url = servers.busy.url
    hosts = inventory(
        tmp_path / "inventory",
        {
            "found": {"vllm_servers": [{"url": url, "unit": "vllm.service"}]},
            "stopped": {"vllm_servers": [{"url": url, "unit": "other.service"}]},
            "unnamed": {"vllm_servers": [{"url": url}]},
            "told": {"vllm_servers": [{"url": url}], "vllm_check_python": str(environment_of(edge) / "bin" / "python")},
            "misled": {"vllm_servers": [{"url": url}], "vllm_check_python": str(bare_python)},
        },
        ansible_python_interpreter=str(bare_python),
    )
    ansible = anywhere(edge)
    ansible(
        "ansible-playbook", "-i", hosts, clone / "playbooks" / "check.yml", "-e", "vllm_report_file=r.json",
        PATH=os.pathsep.join([str(systemctl), ansible.environment({})["PATH"]]),
    )
    rows = {row["host"]: row for row in json.loads((ansible.folder / "r.json").read_text())["servers"]}
    assert rows["told"]["verdict"] == "busy"
    # The stand-in knows no more of the unit than its process: which verdict it gets is not what is tried here.
    assert rows["found"]["reason"] != "check_failed"
    install = f"Install requests and prometheus-client for {bare_python} of this host, or set vllm_check_python"
    for host, why in {
        "stopped": "No running Python was found in the unit other.service.",
        "unnamed": "No unit is named in vllm_servers",
        "misled": "python3-prometheus-client",
    }.items():
        assert rows[host]["message"].startswith(install)
        assert why in rows[host]["message"]


def test_the_module_by_itself_names_what_is_missing(edge: str, anywhere: Anywhere, clone: Path, bare_python: Path):
    ansible = anywhere(edge)
    run = ansible(
        "ansible", "localhost", "-m", "fleetcheck.vllm.vllm_health_info", "-e", f"ansible_python_interpreter={bare_python}",
        "--playbook-dir", clone / "playbooks",
    )
    assert run.code != 0
    assert "Failed to import the required Python library (requests" in run.output
    assert str(bare_python) in run.output


def test_without_ansible_the_search_can_be_run_by_hand():
    script = Path(__file__).resolve().parents[3] / "roles" / "vllm_check" / "files" / "find_python.py"
    done = subprocess.run([sys.executable, script, "[]"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["python"] == ""
