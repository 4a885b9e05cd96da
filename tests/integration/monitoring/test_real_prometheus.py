"""Simulated servers under a real Prometheus: the frozen ones alarm and no other, and the dashboard shows data everywhere.

The rules are those of extensions/monitoring with their minutes made seconds.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.fleetcheck.vllm.plugins.filter.fleet_report import fleet_report
from ansible_collections.fleetcheck.vllm.plugins.filter.vllm_measures import vllm_measures
from ansible_collections.fleetcheck.vllm.plugins.module_utils import driving, looks, reading, results, vllm_api
from ansible_collections.fleetcheck.vllm.plugins.module_utils.metrics import unix_time
from ansible_collections.fleetcheck.vllm.plugins.module_utils.pushing import Gateway
from ansible_collections.fleetcheck.vllm.plugins.modules import vllm_textfile

from tests.integration.monitoring.conftest import MONITORING
from tests.integration.monitoring.promtool import run
from tests.integration.monitoring.services import Prometheus, Service, alertmanager, node_exporter, pushgateway
from tests.simulator.running import Simulator, request

pytestmark = pytest.mark.monitoring

STEP = 0.1
FLEET: dict[str, dict[str, t.Any]] = {
    "busy": {"state": "busy"},
    "queued": {"state": "queued"},
    "idle": {"state": "idle"},
    "frozen": {"state": "frozen-busy"},
    "frozen-queued": {"state": "frozen-queued"},
    "frozen-idle": {"state": "frozen-idle"},
    "one-of-two": {"state": "one-frozen", "data_parallel_size": 2},
    "prefill": {"state": "prefill"},
    "pooling": {"state": "busy", "runner": "pooling"},
    "v0": {"state": "busy", "release": "0.8.5-v0"},
    "old-spelling": {"state": "prefill", "release": "0.10.2"},
    "old-frozen": {"state": "frozen-busy", "release": "0.8.5-v0"},
    "asleep": {"state": "sleeping"},
}
SILENT = {("frozen", "0"), ("frozen-queued", "0"), ("one-of-two", "1"), ("old-frozen", "")}
STUCK = {"frozen", "frozen-queued", "frozen-idle", "one-of-two", "old-frozen"}
FIRING = 'ALERTS{alertname="%s", alertstate="firing"}'
WAIT_SECONDS = 120


class Observed(t.NamedTuple):
    """A fleet under watch."""

    prometheus: Prometheus
    alertmanager: Service
    exporter: Service
    gateway: Service
    simulators: dict[str, Simulator]
    checked_at: str
    textfile: Path


def in_seconds(rules: str) -> str:
    """The rules with their minutes made seconds."""
    shorter = {r"\[2m\]": "[12s]", r"for: \d+m": "for: 4s", r"start_time_seconds < 900": "start_time_seconds < 2"}
    for pattern, replacement in shorter.items():
        rules, count = re.subn(pattern, replacement, rules)
        assert count
    return rules


def check(simulators: t.Mapping[str, Simulator], checked_at: str) -> dict[str, t.Any]:
    """The fleet's report, as check.yml makes it, in this process."""
    limits = looks.Limits(patience=4.0, startup_grace=0.0)
    targets = [driving.Target(vllm_api.Server(reading.Endpoint(sim.url), timeout=10.0), limits) for sim in simulators.values()]
    report = results.report(["vllm.service"] * len(targets), targets, driving.check(targets))
    hostvars = {name: {"vllm_check_result": {**report, "servers": [row]}} for name, row in zip(simulators, report["servers"])}
    fleet = fleet_report(hostvars, list(hostvars), checked_at)
    done = {"frozen": "quarantined", "frozen-idle": "restart_failed", "idle": "restarted"}
    return {**fleet, "servers": [{**row, "action": done.get(row["host"], "none")} for row in fleet["servers"]]}


