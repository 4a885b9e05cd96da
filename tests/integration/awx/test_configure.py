"""playbooks/awx_configure.yml with the real modules of awx.awx, against a stand-in for AWX."""

from __future__ import annotations

import os
import subprocess
import typing as t
from pathlib import Path

import pytest
import yaml

from tests.integration.ansible.running import Run
from tests.integration.awx import collection, offered
from tests.integration.awx.fake_awx import KINDS, Awx, Server
from tests.integration.awx.jobs import RUNNER

pytestmark = pytest.mark.awx

KEY = "sk-a-key-that-must-not-be-seen"
URL = "awx_project_url=https://git.example.org/our/fleetcheck-vllm.git"
NAMES = {
    "execution_environments": ["vLLM"],
    "credential_types": ["vLLM API keys"],
    "credentials": ["vLLM API keys"],
    "projects": ["vLLM fleetcheck"],
    "inventories": ["vLLM fleet"],
    "inventory_sources": ["vLLM fleet from Git"],
    "job_templates": ["vLLM check", "vLLM heal"],
    "schedules": ["vLLM check every 5 minutes"],
    "workflow_job_templates": ["vLLM check, ask, heal", "vLLM check, heal"],
}


class Configured(t.NamedTuple):
    """An AWX and the way to configure it."""

    awx: Awx
    configure: t.Callable[..., Run]


@pytest.fixture(scope="module")
def configured(project: Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Configured]:
    """An AWX that was configured once, with a key in the environment."""
    if not (RUNNER / "ansible-playbook").exists():
        pytest.skip("ansible-core is not installed in .venvs/awx (make envs)")
    collections = collection.unpacked()
    home = tmp_path_factory.mktemp("home")
    awx = Awx(offered.playbooks(project))
    with Server(awx) as server:

        def configure(*said: str, **environment: str) -> Run:
            command = [RUNNER / "ansible-playbook", "-i", "localhost,", project / "playbooks" / "awx_configure.yml"]
            command += [word for one in said for word in ("-e", one)]
            kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "CONTROLLER_"))}
            ours = {
                "HOME": str(home), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_COLLECTIONS_PATH": str(collections),
                "CONTROLLER_HOST": server.url, "CONTROLLER_USERNAME": "admin", "CONTROLLER_PASSWORD": "a-password",
            }
            done = subprocess.run(
                command, cwd=home, env={**kept, **ours, **environment}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=400)
            return Run(done.returncode, done.stdout)

        yield Configured(awx, configure)


@pytest.fixture(scope="module")
def first(configured: Configured) -> Run:
    """The first run."""
    run = configured.configure(URL, VLLM_API_KEY=KEY)
    assert run.code == 0, run.output
    return run


@pytest.fixture
def awx(configured: Configured, first: Run) -> Awx:
    """What AWX has after the first run."""
    return configured.awx


def changes(run: Run) -> list[str]:
    """The tasks that changed something, with what they changed."""
    tasks = [task.splitlines() for task in run.output.split("TASK ")[1:]]
    return [f"{lines[0]} {line}" for lines in tasks for line in lines if line.startswith("changed: ")]


def made(awx: Awx) -> dict[str, list[str]]:
    """The names of everything but nodes."""
    return {kind: sorted(awx.named(kind)) for kind in NAMES}


def test_nothing_is_done_without_the_address_of_the_repository(configured: Configured):
    run = configured.configure()
    assert run.code != 0
    assert "awx_project_url is the address of your repository" in run.output
    assert not any(configured.awx.objects[kind] for kind in NAMES)


def test_one_run_makes_everything(awx: Awx, first: Run):
    assert made(awx) == NAMES
    assert "WARNING" not in first.output
    assert "DEPRECAT" not in first.output.upper()


def test_the_templates_ask_for_limit_variables_and_job_type_and_run_one_at_a_time(awx: Awx):
    for template in awx.named("job_templates").values():
        assert [template[f"ask_{what}_on_launch"] for what in ("limit", "variables", "job_type")] == [True] * 3
        assert template["allow_simultaneous"] is False
        assert template["survey_enabled"] is True
        assert template["execution_environment"] in awx.objects["execution_environments"]


def test_the_surveys_ask_for_variables_of_the_roles_and_need_no_answer(awx: Awx, project: Path):
    asked = {awx.objects["job_templates"][number]["name"]: spec["spec"] for (_kind, number), spec in awx.surveys.items()}
    variables = {name: [question["variable"] for question in spec] for name, spec in asked.items()}
    assert variables == {
        "vLLM check": ["vllm_check_patience", "vllm_fail_on"],
        "vLLM heal": [
            "vllm_check_patience",
            "vllm_restart_dry_run",
            "vllm_restart_max_per_run",
            "vllm_restart_serial",
            "vllm_fail_on",
        ],
    }
    files = [project / "roles" / role / "meta" / "argument_specs.yml" for role in ("vllm_check", "vllm_restart")]
    specs = [yaml.safe_load(file.read_text()) for file in files]
    known = {name for spec in specs for name in spec["argument_specs"]["main"]["options"]} | {"vllm_fail_on"}
    questions = [question for spec in asked.values() for question in spec]
    assert {question["variable"] for question in questions} <= known
    # A question with a default would send it every time, over what the inventory says of a group.
    assert not any(question["required"] or "default" in question for question in questions)


