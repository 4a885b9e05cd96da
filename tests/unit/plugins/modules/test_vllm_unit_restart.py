"""The module says what it does, passes on what it is given, and fails only for bad input or missing libraries."""

import io
import json
import os
import sys
from pathlib import Path

import pytest
import yaml
from ansible.module_utils import basic
from ansible_collections.fleetcheck.vllm.plugins.module_utils import options, reading, restart_options, verdicts
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart import restarting
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart.budget import Budget
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart.restarting import Outcome
from ansible_collections.fleetcheck.vllm.plugins.modules import vllm_unit_restart

from tests.unit.plugins.modules.specs import documented, specified

DOCUMENTATION = yaml.safe_load(vllm_unit_restart.DOCUMENTATION)
RETURN = yaml.safe_load(vllm_unit_restart.RETURN)
EXAMPLES = yaml.safe_load(vllm_unit_restart.EXAMPLES)

RESTARTED = Outcome(True, "vllm.service was restarted", "", "/kept", ("a", "b"), "after", "active", 1795988000.12, 12.4)
ENGINE = {"counters": {"generation_tokens_total": 7.0}, "running": 2.0, "waiting": 0.0, "kv_cache_usage": 0.05}
SAMPLE = {"process_start_time": 1795988000.12, "frozen_engines": ["0"], "engines": {"0": ENGINE}}
NEEDED = {"server": {"unit": "vllm.service"}, "invocation_id": "before", "last_sample": SAMPLE}


# The documentation


def test_the_documentation_has_the_options_that_the_module_has():
    assert documented(DOCUMENTATION["options"]) == specified(restart_options.ARGUMENT_SPEC)


def test_a_whole_entry_of_vllm_servers_can_be_given():
    assert options.SERVER_SPEC.keys() == restart_options.ARGUMENT_SPEC["server"]["options"].keys()


def test_every_option_and_every_returned_value_is_described():
    def described(entries):
        for entry in entries.values():
            assert entry["description"]
            described(entry.get("suboptions", {}))

    described(DOCUMENTATION["options"])
    described(RETURN)


def test_the_key_is_kept_out_of_logs():
    assert restart_options.ARGUMENT_SPEC["server"]["options"]["api_key"]["no_log"] is True


def test_each_returned_value_has_a_type_and_a_sample_of_it():
    types = {"str": str, "bool": bool, "int": int, "float": float, "dict": dict, "list": list}
    for name, entry in RETURN.items():
        assert entry["returned"]
        assert type(entry["sample"]) is types[entry["type"]], name


def test_every_word_for_a_no_is_documented():
    source = Path(restarting.__file__).read_text()
    words = {line.partition('_No("')[2].partition('"')[0] for line in source.splitlines() if '_No("' in line}
    text = " ".join(RETURN["skipped_because"]["description"])
    assert words >= {"locked", "restarted_already", "paused", "quarantined", "gpu_lost", "recovered"}
    for word in words | {"too_soon", "not_permitted"}:
        assert "V(%s)" % word in text


def test_the_examples_use_options_that_exist():
    given = [task["fleetcheck.vllm.vllm_unit_restart"] for task in EXAMPLES if "fleetcheck.vllm.vllm_unit_restart" in task]
    assert given
    for arguments in given:
        assert arguments.keys() <= restart_options.ARGUMENT_SPEC.keys()


