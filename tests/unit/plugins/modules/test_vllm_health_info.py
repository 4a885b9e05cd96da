"""The module says what it does, does what it says, and fails only for bad input or missing libraries."""

import io
import json
import sys

import pytest
import yaml
from ansible.module_utils import basic
from ansible_collections.fleetcheck.vllm.plugins.module_utils import driving, options, reading, verdicts
from ansible_collections.fleetcheck.vllm.plugins.module_utils.exposition import Page, Sample
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import EngineEvidence, Judgement, Limits
from ansible_collections.fleetcheck.vllm.plugins.module_utils.systemd import UnitFacts
from ansible_collections.fleetcheck.vllm.plugins.modules import vllm_health_info

from tests.unit.plugins.modules.specs import documented, specified

DOCUMENTATION = yaml.safe_load(vllm_health_info.DOCUMENTATION)
RETURN = yaml.safe_load(vllm_health_info.RETURN)
EXAMPLES = yaml.safe_load(vllm_health_info.EXAMPLES)

SAMPLE = Sample({"generation_tokens_total": 2116.0}, 2.0, 0.0, 0.05, False)
BUSY = Judgement(
    "busy",
    "progress",
    0.27,
    Limits(),
    engines=(EngineEvidence("0", SAMPLE, 0.5, 107.0, {"generation_tokens_total": 107.0}, 0.0),),
    reads=2,
    page=Page(True, 1795988000.12, {"0": SAMPLE}),
)


# The documentation


def test_the_documentation_has_the_options_that_the_module_has():
    assert documented(DOCUMENTATION["options"]) == specified(options.ARGUMENT_SPEC)


def test_every_option_and_every_returned_value_is_described():
    def described(entries):
        for entry in entries.values():
            assert entry["description"]
            described(entry.get("suboptions", {}))
            described(entry.get("contains", {}))

    described(DOCUMENTATION["options"])
    described(RETURN)


def test_the_key_is_kept_out_of_logs():
    assert options.SERVER_SPEC["api_key"]["no_log"] is True


def test_the_examples_use_options_that_exist():
    for task in EXAMPLES:
        given = task.get("fleetcheck.vllm.vllm_health_info") or {}
        assert given.keys() <= DOCUMENTATION["options"].keys()
        for server in given.get("servers", []):
            assert server.keys() <= options.SERVER_SPEC.keys()


def test_the_verdicts_are_documented_worst_first():
    text = " ".join(RETURN["verdict"]["description"])
    assert sorted(verdicts.VERDICTS, key=lambda word: text.index("V(%s)" % word)) == list(verdicts.VERDICTS)


def test_each_returned_value_has_a_type_and_a_sample_of_it():
    types = {"str": str, "bool": bool, "int": int, "float": float, "dict": dict, "list": list}

    def described(entries):
        for name, entry in entries.items():
            assert entry["returned"]
            if "contains" in entry:
                described(entry["contains"])
            else:
                assert type(entry["sample"]) is types[entry["type"]], name

    described(RETURN)


# Running it


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the module as Ansible does, with these arguments; returns what it said and what it was about to check."""
    checked = []

    def check(targets):
        checked.extend(targets)
        return [BUSY for _target in targets]

    monkeypatch.setattr(driving, "check", check)
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)

    def play(**arguments):
        given = {"ANSIBLE_MODULE_ARGS": arguments}
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps(given).encode())
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit) as ended:
            vllm_health_info.main()
        said = json.loads(capsys.readouterr().out)
        assert bool(ended.value.code) == bool(said.get("failed"))
        return said, checked

    return play


def test_without_options_it_checks_the_server_on_port_8000(run):
    said, (target,) = run()
    assert target.server.endpoint.url == "http://127.0.0.1:8000"
    assert (target.limits, target.kind) == (Limits(120.0, 900.0, True), "backend")
    assert (said["changed"], said["verdict"], said["healthy"], said["counts"]) == (False, "busy", True, {"busy": 1})


def test_what_is_returned_is_documented_and_all_that_is_documented_is_returned(run, monkeypatch):
    facts = UnitFacts("loaded", "active", "running", "5c0ee6c2", 4711, 0, 100.0)
    judgement = Judgement(**{**vars(BUSY), "unit": facts})
    monkeypatch.setattr(driving, "check", lambda targets: [judgement])
    said, _checked = run(servers=[{"unit": "vllm.service"}])

    def compare(values, described):
        promised = {name for name, entry in described.items() if entry["returned"] == "success"}
        assert promised <= values.keys() <= described.keys()
        for name, entry in described.items():
            inner = values.get(name)
            if "contains" in entry and inner:
                compare(inner[0] if entry["type"] == "list" else inner, entry["contains"])

    compare({name: value for name, value in said.items() if name not in ("changed", "invocation")}, RETURN)


def test_each_server_keeps_its_place_and_its_defaults(run):
    said, targets = run(
        servers=[{"name": "a", "patience": 30}, {"url": "https://llm.example.com/", "kind": "proxy"}], patience=60
    )
    assert [server["name"] for server in said["servers"]] == ["a", "https://llm.example.com"]
    assert [(target.kind, target.limits.patience) for target in targets] == [("backend", 30.0), ("proxy", 60.0)]


def test_in_check_mode_no_probe_is_allowed(run):
    _said, (target,) = run(_ansible_check_mode=True)
    assert target.limits.probe is False


def test_a_sick_server_is_a_result_and_no_failure(run, monkeypatch):
    dead = Judgement("dead", "refused", 1.8, Limits(), failed=3, detail="connection refused", failing_for=1.8)
    monkeypatch.setattr(driving, "check", lambda targets: [dead])
    said, _checked = run()
    assert "failed" not in said
    assert (said["verdict"], said["healthy"]) == ("dead", False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"servers": []}, "servers is []: name at least one server"),
        ({"patience": 0}, "patience is 0.0: it must be a number of seconds, 1 or more"),
        ({"servers": [{"url": "gpu-07"}]}, "servers[0].url is 'gpu-07': it must be a base URL"),
        ({"servers": [{"kind": "router"}]}, "value of kind must be one of: backend, proxy, got: router"),
        ({"servers": [{"port": 8000}]}, "port"),
        ({"timeout": "soon"}, "timeout"),
    ],
    ids=lambda value: "" if isinstance(value, str) else json.dumps(value),
)
def test_bad_input_is_a_failure_that_names_it(run, arguments, message):
    said, checked = run(**arguments)
    assert said["failed"] is True and message in said["msg"]
    assert checked == []


def test_a_key_is_nowhere_in_what_is_said(run):
    said, (target,) = run(servers=[{"api_key": "geheim-4711"}])
    assert target.server.endpoint.api_key == "geheim-4711"
    assert "geheim-4711" not in json.dumps(said)


def test_a_missing_library_is_a_failure_in_ansibles_usual_words(run, monkeypatch):
    monkeypatch.setattr(reading, "REQUESTS_IMPORT_ERROR", "Traceback (most recent call last): said by the test")
    said, checked = run()
    assert said["failed"] is True and checked == []
    assert "Failed to import the required Python library (requests) on" in said["msg"]
