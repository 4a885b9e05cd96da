"""extensions/eda/rulebooks/vllm_hang.yml in ansible-rulebook, with notifications as Alertmanager posts them."""

from __future__ import annotations

import typing as t
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.integration import debian
from tests.integration.ansible.conftest import installed
from tests.integration.ansible.running import environment_of, inventory
from tests.integration.eda.rulebook import PROGRAM, Rulebook
from tests.simulator.running import Simulator
from tests.tools.checkout import copy_to

pytestmark = pytest.mark.eda

RULEBOOK = "extensions/eda/rulebooks/vllm_hang.yml"


def alert(host: str, name: str = "VllmEngineSilent", status: str = "firing") -> dict[str, t.Any]:
    """One alert as the rules in extensions/monitoring make it."""
    labels = {"alertname": name, "host": host, "instance": f"{host}:8000", "severity": "warning", "engine": "0"}
    return {"status": status, "labels": labels, "annotations": {}, "startsAt": "2026-11-29T22:00:00Z", "fingerprint": "0"}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as a clone has it."""
    return copy_to(tmp_path_factory.mktemp("clone"))


@pytest.fixture(scope="module")
def rulebook(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Rulebook]:
    """The rulebook, over a fleet of a frozen server and two that work."""
    if not PROGRAM.exists():
        pytest.skip("ansible-rulebook is not installed in .venvs/eda (make envs)")
    debian.installed("java", "openjdk-17-jre-headless")
    python = environment_of(installed("2.18")) / "bin" / "python"
    with ExitStack() as stack:
        states = {"gpu-1": "frozen-busy", "gpu-2": "busy", "gpu-3": "busy"}
        servers = {host: stack.enter_context(Simulator(state=state)) for host, state in states.items()}
        hosts = inventory(
            tmp_path_factory.mktemp("inventory"),
            {host: {"vllm_servers": [{"url": server.url}]} for host, server in servers.items()},
            ansible_python_interpreter=str(python), vllm_check_patience=3, vllm_check_startup_grace=0, vllm_restart_become=False,
        )
        yield stack.enter_context(Rulebook(clone, RULEBOOK, hosts, tmp_path_factory.mktemp("scratch")))


def test_it_listens_for_the_alerts_that_our_own_rules_make(clone: Path):
    (ruleset,) = yaml.safe_load((clone / RULEBOOK).read_text())
    rules = yaml.safe_load((clone / "extensions/monitoring/vllm_rules.yml").read_text())
    alerts = {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"] if "alert" in rule}
    condition = ruleset["rules"][0]["condition"]
    named = [name for name in alerts if f'"{name}"' in condition]
    assert named == ["VllmEngineSilent", "VllmServerStuck"]
    assert all("host" in alerts[name]["labels"] for name in named)


def test_who_does_not_know_the_word_is_turned_away(rulebook: Rulebook):
    assert rulebook.post(alert("gpu-1"), token="another-word") == 401
    assert rulebook.runs == []


def test_an_alert_checks_its_host_and_heals_what_is_proven_stuck(rulebook: Rulebook):
    others = [alert("gpu-2", status="resolved"), alert("gpu-2", "VllmServerDown"), alert("*"), alert("gpu-2:gpu-3")]
    assert rulebook.post(*others, alert("gpu-1"), alert("gpu-1")) == 200
    rulebook.until(lambda _output: len(rulebook.runs) == 2, "healed")
    check, heal = rulebook.runs
    assert "PLAY [Check vLLM servers]" in check.output
    assert check.row("gpu-1").split()[2:4] == ["stuck", "no_progress"]
    assert "PLAY [Check vLLM servers and plan what to restart]" in heal.output
    # Without a unit there is nothing to restart; what a heal does with one is tested on real hosts.
    assert "to be restarted: 0 of 1 servers" in heal.output
    assert "gpu-2" not in check.output + heal.output


def test_a_server_that_works_is_checked_and_left_alone(rulebook: Rulebook):
    before = len(rulebook.runs)
    assert rulebook.post(alert("gpu-2", "VllmServerStuck")) == 200
    rulebook.until(lambda _output: len(rulebook.runs) > before, "checked")
    assert rulebook.runs[-1].row("gpu-2").split()[2] == "busy"


def test_alerts_again_do_not_check_again_soon(rulebook: Rulebook):
    before = len(rulebook.runs)
    # One action after another: when the last of these has been checked, the others would have been.
    assert rulebook.post(alert("gpu-1"), alert("gpu-2"), alert("gpu-3")) == 200
    rulebook.until(lambda _output: len(rulebook.runs) > before, "checked")
    (run,) = rulebook.runs[before:]
    assert run.row("gpu-3").split()[2] == "busy"
    assert len([run for run in rulebook.runs if "plan what to restart" in run.output]) == 1
