"""The audit finds every planted watchdog, nothing on a clean host, and who asked for which restart."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.hosts import Host
from tests.fleet.watchdogs import await_true, planted

from .conftest import Module, ansible

pytestmark = pytest.mark.systemd

UNITS = "/etc/systemd/system/"
PLANTED = {tuple(one[key] for key in ("kind", "name", "action", "place")) for one in planted()}


@pytest.fixture(scope="module")
def watched(run_module: Module) -> dict[str, Any]:
    return run_module("vllm_watchdogs_info", "watched")


def unit(answer: dict[str, Any], name: str = "vllm.service") -> dict[str, Any]:
    (found,) = [unit for unit in answer["units"] if unit["unit"] == name]
    return found


def test_every_planted_watchdog_is_found_where_it_is_written_and_no_other(watched: dict[str, Any]) -> None:
    parties = unit(watched)["parties"]
    found = {(one["kind"], one["name"], one["action"], f"{one['file']}:{one['line']}") for one in parties}
    jobs = {one for one in found if one[0] == "at"}
    assert found - jobs == PLANTED
    ((_kind, name, action, _place),) = jobs
    assert name.startswith("a0000") and action == "restart"


def test_how_often_each_acts(watched: dict[str, Any]) -> None:
    every = {one["name"]: one["every"] for one in unit(watched)["parties"] if one["every"]}
    assert every == {
        "vllm-check-5.timer": 300,
        "vllm-check-10.timer": 600,
        "vllm-check-15.timer": 900,
        "vllm-check-30.timer": 1800,
        "mine.timer": 1200,
        "cron of root": 60,
        "cron.daily": 86400,
        "cron of ops": 21600,
        "WatchdogSec": 21600,
        "RuntimeMaxSec": 604800,
    }


def test_what_is_written_but_does_not_run_is_switched_off(watched: dict[str, Any]) -> None:
    off = {one["name"]: one["remark"] for one in unit(watched)["parties"] if not one["active"]}
    assert off == {"vllm-heal": "supervisord does not run"}
    assert unit(watched)["count"] == len(PLANTED)  # one of them is off, and the job of at is not in that list


def test_the_way_to_a_script_is_told(watched: dict[str, Any]) -> None:
    (one,) = [one for one in unit(watched)["parties"] if one["name"] == "vllm-check-15.timer"]
    assert one["via"] == [f"{UNITS}vllm-check-15.timer:3", "/opt/ops/outer.sh"]
    assert one["places"] == ["/opt/ops/inner.sh:2: systemctl stop $1", "/opt/ops/inner.sh:4: systemctl start $1"]


def test_the_sentence(watched: dict[str, Any]) -> None:
    said = unit(watched)["summary"]
    assert said.startswith(
        "19 parties can restart vllm.service (timers every 5, 10, 15, 20 and 30 minutes, "
        "cron every minute, every 6 hours and every day, at, the service vllm-watch.service, "
    )


def test_a_container_that_docker_itself_and_autoheal_restart(watched: dict[str, Any]) -> None:
    parties = unit(watched, "llm-docker.service")["parties"]
    of_engine = {(one["kind"], one["name"]) for one in parties if one["kind"] in ("container", "autoheal")}
    assert of_engine == {("container", "docker (unless-stopped)"), ("autoheal", "autoheal")}


def test_no_secret_of_the_host_is_told(watched: dict[str, Any]) -> None:
    assert "geheim" not in repr(watched)


def test_nothing_is_found_on_a_clean_host(run_module: Module) -> None:
    answer = run_module("vllm_watchdogs_info", "clean")
    (found,) = answer["units"]
    assert found["parties"] == []
    assert found["summary"].startswith(
        "Nothing but systemd itself (Restart=on-failure) can restart vllm.service; no restart since"
    )
    assert (answer["notes"], answer["incomplete"], found["restart_count"]) == ([], False, 0)


def test_without_root_it_says_what_it_could_not_read(run_module: Module) -> None:
    answer = run_module("vllm_watchdogs_info", "watched", become=False)
    assert answer["incomplete"] is True
    assert "/var/spool/cron/crontabs: not permitted" in answer["notes"]
    assert any("without root" in note for note in answer["notes"])
    assert unit(answer)["summary"].endswith("not everything could be read")


def test_check_mode_and_a_second_run_say_the_same(run_module: Module, watched: dict[str, Any]) -> None:
    again = unit(run_module("vllm_watchdogs_info", "watched"))
    assert again["parties"] == unit(watched)["parties"]


def test_who_asked_for_each_restart(hosts: dict[str, Host], run_module: Module, state: Path) -> None:
    host = hosts["watched"]
    before = unit(run_module("vllm_watchdogs_info", "watched"))["restart_count"]

    def bounced(act: Any) -> None:
        old = host.unit("vllm.service", "InvocationID")
        act()
        await_true(lambda: host.unit("vllm.service", "InvocationID") != old, 90)
        await_true(lambda: host.unit("vllm.service", "ActiveState")["ActiveState"] == "active")

    # Last what needs up to a minute, as cron looks once a minute.
    bounced(lambda: host.run_as("ops", "sudo", "-n", "systemctl", "restart", "vllm"))
    bounced(lambda: host.run("systemctl", "start", "vllm-check-5.service"))
    bounced(lambda: host.run("systemctl", "start", "vllm-check-15.service"))
    bounced(lambda: host.run("systemctl", "restart", "llm.target"))
    bounced(lambda: host.run("touch", "/run/vllm-hangs"))
    bounced(lambda: host.run("systemctl", "kill", "--signal=SEGV", "vllm.service"))
    bounced(lambda: host.run("sh", "-c", "cd /; echo 'systemctl restart vllm' | at now"))
    bounced(lambda: ansible_restart(state))
    bounced(lambda: host.run("touch", "/run/vllm-cron"))
    found = unit(run_module("vllm_watchdogs_info", "watched"))
    assert [restart["by"] for restart in found["restarts"][before:]] == [
        "ops (sudo)",
        "vllm-check-5.timer",
        "vllm-check-15.timer",
        "llm.target (StopPropagatedFrom)",
        "vllm-watch.service",
        "systemd, since it was killed",
        "a job of at of root",
        "Ansible (systemd for ops)",
        "cron of root",
    ]
    assert found["close_count"] >= 8
    assert "less than 10 minutes after the one before" in found["summary"]


def ansible_restart(state: Path) -> None:
    arguments = ("-b", "-m", "ansible.builtin.systemd", "-a", "name=vllm state=restarted")
    assert ansible("ansible", "watched", "-i", str(state / "inventory"), *arguments).returncode == 0


def test_the_playbook_prints_the_worst_first_and_a_row_for_a_host_that_is_gone(hosts: dict[str, Host], state: Path) -> None:
    inventory = shutil.copytree(state / "inventory", state / "three")
    (inventory / "hosts").write_text("[vllm]\nclean\ngone ansible_host=127.0.0.1 ansible_port=9\nwatched\n")
    done = ansible("ansible-playbook", "-i", str(inventory), "playbooks/audit.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.strip().strip('",') for line in done.stdout.partition("PLAY RECAP")[0].splitlines()]
    rows = [line.split()[0] for line in lines if line.startswith(("watched  ", "clean  ", "gone  "))]
    assert rows == ["watched", "watched", "gone", "clean"]
    assert "2 of 3 hosts audited; 1 unreachable" in lines
    assert any(line.startswith("watched: 19 parties can restart vllm.service (timers every 5, 10, 15, 20") for line in lines)
    assert any(
        line.startswith("clean: Nothing but systemd itself (Restart=on-failure) can restart vllm.service") for line in lines
    )
