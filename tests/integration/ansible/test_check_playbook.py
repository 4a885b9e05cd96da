"""playbooks/check.yml over a fleet in which everything is the matter at once, from a clone, in another folder."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest

from tests.integration.ansible.conftest import KEY, Anywhere, Servers
from tests.integration.ansible.running import Run, environment_of, inventory

PATIENCE = 3


class Checked(t.NamedTuple):
    """A run over the fleet, its report and what the servers saw of it."""

    run: Run
    report: dict[str, t.Any]
    probes: dict[str, int]


def fleet(servers: Servers) -> dict[str, dict[str, t.Any]]:
    """The hosts of the fleet with their variables."""
    return {
        "unreachable": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1},
        "busy": {"vllm_servers": [{"url": servers.busy.url}, {"url": servers.queued.url, "name": "queued"}]},
        "idle": {"vllm_servers": [{"url": servers.idle.url}]},
        "frozen": {"vllm_servers": [{"url": servers.frozen.url}]},
        "dead": {"vllm_servers": [{"url": "http://127.0.0.1:1", "name": "gone"}]},
        "keyed": {"vllm_servers": [{"url": servers.keyed.url, "api_key": KEY}]},
        "hostile": {"vllm_servers": [{"url": servers.hostile.url}]},
        "proxy": {"vllm_servers": [{"url": servers.proxy.url, "kind": "proxy"}]},
        "wrong": {"vllm_check_patience": "soon"},
        "worse": {"vllm_servers": [{"url": servers.idle.url, "colour": "red"}]},
        "locked": {"vllm_servers": [{"api_key": "{{ vault_key_that_nobody_gave }}"}]},
    }


# Host, verdict and reason, in the order of the table.
ROWS = [
    ("frozen", "stuck", "no_progress"),
    ("dead", "dead", "refused"),
    ("unreachable", "unknown", "unreachable"),
    ("wrong", "unknown", "check_failed"),
    ("worse", "unknown", "check_failed"),
    ("locked", "unknown", "check_failed"),
    ("busy", "busy", "progress"),
    ("busy", "busy", "progress"),
    ("idle", "idle", "answered"),
    ("keyed", "idle", "answered"),
    ("hostile", "idle", "answered"),
    ("proxy", "serving", "models_listed"),
]


@pytest.fixture(scope="module")
def checked(core: str, anywhere: Anywhere, clone: Path, servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """One run over the whole fleet."""
    before = {name: sim.counts()["probes"] for name, sim in servers._asdict().items() if name != "mark"}
    hosts = inventory(
        tmp_path_factory.mktemp("inventory"),
        fleet(servers),
        ansible_python_interpreter=str(environment_of(core) / "bin" / "python"),
        vllm_check_patience=PATIENCE,
        vllm_check_startup_grace=0,
    )
    ansible = anywhere(core)
    run = ansible(
        "ansible-playbook", "-i", hosts, clone / "playbooks" / "check.yml", "--forks", "11",
        "-e", "vllm_report_file=report.json", ANSIBLE_SHOW_CUSTOM_STATS="1",
    )
    report = json.loads((ansible.folder / "report.json").read_text())
    after = {name: getattr(servers, name).counts()["probes"] for name in before}
    return Checked(run, report, {name: after[name] - before[name] for name in before})


def test_every_server_is_a_row_worst_first(checked: Checked):
    rows = [line.split()[:4] for line in checked.run.table]
    assert [(host, verdict, reason) for host, _, verdict, reason in rows] == ROWS


def test_a_row_has_the_numbers(checked: Checked):
    (queued,) = [line for line in checked.run.table if "queued" in line]
    running, waiting = queued.split()[4].split("/")
    assert (int(running) > 0, int(waiting) > 0) == (True, True)
    assert float(queued.split()[5]) > 0
    assert "no request was sent" in queued


def test_working_servers_were_sent_nothing(checked: Checked):
    assert checked.probes["busy"] == checked.probes["queued"] == checked.probes["proxy"] == 0


def test_one_line_counts(checked: Checked):
    assert '"1 stuck, 1 dead, 4 unknown, 2 busy, 3 idle, 1 serving; 7 of 11 hosts checked; 1 unreachable; 3 failed"' in (
        checked.run.output
    )


def test_the_run_fails_after_the_table_and_says_for_what(checked: Checked):
    assert checked.run.code == 2
    end = checked.run.output[checked.run.output.index("HOST") :]
    assert "6 of 12 need attention: frozen http" in end
    assert "unreachable unreachable, wrong check failed, worse check failed, locked check failed." in end


def test_a_person_is_told_before_how_long_it_may_take(checked: Checked):
    before = checked.run.output[: checked.run.output.index("Read the vLLM servers]")]
    assert "Reading the vLLM servers of 11 hosts." in before
    assert f"watched for at most {PATIENCE} seconds" in before


def test_a_wrong_setting_is_named_with_what_is_right(checked: Checked):
    assert "vllm_check_patience is 'soon': give a number of seconds, like 120." in checked.run.row("wrong")
    assert "colour" in checked.run.row("worse")
    assert "vault_key_that_nobody_gave" in checked.run.row("locked")


def test_an_unreachable_host_says_why(checked: Checked):
    assert "Connection refused" in checked.run.row("unreachable")


def test_what_servers_say_is_never_rendered(checked: Checked, servers: Servers):
    (row,) = [row for row in checked.report["servers"] if row["host"] == "hostile"]
    assert row["models"] == [servers.hostile.command[-1].split("=", 1)[1]] or "lookup" in row["models"][0]
    assert not servers.mark.exists()


def test_no_secret_is_shown(checked: Checked):
    assert KEY not in checked.run.output
    assert KEY not in json.dumps(checked.report)


def test_ansible_has_nothing_to_warn_of(checked: Checked):
    assert "WARNING" not in checked.run.output
    assert "DEPRECAT" not in checked.run.output.upper()


def test_the_report_is_published_and_written(checked: Checked):
    report = checked.report
    assert report["schema"] == 1
    assert report["healthy"] is False
    assert report["counts"] == {"stuck": 1, "dead": 1, "unknown": 4, "busy": 2, "idle": 3, "serving": 1}
    assert report["hosts"] == {"checked": 7, "unreachable": 1, "failed": 3}
    assert "last_sample" not in report["servers"][0]
    published = checked.run.output.split("CUSTOM STATS")[1]
    assert '"vllm_fleet"' in published
    assert f'"checked_at": "{report["checked_at"]}"' in published
