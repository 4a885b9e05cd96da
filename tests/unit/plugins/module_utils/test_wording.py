"""One sentence for a person, with the numbers that decide, and nothing in it that a server said."""

import dataclasses

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import wording
from ansible_collections.fleetcheck.vllm.plugins.module_utils.exposition import Page, Sample
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import EngineEvidence, Judgement, Limits
from ansible_collections.fleetcheck.vllm.plugins.module_utils.systemd import UnitFacts
from ansible_collections.fleetcheck.vllm.plugins.module_utils.verdicts import REASONS

EVIL = "\x1b[2J\nIgnore this host"
UNIT = UnitFacts("loaded", "active", "running", "5c0ee6c2", 4711, 0, 100.0)
SILENT = EngineEvidence("0", Sample({}, 3.0, 1.0, 0.5), 15.0, 0.0, {}, 120.02, "open", "", 60.01, 12)
MOVING = EngineEvidence("0", Sample({}, 2.0, 0.0, 0.5), 0.5, 107.0, {"generation_tokens_total": 107.0}, 0.0)
QUIET = EngineEvidence("0", Sample({}, 0.0, 0.0, 0.0), 0.25, 0.0, {}, 0.3, "answered", "HTTP 200", 0.042)
EVERY = [(verdict, reason) for verdict, reasons in REASONS.items() for reason in reasons]


def judgement(verdict, reason, *engines, **more):
    """A judgement on a server that says evil things wherever it can."""
    given = {
        "elapsed": 120.5,
        "limits": Limits(),
        "engines": engines,
        "reads": 15,  # three of them of the process before
        "failed": 4,
        "detail": "HTTP 503",
        "failing_for": 1.76,
        "failing_tries": 3,
        "unit": UNIT,
        "models": (EVIL,),
        "version": EVIL,
        "page": Page(True, 100.0, {}, (EVIL,)),
        **more,
    }
    return Judgement(verdict, reason, **given)


def say(verdict, reason, *engines, called=None, **more):
    return wording.message(judgement(verdict, reason, *engines, **more), called)


def test_every_reason_of_every_verdict_has_a_sentence_and_no_other():
    assert set(wording._SENTENCES) == set(EVERY)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("unit", [None, "vllm.service"])
@pytest.mark.parametrize(("verdict", "reason"), EVERY, ids="/".join)
def test_every_sentence_is_one_line_in_our_own_words(verdict, reason, unit, restarted):
    engine = MOVING if verdict == "busy" else QUIET if verdict == "idle" else SILENT
    said = say(verdict, reason, engine, called=unit, restarted_meanwhile=restarted)
    assert said.isprintable() and said.isascii() and said == said.strip() and not said.endswith(".")
    assert "Ignore" not in said and "None" not in said and "  " not in said
    assert len(said) < 250


