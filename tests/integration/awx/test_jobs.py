"""check.yml and heal.yml as jobs of AWX."""

from __future__ import annotations

import pytest

from tests.integration.ansible.running import CORES
from tests.integration.awx.conftest import KEY, Launched, Servers, at, fleet_of

pytestmark = pytest.mark.awx

CHECK, HEAL = "playbooks/check.yml", "playbooks/heal.yml"


def test_verdicts_are_among_the_artifacts_also_of_a_job_that_fails(core: str, launched: Launched, servers: Servers):
    fleet = fleet_of({"a": at(servers.busy), "b": at(servers.idle), "c": at(servers.frozen)}, core, vllm_check_patience=3)
    job = launched(core, fleet, CHECK)
    assert (job.status, job.rc) == ("failed", 2)
    assert job.verdicts == {"a": "busy", "b": "idle", "c": "stuck"}
    assert set(job.artifacts) == {"vllm_fleet"}
    assert "1 of 3 need attention: c" in job.output
    assert job.warnings == []


def test_a_heal_with_nothing_stuck_ends_well_and_changes_nothing(edge: str, launched: Launched, servers: Servers):
    job = launched(edge, fleet_of({"a": at(servers.busy), "b": at(servers.idle)}, edge), HEAL)
    assert (job.status, job.rc) == ("successful", 0), job.output
    assert job.verdicts == {"a": "busy", "b": "idle"}
    assert not any(job.fleet["restarts"].values())
    assert "changed=0" in job.output
    assert job.warnings == []


def test_a_dry_heal_is_a_job_of_type_check(usual: str, launched: Launched, servers: Servers):
    fleet = fleet_of({"a": at(servers.busy), "c": at(servers.frozen)}, usual, vllm_check_patience=3)
    job = launched(usual, fleet, HEAL, job_type="check")
    assert job.verdicts == {"a": "busy", "c": "stuck"}
    assert job.fleet["restarts"]["restarted"] == 0
    assert job.warnings == []


SURVEY = {
    "vllm_check_patience": "3",
    "vllm_restart_max_per_run": "2",
    "vllm_restart_serial": "1",
    "vllm_fail_on": "dead, unresponsive",
    "vllm_check_probe": "true",
    "vllm_restart_become": "false",
    "vllm_restart_dry_run": "no",
}


def test_text_given_at_launch_is_understood_and_never_a_template(edge: str, launched: Launched, servers: Servers):
    fleet = fleet_of({"a": at(servers.busy), "c": at(servers.frozen)}, edge, vllm_check_patience=300)
    playbook = CHECK if edge == CORES[0] else HEAL  # both start with the same tasks
    job = launched(edge, fleet, playbook, asked_vars={**SURVEY, "vllm_note": "{{ lookup('ansible.builtin.pipe', 'id') }}"})
    assert "watched for at most 3 seconds" in job.output
    assert "fails for dead, unresponsive, a host" in job.output
    assert job.verdicts["c"] == "stuck"
    assert job.status == "successful", job.output


def test_numbers_of_a_survey_are_numbers(usual: str, launched: Launched, servers: Servers):
    job = launched(usual, fleet_of({"a": at(servers.busy)}, usual), HEAL, asked_vars={
        "vllm_check_patience": 30, "vllm_restart_max_per_run": 1, "vllm_restart_serial": 2})
    assert "watched for at most 30 seconds" in job.output
    assert job.status == "successful"


def test_a_limit_given_at_launch_holds(usual: str, launched: Launched, servers: Servers):
    fleet = fleet_of({"a": at(servers.busy), "b": at(servers.idle), "c": at(servers.frozen)}, usual)
    assert launched(usual, fleet, CHECK, limit="a:b").verdicts == {"a": "busy", "b": "idle"}


def test_a_key_of_a_credential_reaches_the_server_and_nobody_else(usual: str, launched: Launched, servers: Servers):
    fleet = fleet_of({"k": at(servers.keyed, api_key="{{ vault_vllm_api_key }}")}, usual)
    job = launched(usual, fleet, CHECK, credential_vars={"vault_vllm_api_key": KEY})
    assert job.verdicts == {"k": "idle"}
    assert KEY not in str(job.events)
    assert launched(usual, fleet, CHECK, credential_vars={"vault_vllm_api_key": ""}).verdicts == {"k": "unknown"}


def test_a_heal_that_follows_a_check_in_a_workflow_looks_for_itself(usual: str, launched: Launched, servers: Servers):
    # Artifacts become variables of the next job, with whatever is in them.
    before = {**launched(usual, fleet_of({"a": at(servers.idle)}, usual), CHECK).artifacts}
    before["vllm_fleet"]["servers"][0]["verdict"] = "stuck"
    before["vllm_fleet"]["servers"][0]["models"] = ["{{ lookup('ansible.builtin.pipe', 'id') }}"]
    job = launched(usual, fleet_of({"a": at(servers.idle), "b": at(servers.busy)}, usual), HEAL, asked_vars=before)
    assert job.verdicts == {"a": "idle", "b": "busy"}
    assert not any(job.fleet["restarts"].values())


def test_slices_divide_the_fleet_and_each_reports_its_own(usual: str, launched: Launched, servers: Servers):
    fleet = fleet_of({name: at(servers.busy) for name in "abcde"}, usual)
    jobs = [launched(usual, fleet, CHECK, slice_number=number, slice_count=2) for number in (1, 2)]
    assert [sorted(job.verdicts) for job in jobs] == [["a", "c", "e"], ["b", "d"]]
    assert [job.fleet["hosts"]["checked"] for job in jobs] == [3, 2]


def test_a_slice_without_a_server_fails_and_says_why(usual: str, launched: Launched, servers: Servers):
    fleet = fleet_of({"a": at(servers.busy)}, usual)
    fleet["_meta"]["hostvars"]["z"] = {}
    fleet["web"] = {"hosts": ["z"]}
    job = launched(usual, fleet, CHECK, slice_number=2, slice_count=2)
    assert job.status == "failed"
    assert "no host to check" in job.output
