"""What an operator may say to playbooks/check.yml, and what a wrong word leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.ansible.conftest import KEY, Anywhere, Servers
from tests.integration.ansible.running import Ansible, environment_of, inventory

# AWX hands over what was typed at launch as text, marked so that nothing in it is a template.
AT_LAUNCH = """\
vllm_hosts: !unsafe "vllm"
vllm_check_patience: !unsafe "30"
vllm_check_timeout: !unsafe "5"
vllm_check_probe: !unsafe "true"
vllm_check_python: !unsafe ""
vllm_fail_on: !unsafe "stuck, dead, idle"
vllm_report_file: !unsafe ""
awx_job_id: 4711
"""

UNREACHABLE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}


@pytest.fixture
def ansible(edge: str, anywhere: Anywhere) -> Ansible:
    """A supported release, run from a folder that is not the repository."""
    return anywhere(edge)


@pytest.fixture
def playbook(clone: Path) -> Path:
    """The playbook of the clone."""
    return clone / "playbooks" / "check.yml"


@pytest.fixture
def two_hosts(tmp_path: Path, edge: str, servers: Servers) -> Path:
    """One busy host, and one idle server that asks for a key."""
    hosts = {
        "busy": {"vllm_servers": [{"url": servers.busy.url}]},
        "keyed": {"vllm_servers": [{"url": servers.keyed.url, "api_key": KEY}]},
    }
    return inventory(tmp_path, hosts, ansible_python_interpreter=str(environment_of(edge) / "bin" / "python"))


def test_in_check_mode_nothing_is_sent_and_with_any_verbosity_no_key_is_shown(
    ansible: Ansible, playbook: Path, two_hosts: Path, servers: Servers
):
    probes = servers.keyed.counts()["probes"]
    run = ansible("ansible-playbook", "-i", two_hosts, playbook, "--check", "-vvvv", "-e", "vllm_report_file=r.json")
    assert run.code == 0
    assert run.row("keyed").split()[2:4] == ["idle", "not_probed"]
    assert servers.keyed.counts()["probes"] == probes
    assert KEY not in run.output
    assert KEY not in (ansible.folder / "r.json").read_text()


def test_values_given_at_launch_in_awx_are_understood(ansible: Ansible, playbook: Path, two_hosts: Path):
    (ansible.folder / "launch.yml").write_text(AT_LAUNCH)
    run = ansible("ansible-playbook", "-i", two_hosts, playbook, "-e", "@launch.yml")
    assert "watched for at most 30 seconds" in run.output
    assert "fails for stuck, dead, idle" in run.output
    assert run.row("keyed").split()[2:4] == ["idle", "answered"]
    # Only because we said that idle fails it.
    assert run.code == 2


def test_a_healthy_fleet_ends_well_and_changes_nothing(ansible: Ansible, playbook: Path, two_hosts: Path):
    run = ansible("ansible-playbook", "-i", two_hosts, playbook, "--limit", "busy")
    assert run.code == 0
    assert [line.split()[0] for line in run.table] == ["busy"]
    assert "changed=0" in run.output
    assert "changed: [" not in run.output


def test_a_wrong_verdict_to_fail_on_is_an_error_before_anything_is_read(ansible: Ansible, playbook: Path, two_hosts: Path):
    run = ansible("ansible-playbook", "-i", two_hosts, playbook, "-e", "vllm_fail_on=stuk,dead")
    assert run.code != 0
    assert "vllm_fail_on: 'stuk' is no verdict. Give some of stuck, dead" in run.output
    assert "Read the vLLM servers" not in run.output


def test_a_check_of_no_host_is_an_error(ansible: Ansible, playbook: Path, two_hosts: Path):
    with (two_hosts / "hosts").open("a") as hosts:
        hosts.write("[web]\nother\n")
    run = ansible("ansible-playbook", "-i", two_hosts, playbook, "--limit", "other")
    assert run.code != 0
    assert "no host to check" in run.output
    assert "-e vllm_hosts=PATTERN" in run.output


def test_a_fleet_of_which_no_host_can_be_reached_is_still_a_table(ansible: Ansible, playbook: Path, tmp_path: Path):
    hosts = inventory(tmp_path, {"a": UNREACHABLE, "b": UNREACHABLE})
    run = ansible("ansible-playbook", "-i", hosts, playbook, "-e", "vllm_fail_on=none", "-e", "vllm_report_file=r.json")
    assert run.code == 2
    assert [line.split()[:4] for line in run.table] == [[host, "-", "unknown", "unreachable"] for host in "ab"]
    assert "2 of 2 need attention: a unreachable, b unreachable." in run.output
    assert (ansible.folder / "r.json").exists()


def test_verdicts_that_are_not_named_fail_nothing(newest: str, anywhere: Anywhere, playbook: Path, tmp_path: Path):
    hosts = inventory(
        tmp_path,
        {"dead": {"vllm_servers": [{"url": "http://127.0.0.1:1"}]}},
        ansible_python_interpreter=str(environment_of(newest) / "bin" / "python"),
        vllm_check_startup_grace=0,
    )
    run = anywhere(newest)("ansible-playbook", "-i", hosts, playbook, "-e", "vllm_fail_on=stuck")
    assert run.row("dead").split()[2] == "dead"
    assert run.code == 0