def configuration(folder: Path, simulators, manager, exporter, gateway) -> dict[str, t.Any]:
    """The example's configuration with the addresses of this test."""
    (folder / "vllm_rules.yml").write_text(in_seconds((MONITORING / "vllm_rules.yml").read_text()))
    made = yaml.safe_load((MONITORING / "prometheus.example.yml").read_text())
    made["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    made["rule_files"] = [str(folder / "vllm_rules.yml")]
    made["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [manager.address]
    jobs = {job["job_name"]: job for job in made["scrape_configs"]}
    jobs["node"]["static_configs"][0]["targets"] = [exporter.address]
    jobs["pushgateway"]["static_configs"][0]["targets"] = [gateway.address]
    jobs["vllm"]["static_configs"][0]["targets"] = [f"127.0.0.1:{sim.port}" for sim in simulators.values()]
    # A person would name hosts; here the instance is the name of the state.
    jobs["vllm"]["relabel_configs"] = [
        {
            "source_labels": ["__address__"], "regex": re.escape(f"127.0.0.1:{sim.port}"), "target_label": "instance",
            "replacement": name,
        }
        for name, sim in simulators.items()
    ]
    return made


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Observed]:
    """All of it, running."""
    folder = tmp_path_factory.mktemp("monitoring")
    textfiles = folder / "textfiles"
    textfiles.mkdir()
    with contextlib.ExitStack() as stack:
        simulators = {name: stack.enter_context(Simulator(step_seconds=STEP, **options)) for name, options in FLEET.items()}
        exporter = stack.enter_context(node_exporter(folder / "node", textfiles))
        gateway = stack.enter_context(pushgateway(folder / "gateway"))
        manager = stack.enter_context(alertmanager(folder / "manager", (MONITORING / "alertmanager.example.yml").read_text()))
        configured = configuration(folder, simulators, manager, exporter, gateway)
        prometheus = stack.enter_context(Prometheus(folder / "prometheus", configured))
        checked_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        fleet = check(simulators, checked_at)
        # One file stands for the whole fleet, as there is but one node_exporter; the names tell the servers apart.
        rows = [{**measure, "server": measure["host"]} for measure in vllm_measures(fleet)]
        textfile = textfiles / vllm_textfile.FILE
        vllm_textfile.write(str(textfile), vllm_textfile.render(rows, unix_time(checked_at), b""))
        to = Gateway(gateway.url)
        for measure in vllm_measures(fleet):
            to.push(measure["host"], [measure], unix_time(checked_at))
        yield Observed(prometheus, manager, exporter, gateway, simulators, checked_at, textfile)


def until(observed: Observed, expression: str, wanted: t.Callable[[list[dict]], bool]) -> list[dict]:
    """Ask until the answer is as wanted; the last answer."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        answer = observed.prometheus.query(expression)
        if wanted(answer) or time.monotonic() > deadline:
            return answer
        time.sleep(0.5)


def silent(answer: list[dict]) -> set[tuple[str, str]]:
    """Which engines of which servers an alert is about."""
    return {(one["metric"]["instance"], one["metric"].get("engine", "")) for one in answer}


def test_the_frozen_engines_alarm_and_no_other_does(observed: Observed):
    until(observed, FIRING % "VllmEngineSilent", lambda answer: silent(answer) >= SILENT)
    time.sleep(5)
    # Not only now: never since the start.
    ever = observed.prometheus.query("count_over_time(" + FIRING % "VllmEngineSilent" + "[10m])")
    assert silent(ever) == SILENT


def test_what_the_check_has_proven_alarms_by_both_ways(observed: Observed):
    answer = until(observed, FIRING % "VllmServerStuck", lambda answer: len(answer) >= 2 * len(STUCK))
    by_textfile = {one["metric"]["server"] for one in answer if one["metric"]["job"] == "node"}
    by_push = {one["metric"]["instance"] for one in answer if one["metric"]["job"] == "vllm_fleetcheck"}
    assert by_textfile == STUCK and by_push == STUCK
    others = observed.prometheus.query('count by (verdict) (vllm_fleetcheck_verdict{job="vllm_fleetcheck"} == 1)')
    assert {one["metric"]["verdict"]: int(one["value"][1]) for one in others} == {"stuck": 5, "busy": 6, "idle": 1, "sleeping": 1}


def test_restarts_alarm_where_a_person_is_needed(observed: Observed):
    for alert, label, wanted in (("VllmRestartFailed", "result", "restart_failed"), ("VllmRestartHeld", "reason", "quarantined")):
        answer = until(observed, FIRING % alert, lambda answer: len(answer) == 2)
        assert {one["metric"][label] for one in answer} == {wanted}, answer
        assert {one["metric"]["job"] for one in answer} <= {"node", "vllm_fleetcheck", "vllm_fleetcheck_restarts"}


def test_alertmanager_gets_them_and_says_each_thing_once(observed: Observed):
    def told() -> dict[tuple[str, str], str]:
        status, text = request(observed.alertmanager.url + "/api/v2/alerts")
        assert status == 200
        return {
            (one["labels"]["alertname"], one["labels"].get("host", "")): one["status"]["state"]
            for one in json.loads(text)
        }

    deadline = time.monotonic() + WAIT_SECONDS
    wanted = {("VllmEngineSilent", "frozen"): "suppressed", ("VllmServerStuck", "frozen-queued"): "active"}
    while not wanted.items() <= told().items() and time.monotonic() < deadline:
        time.sleep(0.5)
    assert wanted.items() <= told().items()


def test_the_dashboard_shows_data_in_every_panel(observed: Observed):
    dashboard = json.loads((MONITORING / "grafana_dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "12s").replace("$instance", ".*")
            assert "$" not in expression, expression
            answer = until(observed, expression, bool)
            assert answer, f"{panel['title']}: {expression}"


def test_the_variables_of_the_dashboard_find_the_servers(observed: Observed):
    dashboard = json.loads((MONITORING / "grafana_dashboard.json").read_text())
    (query,) = [one["query"]["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()
    assert {one[label] for one in observed.prometheus.series(metric)} == set(FLEET)


def test_the_verdicts_on_the_dashboard_are_those_of_the_check(observed: Observed):
    dashboard = json.loads((MONITORING / "grafana_dashboard.json").read_text())
    (panel,) = [panel for panel in dashboard["panels"] if panel["type"] == "state-timeline"]
    words = {number: shown["text"] for number, shown in panel["fieldConfig"]["defaults"]["mappings"][0]["options"].items()}
    answer = observed.prometheus.query(panel["targets"][0]["expr"])
    shown = {one["metric"]["instance"]: words[one["value"][1]] for one in answer if one["metric"]["server"] == "vllm.service"}
    assert {name for name, word in shown.items() if word == "stuck"} == STUCK
    assert shown["idle"] == "idle" and shown["asleep"] == "sleeping" and shown["pooling"] == "busy"


def test_a_dashboard_has_no_two_panels_in_one_place():
    panels = json.loads((MONITORING / "grafana_dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(taken) == len(set(taken)) and max(x for x, _ in taken) == 23


def test_the_names_of_the_metrics_are_good_practice(observed: Observed, promtool, tmp_path):
    file = tmp_path / "lint"
    file.write_text(f"{promtool} check metrics < {observed.textfile}")
    done = run("sh", file)
    assert done.returncode == 0 and done.stdout == "", done.stdout


def test_a_host_that_is_pushed_again_replaces_itself_and_nobody_else(observed: Observed):
    def pushed() -> set[tuple[str, str]]:
        _, text = request(observed.gateway.url + "/metrics")
        found = re.findall(r'vllm_fleetcheck_verdict{instance="([^"]+)",job="[^"]+",server="([^"]+)",verdict="busy"}', text)
        return set(found)

    before = pushed()
    another = {"server": "another", "verdict": "busy", "probes": 0, "action": "", "engines": []}
    Gateway(observed.gateway.url).push("busy", [another], unix_time(observed.checked_at))
    assert pushed() == before - {("busy", "vllm.service")} | {("busy", "another")}
    _, text = request(observed.gateway.url + "/metrics")
    assert 'vllm_fleetcheck_last_restart_timestamp_seconds{instance="idle"' in text


def test_the_alarm_ends_when_the_engine_works_again(observed: Observed):
    observed.simulators["frozen"].control("thaw")
    answer = until(observed, FIRING % "VllmEngineSilent", lambda answer: ("frozen", "0") not in silent(answer))
    assert silent(answer) == SILENT - {("frozen", "0")}