# Running it


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the module as Ansible does, with these arguments; returns what it said and what it was about to do."""
    ordered = []

    def restart(order, dry_run):
        ordered.append((order, dry_run))
        return Outcome(True, "vllm.service would be restarted") if dry_run else RESTARTED

    monkeypatch.setattr(restarting, "restart", restart)
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)

    def play(**arguments):
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode())
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit) as ended:
            vllm_unit_restart.main()
        said = json.loads(capsys.readouterr().out)
        assert bool(ended.value.code) == bool(said.get("failed"))
        return said, ordered

    return play


def test_the_order_is_what_the_check_returned_with_the_defaults_of_the_guards(run):
    _said, ((order, dry_run),) = run(**NEEDED)
    assert (order.unit, order.server.scope, order.server.endpoint.url) == (
        "vllm.service",
        "system",
        "http://127.0.0.1:8000",
    )
    assert (order.verdict, order.invocation_id, order.last_sample) == ("stuck", "before", SAMPLE)
    assert order.budget == Budget(1800.0, 2, 86400.0)
    assert (order.state_dir, dry_run) == ("/var/lib/fleetcheck-vllm", False)


def test_every_guard_can_be_set(run):
    _said, ((order, _dry_run),) = run(**NEEDED, min_interval=60, max_starts=5, window=3600)
    assert order.budget == Budget(60.0, 5, 3600.0)


def test_a_unit_of_a_user_has_its_state_in_the_users_home(run, monkeypatch):
    monkeypatch.setitem(os.environ, "HOME", "/home/ann")
    _said, ((order, _dry_run),) = run(**{**NEEDED, "server": {"unit": "vllm.service", "scope": "user"}})
    assert order.state_dir == "/home/ann/.local/state/fleetcheck-vllm"


def test_what_is_returned_is_documented_and_all_that_is_documented_is_returned(run):
    said, _ordered = run(**NEEDED)
    assert said.keys() - {"changed", "diff", "invocation"} == RETURN.keys()
    assert said["changed"] is True and said["invocation_id"] == "after"


def test_check_mode_is_a_dry_run_and_its_diff_says_what_would_go(run):
    said, ((_order, dry_run),) = run(**NEEDED, _ansible_check_mode=True)
    assert (dry_run, said["changed"]) == (True, True)
    assert said["diff"] == {
        "before": "vllm.service: invocation before, stuck\n",
        "after": "vllm.service: invocation (a new one), restarted\n",
    }


def test_the_diff_of_a_restart_has_the_new_invocation(run):
    said, _ordered = run(**NEEDED)
    assert said["diff"]["after"] == "vllm.service: invocation after, restarted\n"


def test_a_no_is_no_failure_and_no_difference(run, monkeypatch):
    no = Outcome(False, "vllm.service was left alone: paused by ann", "paused")
    monkeypatch.setattr(restarting, "restart", lambda order, dry_run: no)
    said, _ordered = run(**NEEDED)
    assert "failed" not in said
    assert (said["changed"], said["skipped_because"], said["diff"]) == (False, "paused", {})


@pytest.mark.parametrize("verdict", verdicts.RESTARTABLE)
def test_only_a_hang_is_held_against_numbers(run, verdict):
    without = {name: value for name, value in NEEDED.items() if name != "last_sample"}
    said, ordered = run(**without, verdict=verdict)
    assert bool(said.get("failed")) == (verdict == "stuck")
    assert len(ordered) == (verdict != "stuck")


@pytest.mark.parametrize(
    "sample",
    [
        {"frozen_engines": ["0"]},
        {**SAMPLE, "engines": {}},
        {**SAMPLE, "engines": ["0"]},
        {**SAMPLE, "engines": {"0": {"running": 2.0}}},
        {**SAMPLE, "frozen_engines": "0"},
        {name: value for name, value in SAMPLE.items() if name != "process_start_time"},
    ],
)
def test_half_a_sample_is_named_and_nothing_restarted(run, sample):
    said, ordered = run(**{**NEEDED, "last_sample": sample})
    assert said["failed"] is True and ordered == []
    assert "last_sample" in said["msg"] and "what vllm_health_info returned" in said["msg"]


@pytest.mark.parametrize("verdict", [word for word in verdicts.VERDICTS if word not in verdicts.RESTARTABLE])
def test_no_other_verdict_is_taken(run, verdict):
    said, ordered = run(**NEEDED, verdict=verdict)
    assert said["failed"] is True and ordered == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"server": {}}, "unit"),
        ({"server": {"unit": "vllm.service", "kind": "proxy"}}, "only a backend is restarted, never a proxy"),
        ({"server": {"unit": "--all"}}, "it must be the name of a systemd unit"),
        ({"server": {"unit": "vllm.service; reboot"}}, "it must be the name of a systemd unit"),
        ({"server": {"unit": ""}}, "it must be the name of a systemd unit"),
        ({"server": {"unit": "vllm.service", "url": "gpu-07"}}, "server.url is 'gpu-07'"),
        ({"server": {"unit": "vllm.service", "scope": "global"}}, "system, user"),
        ({"max_starts": 0}, "max_starts is 0: it must be a number of starts, 1 or more"),
        ({"min_interval": -1}, "min_interval is -1.0"),
        ({"min_interval": "nan"}, "min_interval is nan"),
        ({"window": 59}, "window is 59.0: it must be a number of seconds, 60 or more"),
        ({"window": "inf"}, "window is inf"),
        ({"timeout": 0}, "timeout is 0.0"),
        ({"ca_path": "/nonexistent"}, "ca_path is '/nonexistent'"),
        ({"force": True}, "force"),
    ],
    ids=lambda value: "" if isinstance(value, str) else json.dumps(value),
)
def test_bad_input_is_a_failure_that_names_it(run, arguments, message):
    said, ordered = run(**{**NEEDED, **arguments})
    assert said["failed"] is True and message in said["msg"]
    assert ordered == []


def test_a_key_is_nowhere_in_what_is_said(run):
    said, ((order, _dry_run),) = run(**{**NEEDED, "server": {"unit": "vllm.service", "api_key": "geheim-4711"}})
    assert order.server.endpoint.api_key == "geheim-4711"
    assert "geheim-4711" not in json.dumps(said)


def test_a_missing_library_is_a_failure_in_ansibles_usual_words(run, monkeypatch):
    monkeypatch.setattr(reading, "REQUESTS_IMPORT_ERROR", "Traceback (most recent call last): said by the test")
    said, ordered = run(**NEEDED)
    assert said["failed"] is True and ordered == []
    assert "Failed to import the required Python library (requests) on" in said["msg"]
