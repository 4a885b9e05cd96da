"""The alert rules: promtool says yes, their tests bite, and they see what the check sees in pages of real servers."""

from __future__ import annotations

import json
import re
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.fleetcheck.vllm.plugins.module_utils import exposition, life
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.monitoring.conftest import MONITORING
from tests.integration.monitoring.promtool import rule_tests, run

pytestmark = pytest.mark.monitoring

CAPTURES = Path(__file__).resolve().parents[2] / "unit" / "fixtures" / "captures"
RULES = MONITORING / "vllm_rules.yml"
TESTS = MONITORING / "vllm_rules_test.yml"


def test_promtool_says_yes_to_the_rules(promtool):
    done = run(promtool, "check", "rules", RULES)
    assert done.returncode == 0, done.stdout


def test_the_tests_of_the_rules_pass(promtool):
    done = run(promtool, "test", "rules", TESTS)
    assert done.returncode == 0, done.stdout


def test_each_alert_has_a_test_of_its_texts():
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    alerts = {rule["alert"] for rule in rules if "alert" in rule}
    tested = {
        case["alertname"]
        for test in yaml.safe_load(TESTS.read_text())["tests"]
        for case in test.get("alert_rule_test", ())
        if case.get("exp_alerts")
    }
    assert tested == alerts


class Mutation(t.NamedTuple):
    """What a hasty hand might make of the rules, and the test of them that must notice."""

    pattern: str
    replacement: str
    noticed_by: str


_COMES_AND_GOES = "Requests that come and give up are no sign of life"
MUTATIONS = {
    "the KV cache is forgotten": Mutation(
        r" *or label_replace\(changes\(vllm:kv_cache_usage_perc.*\n", "", "Nothing but the KV cache moves while a long prompt"
    ),
    "the older spelling is forgotten": Mutation(
        r" *or label_replace\(changes\(vllm:gpu_cache_usage_perc.*\n", "", "Nothing but the KV cache moves, in the older spelling"
    ),
    "the prompt tokens are forgotten": Mutation(
        r" *or label_replace\(changes\(vllm:prompt_tokens_total.*\n", "", "Each of these alone is a sign of life"
    ),
    "aborts count as life": Mutation(r'\{finished_reason!="abort"\}', "", _COMES_AND_GOES),
    "waiting requests count as life": Mutation(
        r"changes\(vllm:num_preemptions_total", "changes(vllm:num_requests_waiting", _COMES_AND_GOES
    ),
    "waiting requests are not in flight": Mutation(
        r" *or label_replace\(vllm:num_requests_waiting, .*\n", "", "An engine that froze while it was busy is silent"
    ),
    "engines are added up": Mutation(
        r"sum without \(model_name, finished_reason,",
        "sum without (engine, model_name, finished_reason,",
        "Of two engines the frozen one is found",
    ),
    "one scrape is enough": Mutation(
        r"changes2m == 0\n *and engine:vllm_scrapes:count2m >= 2", "changes2m == 0", "Of one scrape in two minutes nothing"
    ),
    "young processes are not spared": Mutation(
        r"\n *unless ignoring \(engine\) \(time\(\) - process_start_time_seconds < 900\)", "", "A young process may be silent"
    ),
    "sleeping engines are not spared": Mutation(
        r"\n *unless \(min without .*== 0\)", "", "An engine that was put to sleep is not silent"
    ),
    "half the patience": Mutation(r"for: 2m", "for: 15s", "One single step of 80 seconds, again and again"),
    "a pause alarms": Mutation(r'\{reason!="paused"\}', "", "A guard that holds a restart back for long is told"),
    "a restart that failed is never forgiven": Mutation(
        r"\n *unless on \(instance, server\) .*== 1", "", "A restart that failed is told until the server works again"
    ),
}


def only(name: str) -> str:
    """The tests of the rules, but of all of them only the one whose name begins so."""
    head, *blocks = re.split(r"(?m)^(?=  - name: )", TESTS.read_text())
    (block,) = [block for block in blocks if block.startswith(f"  - name: {name}")]
    return head + block


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_the_tests_notice_that(promtool, tmp_path, mutation):
    pattern, replacement, noticed_by = MUTATIONS[mutation]
    mutated, count = re.subn(pattern, replacement, RULES.read_text())
    assert count == 1
    (tmp_path / TESTS.name).write_text(only(noticed_by))
    (tmp_path / RULES.name).write_text(RULES.read_text())
    done = run(promtool, "test", "rules", TESTS.name, folder=tmp_path)
    assert done.returncode == 0, done.stdout
    (tmp_path / RULES.name).write_text(mutated)
    done = run(promtool, "test", "rules", TESTS.name, folder=tmp_path)
    assert done.returncode != 0 and "FAILED" in done.stdout, done.stdout


