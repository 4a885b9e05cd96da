"""The collection from a clone and installed, as a playbook, a role, a module and documentation, under any callback."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.integration.ansible.conftest import Anywhere, Servers, installed
from tests.integration.ansible.running import CORES, Ansible, environment_of, inventory
from tests.tools.checkout import copy_to

FILTERS = ("fail_on", "fleet_alarm", "fleet_report", "fleet_table", "hosts_to_check", "longest_patience", "wrong_seconds")

# A later play targets what the role found.
OWN_PLAYBOOK = """\
- hosts: vllm
  gather_facts: false
  ignore_unreachable: true
  roles:
    - role: fleetcheck.vllm.vllm_check

- hosts: vllm_dead
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "dead: {{ inventory_hostname }} {{ vllm_check_result.servers[0].reason }}"

- hosts: vllm_busy:vllm_unreachable
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "other: {{ inventory_hostname }} {{ group_names | select('match', 'vllm_') | join(',') }}"
"""


def fleet(folder: Path, core: str, servers: Servers) -> Path:
    """A busy host, a dead one and one that cannot be reached."""
    return inventory(
        folder,
        {
            "works": {"vllm_servers": [{"url": servers.busy.url}]},
            "gone": {"vllm_servers": [{"url": "http://127.0.0.1:1"}], "vllm_check_startup_grace": 0},
            "far": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1},
        },
        ansible_python_interpreter=str(environment_of(core) / "bin" / "python"),
    )


def test_the_module_is_found_by_a_command_in_the_clone(core: str, clone: Path, tmp_path: Path, servers: Servers):
    ansible = Ansible(core, clone, tmp_path)
    arguments = json.dumps({"servers": [{"url": servers.busy.url}]})
    run = ansible("ansible", "works", "-i", fleet(tmp_path / "i", core, servers), "-m", "fleetcheck.vllm.vllm_health_info",
                  "-a", arguments)
    assert run.code == 0
    assert '"verdict": "busy"' in run.output
    assert "WARNING" not in run.output


def test_the_documentation_is_found_in_the_clone(core: str, clone: Path, tmp_path: Path):
    ansible = Ansible(core, clone, tmp_path)
    assert "vllm_health_info" in ansible("ansible-doc", "fleetcheck.vllm.vllm_health_info").output
    assert "vllm_check_patience" in ansible("ansible-doc", "-t", "role", "fleetcheck.vllm.vllm_check").output
    run = ansible("ansible-doc", "-t", "filter", *(f"fleetcheck.vllm.{name}" for name in FILTERS))
    assert run.code == 0
    assert all(f"fleetcheck.vllm.{name}" in run.output.lower() for name in FILTERS)


def test_the_example_inventory_is_what_the_clone_uses_and_can_be_exported_without_a_password(
    core: str, clone: Path, tmp_path: Path
):
    run = Ansible(core, clone, tmp_path)("ansible-inventory", "--list", "--export")
    assert run.code == 0
    exported = json.loads(run.output)
    assert exported["vllm_packed"]["vars"]["vllm_servers"][2]["patience"] == 30
    assert "__ansible_vault" in run.output


def test_a_later_play_finds_the_hosts_in_groups_by_verdict(
    core: str, anywhere: Anywhere, clone: Path, tmp_path: Path, servers: Servers
):
    playbook = clone / "playbooks" / f"own-{core}.yml"
    playbook.write_text(OWN_PLAYBOOK)
    run = anywhere(core)("ansible-playbook", "-i", fleet(tmp_path, core, servers), playbook)
    assert run.code == 0
    assert "dead: gone refused" in run.output
    assert "other: works vllm_busy" in run.output
    assert "other: far vllm_unreachable" in run.output
    assert "WARNING" not in run.output


def test_a_world_writable_clone_works_although_its_configuration_is_ignored(newest: str, tmp_path: Path, servers: Servers):
    folder = copy_to(tmp_path / "clone")
    folder.chmod(0o777)
    run = Ansible(newest, folder, tmp_path)(
        "ansible-playbook", "-i", fleet(tmp_path / "i", newest, servers), "playbooks/check.yml", "--limit", "works"
    )
    assert "world writable" in run.output
    assert run.code == 0
    assert run.row("works").split()[2] == "busy"


@pytest.fixture(scope="session", params=[CORES[0], CORES[-1]], ids=["oldest", "newest"])
def installation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The collection built and installed by a release, and the folder it is in."""
    core = installed(request.param)
    folder = tmp_path_factory.mktemp("built")
    ansible = Ansible(core, copy_to(folder / "source"), folder)
    assert ansible("ansible-galaxy", "collection", "build", "--output-path", folder).code == 0
    (artifact,) = folder.glob("fleetcheck-vllm-*.tar.gz")
    run = ansible("ansible-galaxy", "collection", "install", artifact, "-p", folder / "collections", "--offline")
    assert run.code == 0, run.output
    shutil.rmtree(folder / "source")
    return core, folder / "collections"