def test_the_check_runs_every_five_minutes(awx: Awx):
    (schedule,) = awx.named("schedules").values()
    assert schedule["rrule"] == "DTSTART;TZID=UTC:20260101T000000 RRULE:FREQ=MINUTELY;INTERVAL=5"
    assert schedule["enabled"] is True
    assert schedule["unified_job_template"] == awx.named("job_templates")["vLLM check"]["id"]


def test_the_heal_follows_a_check_that_fails_with_or_without_a_question(awx: Awx):
    assert {name: ways(awx, workflow["id"]) for name, workflow in awx.named("workflow_job_templates").items()} == {
        "vLLM check, ask, heal": {("check", "failure", "ask"), ("ask", "success", "heal")},
        "vLLM check, heal": {("check", "failure", "heal")},
    }
    (approval,) = awx.named("workflow_approval_templates").values()
    assert (approval["name"], approval["timeout"]) == ("Restart what is stuck?", 3600)


def ways(awx: Awx, workflow: int) -> set[tuple[str, str, str]]:
    """From which node of a workflow one comes to which other, and when."""
    everywhere = awx.objects["workflow_job_template_nodes"].items()
    nodes = {number: node for number, node in everywhere if node["workflow_job_template"] == workflow}
    return {
        (node["identifier"], when, nodes[after]["identifier"])
        for number, node in nodes.items()
        for when in ("success", "failure", "always")
        for after in awx.linked("workflow_job_template_nodes", number, f"{when}_nodes")
    }


def test_keys_are_secret_and_reach_jobs_as_the_variables_of_the_inventory(awx: Awx, first: Run):
    (kind,) = awx.named("credential_types").values()
    assert kind["inputs"] == {"fields": [
        {"id": "vault_vllm_api_key", "label": "vault_vllm_api_key", "type": "string", "secret": True}]}
    assert kind["injectors"] == {"extra_vars": {"vault_vllm_api_key": "{{ vault_vllm_api_key }}"}}
    (credential,) = awx.named("credentials").values()
    assert credential["inputs"] == {"vault_vllm_api_key": KEY}
    assert KEY not in first.output
    for template in awx.named("job_templates").values():
        assert awx.linked("job_templates", template["id"], "credentials") == [credential["id"]]


def test_the_project_is_fetched_and_the_inventory_imported_once(awx: Awx):
    assert awx.fetched == ["vLLM fleetcheck", "vLLM fleet from Git"]
    (source,) = awx.named("inventory_sources").values()
    assert (source["source_path"], source["overwrite"], source["overwrite_vars"]) == ("inventory/example", True, True)


def test_another_run_changes_nothing_and_keeps_the_key(configured: Configured, awx: Awx):
    run = configured.configure(URL)
    assert run.code == 0, run.output
    assert changes(run) == []
    assert awx.named("credentials")["vLLM API keys"]["inputs"] == {"vault_vllm_api_key": KEY}
    assert made(awx) == NAMES


def test_a_change_in_the_file_is_a_change_in_awx(configured: Configured, awx: Awx):
    run = configured.configure(URL, "awx_execution_environment_image=registry.example.com/vllm-ee:1", "awx_update_secrets=true",
                               "awx_sync=true", VLLM_API_KEY="sk-another")
    assert run.code == 0, run.output
    assert awx.named("execution_environments")["vLLM"]["image"] == "registry.example.com/vllm-ee:1"
    assert awx.named("credentials")["vLLM API keys"]["inputs"] == {"vault_vllm_api_key": "sk-another"}
    assert awx.fetched == ["vLLM fleetcheck", "vLLM fleet from Git"] * 2
    assert "sk-another" not in run.output


def test_all_of_it_can_be_removed_and_nothing_else_goes(configured: Configured, awx: Awx):
    run = configured.configure("awx_state=absent")
    assert run.code == 0, run.output
    assert {kind: names for kind in KINDS if (names := sorted(awx.named(kind)))} == {"organizations": ["Default"]}
    again = configured.configure("awx_state=absent")
    assert (again.code, changes(again)) == (0, []), again.output


def test_without_keys_there_is_no_credential(configured: Configured, awx: Awx):
    run = configured.configure(URL, '{"awx_api_keys": {}}')
    assert run.code == 0, run.output
    assert not awx.objects["credentials"]
    assert sorted(awx.named("job_templates")) == NAMES["job_templates"]