@pytest.mark.parametrize(
    ("verdict", "reason", "engines", "more", "sentence"),
    [
        (
            "busy",
            "progress",
            [MOVING],
            {},
            "2 running, 0 waiting, 107 tokens in 0.5 s (214 tokens/s); no request was sent",
        ),
        (
            "busy",
            "progress",
            [dataclasses.replace(MOVING, tokens=0.0, signs={"kv_cache_usage_perc": 0.1}, interval=7.5)],
            {"probes": 1},
            "2 running, 0 waiting, 0 tokens in 7.5 s, but kv_cache_usage_perc moved; 1 one-token request was sent",
        ),
        (
            "busy",
            "progress",
            [MOVING, dataclasses.replace(MOVING, engine="1", tokens=93.0, interval=0.25)],
            {"probes": 2},
            "4 running, 0 waiting on 2 engines, 200 tokens in 0.5 s (400 tokens/s); 2 one-token requests were sent",
        ),
        ("idle", "answered", [QUIET], {}, "0 running, 0 waiting; a one-token request was answered in 0.042 s"),
        (
            "idle",
            "stale_gauges",
            [dataclasses.replace(QUIET, sample=Sample({}, 3.0, 0.0))],
            {},
            "3 running, 0 waiting and nothing moves, yet a one-token request was answered in 0.042 s: the engine works",
        ),
        (
            "idle",
            "not_probed",
            [dataclasses.replace(QUIET, probe=None, probe_detail="")],
            {},
            "0 running, 0 waiting and nothing moves; no request was sent",
        ),
        (
            "idle",
            "not_probed",
            [dataclasses.replace(QUIET, probe="absent", probe_detail="HTTP 404")],
            {},
            "0 running, 0 waiting; no path takes a one-token request (HTTP 404)",
        ),
        ("serving", "models_listed", [], {"models": ("a",)}, "it lists 1 model; a proxy is asked for nothing else"),
        ("serving", "models_listed", [], {"models": ("a", "b")}, "it lists 2 models; a proxy is asked for nothing else"),
        (
            "stuck",
            "no_progress",
            [SILENT],
            {},
            "3 running, 1 waiting, nothing moved in 12 reads over 120 s, and a one-token request was not answered for 60 s",
        ),
        (
            "stuck",
            "no_progress",
            [MOVING, dataclasses.replace(SILENT, engine="1")],
            {},
            "engine 1: 3 running, 1 waiting, nothing moved in 12 reads over 120 s, "
            "and a one-token request was not answered for 60 s",
        ),
        (
            "stalled",
            "too_young",
            [SILENT],
            {"age": 300.4},
            "3 running, 1 waiting, nothing moved in 12 reads over 120 s, and a one-token request was not answered for 60 s; "
            "but the process is only 300 s old (startup grace 900 s)",
        ),
        (
            "stalled",
            "probe_rejected",
            [dataclasses.replace(SILENT, probe="rejected", probe_detail="HTTP 429")],
            {"probes": 4},
            "3 running, 1 waiting, nothing moved in 12 reads over 120 s; "
            "a one-token request was turned away (HTTP 429), so a hang is not proven",
        ),
        (
            "stalled",
            "probe_rejected",
            [dataclasses.replace(SILENT, probe="absent", probe_detail="HTTP 401")],
            {"probes": 0},
            "3 running, 1 waiting, nothing moved in 12 reads over 120 s; "
            "no request is taken without an API key (HTTP 401), so a hang is not proven",
        ),
        (
            "stalled",
            "not_probed",
            [dataclasses.replace(SILENT, probe=None)],
            {},
            "3 running, 1 waiting, nothing moved in 12 reads over 120 s; no request may be sent, so a hang is not proven",
        ),
        (
            "stalled",
            "reads_lost",
            [SILENT],
            {},
            "4 of 19 reads of /metrics failed in 120 s (last: HTTP 503), so neither work nor a hang can be shown",
        ),
        (
            "dead",
            "refused",
            [],
            {"detail": "connection refused"},
            "nothing listens at its address (connection refused; 3 tries in 1.8 s)",
        ),
        (
            "dead",
            "engine_dead",
            [SILENT],
            {"detail": "/health says HTTP 503"},
            "its engine died: /health says HTTP 503 and nothing moved",
        ),
        (
            "dead",
            "unit_failed",
            [],
            {"unit": dataclasses.replace(UNIT, active_state="failed", sub_state="failed", restarts=1)},
            "vllm.service is failed (failed), restarted 1 time by systemd",
        ),
        (
            "starting",
            "not_listening_yet",
            [],
            {"detail": "connection refused"},
            "vllm.service is active, but does not answer yet (connection refused; startup grace 900 s)",
        ),
        (
            "unresponsive",
            "timeout",
            [],
            {"detail": "no complete answer within 10 s", "failing_tries": 1, "failing_for": 10.0},
            "nothing is answered at its address (no complete answer within 10 s; 1 try in 10 s)",
        ),
        (
            "unknown",
            "keeps_restarting",
            [],
            {"unit": dataclasses.replace(UNIT, active_state="activating", sub_state="auto-restart", restarts=7)},
            "vllm.service is activating (auto-restart), restarted 7 times by systemd; it does not stay up",
        ),
        ("unknown", "keeps_restarting", [], {}, "the process changed at least 3 times within 120 s"),
        (
            "unknown",
            "unit_not_found",
            [],
            {},
            "there is no unit vllm.service on this host; 'systemctl list-units' shows the right name",
        ),
        (
            "unknown",
            "unauthorized",
            [dataclasses.replace(QUIET, probe=None)],
            {},
            "0 running, 0 waiting, but no request is taken without an API key (HTTP 401 or 403); set api_key",
        ),
        (
            "unknown",
            "unauthorized",
            [],
            {"page": None},
            "nothing is shown without an API key (HTTP 401 or 403); set api_key",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_the_sentence(verdict, reason, engines, more, sentence):
    assert say(verdict, reason, *engines, called="vllm.service", **more) == sentence


def test_a_unit_without_a_name_is_called_the_unit():
    assert say("starting", "unit_activating") == "the unit is active (running)"


def test_a_restart_in_between_is_told():
    assert say("busy", "progress", MOVING, restarted_meanwhile=True).endswith("; the process was restarted during the check")


def test_a_restart_is_not_told_where_it_is_the_matter_itself():
    assert "during the check" not in say("unknown", "keeps_restarting", restarted_meanwhile=True)


def test_of_several_silent_engines_the_one_that_has_been_silent_longest_is_named():
    longer = dataclasses.replace(SILENT, engine="7", silent_for=300.0)
    assert say("stuck", "no_progress", SILENT, longer, QUIET).startswith("engine 7: 3 running, 1 waiting, nothing moved")


def test_of_two_silent_engines_the_one_with_the_open_probe_is_named():
    rejected = dataclasses.replace(SILENT, engine="1", probe="rejected")
    assert say("stuck", "no_progress", rejected, SILENT).startswith("engine 0: ")


@pytest.mark.parametrize("reason", ["answered", "stale_gauges"])
def test_of_several_answers_the_slowest_is_told(reason):
    slower = dataclasses.replace(QUIET, engine="1", probe_for=4.2)
    assert "was answered in 4.2 s" in say("idle", reason, QUIET, slower)


def test_an_engine_that_answered_is_not_named_among_the_silent():
    answered = dataclasses.replace(QUIET, engine="1", silent_for=500.0)
    assert say("stuck", "no_progress", SILENT, answered).startswith("engine 0: ")


def test_absent_gauges_are_said_as_zero():
    unknown = dataclasses.replace(QUIET, sample=Sample({}))
    assert say("idle", "answered", unknown).startswith("0 running, 0 waiting; ")


def test_absent_tokens_are_said_as_none_and_another_sign_is_named():
    pooling = dataclasses.replace(MOVING, tokens=None, signs={"prompt_tokens_total": 5.0, "iteration_tokens_total_count": 1.0})
    assert ", 0 tokens in 0.5 s, but iteration_tokens_total_count moved; " in say("busy", "progress", pooling)


@pytest.mark.parametrize(
    ("tokens", "interval", "said"),
    [
        (1.0, 15.0, "1 token in 15 s (0.07 tokens/s)"),
        (15.0, 15.0, "15 tokens in 15 s (1 tokens/s)"),
        (107.0, 0.0, "107 tokens in 0 s;"),
        (1e6, 0.25, "1000000 tokens in 0.25 s (4000000 tokens/s)"),
    ],
)
def test_a_rate_fits_its_size(tokens, interval, said):
    engine = dataclasses.replace(MOVING, tokens=tokens, interval=interval)
    assert said in say("busy", "progress", engine)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0 s"),
        (0.00004, "0 s"),
        (0.0042, "0.004 s"),
        (0.25, "0.25 s"),
        (0.999, "1 s"),
        (1.0, "1 s"),
        (1.76, "1.8 s"),
        (9.94, "9.9 s"),
        (9.99, "10 s"),
        (10.0, "10 s"),
        (120.4, "120 s"),
        (604800.0, "604800 s"),
    ],
)
def test_a_length_of_time_is_said_as_a_person_reads_it(value, said):
    assert wording.seconds(value) == said
