"""The role vllm_report through real Ansible: the page, the kept reports, the metrics, and nothing that was not asked for."""

from __future__ import annotations

import json
import os
import stat
import typing as t
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.ansible.running import CORES, Ansible, Run, environment_of, inventory
from tests.integration.report.fleets import bad_night, row
from tests.tools.checkout import copy_to

PLAYBOOK = """
- name: Show a report
  hosts: vllm
  gather_facts: false
  vars:
    said_by_strangers: !unsafe "yes"
  tasks:
    - name: Put the report where check.yml puts it
      run_once: true
      ansible.builtin.set_fact:
        vllm_fleet: "{{ lookup('ansible.builtin.file', report_file) | from_json if said_by_strangers }}"
    - name: Show it
      ansible.builtin.import_role:
        name: fleetcheck.vllm.vllm_report
"""
AT = "2026-11-29T22:00:00Z"
HOSTS = ("gpu-07", "gpu-03")
NOISE = ("[WARNING]", "[DEPRECATION WARNING]", "[ERROR]")


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as a clone has it, with a playbook that only reports."""
    folder = copy_to(tmp_path_factory.mktemp("clone"))
    (folder / "playbooks" / "show.yml").write_text(PLAYBOOK)
    return folder


class Stage:
    """An inventory, a release of Ansible, and a folder to report into."""

    def __init__(self, core: str, clone: Path, folder: Path) -> None:
        if not (environment_of(core) / "bin" / "ansible-playbook").exists():
            pytest.skip(f"ansible-core {core} is not installed in .venvs (make envs)")
        self.folder, self.clone = folder, clone
        self.page, self.mark = folder / "www" / "index.html", folder / "mark"
        (folder / "home").mkdir()
        self.ansible = Ansible(core, folder, folder / "home")
        python = str(environment_of(core) / "bin" / "python")
        self.hosts = inventory(folder / "inventory", {host: {} for host in HOSTS}, ansible_python_interpreter=python)

    def show(self, report: t.Mapping[str, t.Any], *arguments: str, **variables: t.Any) -> Run:
        """Run the role with a report and variables."""
        file, report_file = self.folder / "vars.json", self.folder / "report.json"
        report_file.write_text(json.dumps(report))
        file.write_text(json.dumps({**variables, "report_file": str(report_file)}))
        playbook = self.clone / "playbooks" / "show.yml"
        return self.ansible("ansible-playbook", "-i", self.hosts, playbook, "-e", f"@{file}", *arguments)

    def kept(self) -> list[str]:
        """The names of the kept reports."""
        return sorted(path.name for path in self.page.parent.glob("*.json"))


class Shown(t.NamedTuple):
    """A run that wrote all there is, and the text by which an enemy tried to be run."""

    stage: Stage
    run: Run
    attack: str


@pytest.fixture(scope="module", params=[CORES[0], CORES[-1]])
def shown(request: pytest.FixtureRequest, clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """One run on the oldest and the newest ansible-core that writes all that can be written, of a fleet with an enemy in it."""
    stage = Stage(request.param, clone, tmp_path_factory.mktemp("stage"))
    attack = f"{{{{ lookup('ansible.builtin.pipe', 'touch {stage.mark}') }}}}"
    hostile = row("gpu-03", attack, "busy", "progress", attack, [], models=[attack], action=attack)
    for host in HOSTS:
        (stage.folder / host).mkdir()
    run = stage.show(
        report(AT, hostile),
        vllm_report_page=str(stage.page),
        vllm_report_textfile_dir=str(stage.folder) + "/{{ inventory_hostname }}",
    )
    assert run.code == 0, run.output
    return Shown(stage, run, attack)


@pytest.fixture
def newest(clone: Path, tmp_path: Path) -> Stage:
    """The newest ansible-core, for what does not depend on it."""
    return Stage(CORES[-1], clone, tmp_path)


def report(at: str, *more: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """A report of one moment."""
    return {**bad_night(), "checked_at": at, "servers": [*bad_night()["servers"], *more]}


def metrics(path: Path) -> dict[tuple, float]:
    """The samples of a file of metrics."""
    families = text_string_to_metric_families(path.read_text(encoding="utf-8"))
    return {(one.name, *sorted(one.labels.values())): one.value for family in families for one in family.samples}


def test_the_page_and_the_report_lie_where_they_were_asked_for(shown: Shown):
    page = shown.stage.page
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "<h1>" in text and text.endswith("</html>\n")
    assert shown.stage.kept() == ["vllm-report-20261129T220000Z.json"]
    assert json.loads((page.parent / shown.stage.kept()[0]).read_text())["checked_at"] == AT
    assert stat.S_IMODE(page.stat().st_mode) == 0o644


def test_each_host_writes_the_metrics_of_its_own_servers(shown: Shown):
    chat = "vllm@chat.service"
    seven, three = (metrics(shown.stage.folder / host / "vllm_fleetcheck.prom") for host in HOSTS)
    assert seven["vllm_fleetcheck_verdict", "stuck", chat] == 1 and seven["vllm_fleetcheck_verdict", "busy", chat] == 0
    assert seven["vllm_fleetcheck_silent_seconds", "0", chat] == 121
    assert seven["vllm_fleetcheck_restart_held", "quarantined", chat] == 1
    assert three["vllm_fleetcheck_verdict", "dead", chat] == 1
    assert [os.listdir(shown.stage.folder / host) for host in HOSTS] == [["vllm_fleetcheck.prom"]] * 2


def test_what_servers_call_themselves_is_never_a_template(shown: Shown):
    assert not shown.stage.mark.exists()
    assert "&#123;&#123; lookup(" in shown.stage.page.read_text(encoding="utf-8")
    assert shown.attack in (shown.stage.folder / "gpu-03" / "vllm_fleetcheck.prom").read_text(encoding="utf-8")
    rows = json.loads((shown.stage.page.parent / shown.stage.kept()[0]).read_text())["servers"]
    assert rows[-1]["message"] == shown.attack


def test_the_run_is_quiet_and_changes_nothing(shown: Shown):
    assert not [word for word in NOISE if word in shown.run.output], shown.run.output
    assert "changed=0" in shown.run.output and len(shown.run.output) < 20_000


def test_the_next_page_has_a_history_and_old_reports_go(newest: Stage):
    newest.page.parent.mkdir()
    (newest.page.parent / "mine.json").write_text("{}")
    for minute in (50, 51, 52):
        at = f"2026-11-29T21:{minute}:00Z"
        (newest.page.parent / f"vllm-report-20261129T21{minute}00Z.json").write_text(json.dumps(report(at)))
    run = newest.show(report(AT), vllm_report_page=str(newest.page), vllm_report_keep=2)
    assert run.code == 0, run.output
    assert newest.kept() == ["mine.json", "vllm-report-20261129T215200Z.json", "vllm-report-20261129T220000Z.json"]
    text = newest.page.read_text(encoding="utf-8")
    assert "Last runs" in text and "(4 runs)" in text
    assert "mine.json" in text and "it is no report of a fleet" in text


def test_no_report_is_kept_where_none_was_asked_for_and_a_relative_path_starts_where_ansible_was_called(newest: Stage):
    run = newest.show(report(AT), vllm_report_page="www/index.html", vllm_report_keep=0)
    assert run.code == 0, run.output
    assert newest.page.exists() and newest.kept() == []


def test_check_mode_writes_nothing(newest: Stage):
    textfiles = newest.folder / "textfiles"
    textfiles.mkdir()
    run = newest.show(
        report(AT), "--check", vllm_report_page=str(newest.page), vllm_report_textfile_dir=str(textfiles),
        vllm_report_pushgateway="http://127.0.0.1:1",
    )  # fmt: skip
    assert run.code == 0, run.output
    assert not newest.page.exists() and list(textfiles.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(newest: Stage):
    run = newest.show(report(AT), vllm_report_textfile_dir="/no/such/folder")
    assert run.code == 2
    assert "/no/such/folder" in run.output and "no folder of this host" in run.output


def test_a_pushgateway_that_is_not_there_is_named_and_the_password_is_not_shown(newest: Stage):
    run = newest.show(
        report(AT), "-vvv", vllm_report_pushgateway="http://127.0.0.1:1", vllm_report_pushgateway_username="me",
        vllm_report_pushgateway_password="s3cret-word",
    )  # fmt: skip
    assert run.code == 2
    assert "took the verdicts on 0 of 25 hosts" in run.output and "refused" in run.output
    assert "s3cret-word" not in run.output
