"""One run on the controller judges a whole fleet as a run on each host does, without a connection to any of them."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest

from tests.integration.ansible.conftest import KEY, Anywhere, Servers
from tests.integration.ansible.running import Ansible, Run, inventory
from tests.integration.ansible.test_check_playbook import ROWS, fleet

# Later plays find the hosts in their groups.
PLAYBOOK = """\
- import_playbook: check.yml

- hosts: vllm_busy:vllm_idle:vllm_serving:vllm_stuck:vllm_dead
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "later: {{ inventory_hostname }} {{ group_names | select('match', 'vllm_') | join(',') }}"

- hosts: vllm_stuck
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "result: {{ inventory_hostname }} {{ vllm_check_result.servers[0].reason }}"
"""
# Nobody listens there: whoever connects to a host fails.
NO_WAY = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}


class Checked(t.NamedTuple):
    """A run over the fleet and its report."""

    run: Run
    report: dict[str, t.Any]


def play(ansible: Ansible, hosts: Path, playbook: Path, *more: str) -> Run:
    """Run a playbook from the controller; the verdicts themselves fail nothing."""
    chosen = ["-e", "vllm_check_from=controller", "-e", "vllm_fail_on=none", *more]
    return ansible("ansible-playbook", "-i", hosts, playbook, *chosen)


@pytest.fixture(scope="module")
def checked(edge: str, anywhere: Anywhere, clone: Path, servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """One run over the fleet that the playbook is tested with host by host."""
    hosts = inventory(
        tmp_path_factory.mktemp("inventory"),
        {name: {**variables, **NO_WAY} for name, variables in fleet(servers).items() if name != "unreachable"},
        vllm_check_patience=3,
        vllm_check_startup_grace=0,
    )
    ansible = anywhere(edge)
    run = play(ansible, hosts, clone / "playbooks" / "check.yml", "-e", "vllm_report_file=report.json")
    return Checked(run, json.loads((ansible.folder / "report.json").read_text()))


def test_every_server_has_the_verdict_that_it_has_on_its_host(checked: Checked):
    rows = [line.split()[:4] for line in checked.run.table]
    assert [(host, verdict, reason) for host, _, verdict, reason in rows] == [row for row in ROWS if row[0] != "unreachable"]
    assert checked.report["hosts"] == {"checked": 7, "unreachable": 0, "failed": 3}


def test_later_plays_find_each_host_in_the_group_of_its_verdict(
    edge: str, anywhere: Anywhere, clone: Path, servers: Servers, tmp_path: Path
):
    kept = ("busy", "idle", "frozen", "dead", "proxy")
    hosts = inventory(
        tmp_path,
        {name: {**fleet(servers)[name], **NO_WAY} for name in kept},
        vllm_check_patience=3,
        vllm_check_startup_grace=0,
    )
    playbook = clone / "playbooks" / f"from-here-{edge}.yml"
    playbook.write_text(PLAYBOOK)
    run = play(anywhere(edge), hosts, playbook)
    assert run.code == 0, run.output
    groups = {"busy": "busy", "idle": "idle", "frozen": "stuck", "dead": "dead", "proxy": "serving"}
    assert all(f"later: {host} vllm_{group}\"" in run.output for host, group in groups.items())
    assert "result: frozen no_progress" in run.output


def test_a_wrong_setting_of_one_host_is_named_and_stops_no_other(checked: Checked):
    assert "patience is 'soon'" in checked.run.row("wrong")
    assert "colour" in checked.run.row("worse")
    assert "vault_key_that_nobody_gave" in checked.run.row("locked")


def test_what_servers_say_is_never_rendered_and_no_secret_is_shown(checked: Checked, servers: Servers):
    (row,) = [row for row in checked.report["servers"] if row["host"] == "hostile"]
    assert "lookup" in row["models"][0]
    assert not servers.mark.exists()
    assert KEY not in checked.run.output + json.dumps(checked.report)


def test_ansible_has_nothing_to_warn_of(checked: Checked):
    assert "WARNING" not in checked.run.output
    assert "DEPRECAT" not in checked.run.output.upper()


def test_settings_that_must_be_alike_are_named_where_they_are_not(
    edge: str, anywhere: Anywhere, clone: Path, servers: Servers, tmp_path: Path
):
    same = {"vllm_servers": [{"url": servers.idle.url}], **NO_WAY}
    hosts = inventory(tmp_path, {"a": same, "b": {**same, "vllm_check_timeout": 3}})
    run = play(anywhere(edge), hosts, clone / "playbooks" / "check.yml")
    assert run.code != 0
    assert "vllm_check_timeout differs between hosts (10, 3)" in run.output


def test_a_fleet_of_which_no_host_can_be_read_still_has_a_table(
    newest: str, anywhere: Anywhere, clone: Path, tmp_path: Path
):
    hosts = inventory(tmp_path, {"a": {"vllm_servers": [], **NO_WAY}, "b": {"vllm_servers": {"url": "x"}, **NO_WAY}})
    run = play(anywhere(newest), hosts, clone / "playbooks" / "check.yml")
    assert run.code != 0
    assert "vllm_servers is 'empty'" in run.row("a")
    assert "vllm_servers is 'one dictionary'" in run.row("b")


def test_another_place_to_check_from_is_an_error(newest: str, anywhere: Anywhere, clone: Path, tmp_path: Path):
    hosts = inventory(tmp_path, {"a": NO_WAY})
    run = play(anywhere(newest), hosts, clone / "playbooks" / "check.yml", "-e", "vllm_check_from=controler")
    assert run.code != 0
    assert "vllm_check_from is 'controler': it must be host or controller" in run.output
    assert "TASK [Show the fleet" not in run.output


def test_more_servers_than_one_process_judges(newest: str, anywhere: Anywhere, clone: Path, servers: Servers, tmp_path: Path):
    kinds = [servers.idle, servers.busy, servers.queued]
    many = {f"h{number:03}": {"vllm_servers": [{"url": kinds[number % 3].url}], **NO_WAY} for number in range(90)}
    hosts = inventory(tmp_path, many, vllm_check_probe=False)
    run = play(anywhere(newest), hosts, clone / "playbooks" / "check.yml", "-e", "vllm_check_patience=2")
    verdicts = {line.split()[0]: line.split()[2] for line in run.table}
    assert {host for host, verdict in verdicts.items() if verdict == "busy"} == set(list(many)[1::3] + list(many)[2::3])
    assert len(verdicts) == 90