class Pair(t.NamedTuple):
    """Two pages of one process, one after the other."""

    name: str
    before: bytes
    after: bytes


def pairs() -> list[Pair]:
    """All neighbouring pages of all captures that are of one process."""
    found = []
    for scenario in sorted(CAPTURES.glob("*/*/scenario.json")):
        files = [scenario.parent / read["file"] for read in json.loads(scenario.read_text())["reads"] if read.get("file")]
        for one, other in zip(files, files[1:]):
            before, after = one.read_bytes(), other.read_bytes()
            if life.continues(exposition.parse(before), exposition.parse(after)):
                found.append(Pair(f"{one.relative_to(CAPTURES)} {other.name}", before, after))
    return found


def series(*bodies: bytes) -> list[dict[str, str]]:
    """Pages, scraped one after the other, as promtool wants them."""
    values: dict[str, list[str]] = {}
    for number, body in enumerate(bodies):
        for family in text_string_to_metric_families(body.decode()):
            for sample in family.samples:
                if sample.name.startswith("vllm:") and "_info" not in sample.name:
                    labels = {"job": "vllm", "instance": "a:8000", **sample.labels}
                    name = sample.name + "{" + ", ".join(f"{key}={json.dumps(value)}" for key, value in labels.items()) + "}"
                    values.setdefault(name, ["_"] * len(bodies))[number] = repr(sample.value)
    return [{"series": name, "values": " ".join(scraped)} for name, scraped in values.items()]


def expected(engines: t.Iterable[str], record: str = "") -> list[dict[str, t.Any]]:
    """One sample for each engine."""
    labels = [f'engine="{engine}", ' if engine else "" for engine in sorted(engines)]
    return [{"labels": record + "{" + label + 'instance="a:8000", job="vllm"}', "value": 1} for label in labels]


def engines_of(page: exposition.Page, body: bytes) -> dict[str, str]:
    """The engines of a page, with the label that Prometheus knows each by (V0 has none)."""
    labelled = b'engine="' in body
    return {engine: engine if labelled else "" for engine in page.engines}


def test_the_rules_see_a_sign_of_life_where_the_check_sees_one(promtool, tmp_path):
    tests = []
    for pair in pairs():
        before, after = exposition.parse(pair.before), exposition.parse(pair.after)
        labels = engines_of(after, pair.after)
        shared = before.engines.keys() & after.engines.keys()
        alive = [labels[one] for one in shared if life.signs_of_life(before.engines[one], after.engines[one])]
        tests.append({
            "name": pair.name, "interval": "15s", "input_series": series(pair.before, pair.after),
            "promql_expr_test": [{
                "expr": "group by (job, instance, engine) (engine:vllm_signs_of_life:changes2m > 0)", "eval_time": "15s",
                "exp_samples": expected(alive),
            }],
        })  # fmt: skip
    assert len(tests) > 150 and sum(bool(test["promql_expr_test"][0]["exp_samples"]) for test in tests) > 50
    done = run(promtool, "test", "rules", rule_tests(tmp_path / "tests.yml", RULES, tests))
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_real_server_that_hangs_with_work_in_flight_raises_the_alert_and_no_idle_one_does(promtool, tmp_path):
    tests, hangs = [], 0
    for scenario in sorted(CAPTURES.glob("*/*/scenario.json")):
        facts = json.loads(scenario.read_text())
        still = [read for read in facts["reads"] if read.get("file") and read.get("truth", facts["truth"]) == facts["truth"]]
        if facts["truth"] not in ("stuck", "idle") or not still:
            continue
        body = (scenario.parent / still[-1]["file"]).read_bytes()
        page = exposition.parse(body)
        labels = engines_of(page, body)
        waiting = [labels[one] for one, sample in page.engines.items() if sample.in_flight > 0]
        if facts["truth"] == "idle" and waiting:
            continue  # gauges that are out of date: these series cannot tell it from a hang, the check can
        hangs += len(waiting)
        tests.append({
            "name": str(scenario.parent.relative_to(CAPTURES)), "interval": "15s", "input_series": series(*[body] * 20),
            "promql_expr_test": [{
                "expr": 'group by (job, instance, engine) (ALERTS{alertname="VllmEngineSilent", alertstate="firing"})',
                "eval_time": "4m", "exp_samples": expected(waiting),
            }],
        })  # fmt: skip
    assert len(tests) > 20 and hangs >= 7
    done = run(promtool, "test", "rules", rule_tests(tmp_path / "tests.yml", RULES, tests))
    assert done.returncode == 0, done.stdout[-3000:]