def test_the_installed_playbook_runs_by_its_name(
    installation: tuple[str, Path], anywhere: Anywhere, tmp_path: Path, servers: Servers
):
    core, collections = installation
    run = anywhere(core)(
        "ansible-playbook", "-i", fleet(tmp_path, core, servers), "fleetcheck.vllm.check",
        ANSIBLE_COLLECTIONS_PATH=str(collections),
    )
    assert [line.split()[0] for line in run.table] == ["gone", "far", "works"]
    assert run.code == 2


def test_what_is_installed_is_the_collection_and_not_its_workshop(installation: tuple[str, Path]):
    _, collections = installation
    folder = collections / "ansible_collections" / "fleetcheck" / "vllm"
    assert not [name for name in ("Makefile", "pyproject.toml", ".ci", "playbooks/collections") if (folder / name).exists()]
    assert (folder / "roles" / "vllm_check" / "files" / "find_python.py").exists()


@pytest.mark.parametrize("callback", ["minimal", "oneline"])
def test_the_table_is_there_under_any_callback(
    callback: str, newest: str, anywhere: Anywhere, clone: Path, tmp_path: Path, servers: Servers
):
    run = anywhere(newest)(
        "ansible-playbook", "-i", fleet(tmp_path, newest, servers), clone / "playbooks" / "check.yml",
        ANSIBLE_STDOUT_CALLBACK=callback,
    )
    assert "HOST   SERVER" in run.output
    assert "need attention: gone http://127.0.0.1:1 dead (refused), far unreachable." in run.output


def test_the_table_reads_well_as_yaml(newest: str, anywhere: Anywhere, clone: Path, tmp_path: Path, servers: Servers):
    run = anywhere(newest)(
        "ansible-playbook", "-i", fleet(tmp_path, newest, servers), clone / "playbooks" / "check.yml",
        ANSIBLE_CALLBACK_RESULT_FORMAT="yaml",
    )
    lines = run.output.splitlines()
    (head,) = [line for line in lines if "- HOST" in line]
    (row,) = [line for line in lines if "- gone" in line]
    assert row.index("dead") == head.index("VERDICT")


def test_the_output_of_a_fleet_of_200_servers_is_small(
    newest: str, anywhere: Anywhere, clone: Path, tmp_path: Path, servers: Servers
):
    forty = [{"url": servers.idle.url, "name": f"vllm@{number:02}.service"} for number in range(40)]
    hosts = inventory(
        tmp_path,
        {f"gpu-{number:02}.example.com": {"vllm_servers": forty} for number in range(5)},
        ansible_python_interpreter=str(environment_of(newest) / "bin" / "python"),
        vllm_check_probe=False,
    )
    run = anywhere(newest)("ansible-playbook", "-i", hosts, clone / "playbooks" / "check.yml")
    assert run.code == 0
    assert len(run.table) == 200
    assert len(run.output.encode()) < 200_000
