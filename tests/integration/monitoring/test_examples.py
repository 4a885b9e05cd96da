"""The examples for Prometheus and Alertmanager are accepted by their tools, and do what their comments say."""

from __future__ import annotations

import pytest

from tests.integration.monitoring.conftest import MONITORING
from tests.integration.monitoring.promtool import run

pytestmark = pytest.mark.monitoring

ALERTMANAGER = MONITORING / "alertmanager.example.yml"


def test_promtool_says_yes_to_the_example(promtool):
    done = run(promtool, "check", "config", MONITORING / "prometheus.example.yml")
    assert done.returncode == 0 and "1 rule files found" in done.stdout, done.stdout


def test_amtool_says_yes_to_the_example(amtool):
    done = run(amtool, "check-config", ALERTMANAGER)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("alert", "severity", "receivers"),
    [
        ("VllmEngineSilent", "warning", "rulebook,morning"),
        ("VllmServerStuck", "critical", "rulebook,night"),
        ("VllmServerDead", "critical", "night"),
        ("VllmRestartFailed", "critical", "night"),
        ("VllmCheckMissing", "warning", "morning"),
        ("SomethingElse", "critical", "morning"),
    ],
)
def test_alerts_go_where_the_example_says(amtool, alert, severity, receivers):
    command = ("config", "routes", "test", f"--config.file={ALERTMANAGER}", f"--verify.receivers={receivers}")
    done = run(amtool, *command, f"alertname={alert}", f"severity={severity}", "host=gpu-07")
    assert done.returncode == 0, done.stdout
