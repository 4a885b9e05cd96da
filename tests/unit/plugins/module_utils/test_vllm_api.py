"""Which paths are asked, in which order, and what the answers mean."""

import json

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import looks, reading, systemd, vllm_api
from ansible_collections.fleetcheck.vllm.plugins.module_utils.exposition import Sample
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import Look
from ansible_collections.fleetcheck.vllm.plugins.module_utils.reading import Answer, Failure
from ansible_collections.fleetcheck.vllm.plugins.module_utils.systemd import SystemctlError, UnitFacts
from ansible_collections.fleetcheck.vllm.plugins.module_utils.vllm_api import (
    Server,
    look_at_backend,
    look_at_proxy,
    send_probe,
)

METRICS = Answer(200, b'vllm:num_requests_running{engine="0",model_name="tiny"} 3.0\n', "text/plain; version=0.0.4")
FACTS = UnitFacts("loaded", "active", "running", "5c0ee6c2", 4711, 0, 100.0)
NOBODY = Failure("refused", "connection refused")


def said(value, status=200):
    return Answer(status, json.dumps(value).encode(), "application/json")


def models(*entries):
    return said({"object": "list", "data": list(entries)})


BASE = {"id": "tiny", "object": "model", "owned_by": "vllm", "root": "/models/tiny", "parent": None}
ADAPTER = {"id": "sql-lora", "object": "model", "owned_by": "vllm", "root": "/loras/sql", "parent": "tiny"}

WELL = {
    "/metrics": METRICS,
    "/version": said({"version": "0.32.0"}),
    "/health": Answer(200, b""),
    "/v1/models": models(BASE),
    "/is_paused": said({"detail": "Not Found"}, 404),
    "/is_sleeping": said({"detail": "Not Found"}, 404),
}


class Stub:
    """An endpoint that answers by path, as the real one does, and notes what it was asked."""

    url = "http://127.0.0.1:8000"

    def __init__(self, answers):
        self.answers = answers
        self.asked = []
        self.posts = []

    def get(self, path, timeout):
        self.asked.append(path)
        assert timeout == 2.5
        return self.answers.get(path, Answer(404, b""))

    def post(self, path, body, timeout, headers):
        self.asked.append(path)
        self.posts.append((path, dict(body), timeout, dict(headers)))
        return self.answers.get(path, Answer(404, b""))


def backend(front=False, earlier=2, unit=None, **answers):
    """Look at a server that is well but for these answers; says what was seen and what was asked."""
    stub = Stub({**WELL, **{"/" + path.replace("__", "/"): answer for path, answer in answers.items()}})
    clock = iter([10.0, 10.5])
    look = look_at_backend(Server(stub, 2.5, unit), front, earlier, lambda: next(clock))
    assert (look.started, look.finished) == (10.0, 10.5)  # of the read of /metrics, not of what comes after
    return look, stub.asked


# A look at a backend


def test_a_look_reads_the_metrics_and_nothing_else():
    look, asked = backend()
    assert asked == ["/metrics"]
    assert look.page.engines == {"0": Sample({}, 3.0)}
    assert (look.failure, look.front, look.health, look.models, look.paused, look.version) == (None, False) + (None,) * 4


def test_the_second_look_asks_for_the_version_too():
    look, asked = backend(earlier=1)
    assert asked == ["/metrics", "/version"]
    assert look.version == "0.32.0"


def test_between_the_first_two_reads_nothing_else_is_asked():
    # Two servers that take turns behind one address would look like one.
    _look, asked = backend(earlier=0)
    assert asked == ["/metrics"]


def test_a_look_at_the_front_asks_what_the_server_says_of_itself():
    look, asked = backend(front=True)
    assert asked == ["/metrics", "/health", "/v1/models", "/is_paused", "/is_sleeping"]
    assert (look.front, look.health, look.models_status, look.models, look.models_by_vllm) == (True, 200, 200, ("tiny",), True)
    assert (look.paused, look.sleeping) == (None, None)  # it does not say


def test_who_shows_in_the_metrics_that_it_is_awake_is_not_asked_whether_it_sleeps():
    shown = METRICS.body + b'vllm:engine_sleep_state{engine="0",sleep_state="awake"} 1.0\n'
    look, asked = backend(front=True, metrics=Answer(200, shown, "text/plain"))
    assert "/is_sleeping" not in asked
    assert look.sleeping is None


@pytest.mark.parametrize("kind", [kind for kind in reading.KINDS if kind != "too_large"])
def test_who_does_not_answer_is_not_asked_anything_more(kind):
    look, asked = backend(front=True, earlier=0, metrics=Failure(kind, "said by the test"))
    assert asked == ["/metrics"]
    assert (look.page, look.failure, look.detail) == (None, kind, "said by the test")
    assert kind in looks.FAILED_LOOKS


@pytest.mark.parametrize(
    ("answer", "failure", "detail"),
    [
        (Answer(401, b""), "unauthorized", "HTTP 401"),
        (Answer(403, b""), "unauthorized", "HTTP 403"),
        (Answer(404, b""), "absent", "HTTP 404"),
        (Answer(429, b""), "error", "HTTP 429"),
        (Answer(500, b""), "error", "HTTP 500"),
        (Answer(503, b""), "error", "HTTP 503"),
        (Answer(204, b""), "error", "HTTP 204"),
        (Answer(301, b""), "redirected", "HTTP 301"),
        (Answer(307, METRICS.body), "redirected", "HTTP 307"),
        (Answer(200, b"<html>", "text/html; charset=utf-8"), "no_series", "/metrics is a web page"),
        (Answer(200, METRICS.body, "application/xhtml+xml"), "no_series", "/metrics is a web page"),
        (Answer(200, METRICS.body[:-1], "text/plain"), "unparseable", "the last line is cut off"),
        (Failure("too_large", "a body of more than 32 MiB"), "too_large", "a body of more than 32 MiB"),
    ],
    ids=lambda value: "",
)
def test_what_an_answer_without_metrics_means(answer, failure, detail):
    look, asked = backend(front=True, earlier=0, metrics=answer)
    assert (look.page, look.failure, look.detail) == (None, failure, detail)
    assert failure in looks.FAILED_LOOKS
    assert asked == ["/metrics", "/health", "/v1/models", "/is_paused"]  # somebody is there


def test_metrics_without_vllm_series_are_a_page_that_says_so():
    look, _asked = backend(metrics=Answer(200, b"up 1\n", "text/plain"))
    assert not look.page.is_vllm
    assert (look.failure, look.detail) == (None, "/metrics has no vllm: series")


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        (said({"version": "0.8.5"}), "0.8.5"),
        (said({"version": "x" * 1000}), "x" * 100),
        (said({"version": 3}), None),
        (said({"version": "0.32\x1b[2J"}), None),
        (said({}), None),
        (said([]), None),
        (said("0.32.0"), None),
        (said({"version": "0.32.0"}, 404), None),
        (Answer(200, b"0.32.0"), None),
        (Answer(200, b"\xff"), None),
        (Answer(200, b"[" * 100_000), None),
        (NOBODY, None),
    ],
    ids=lambda value: "",
)
def test_a_version_is_a_short_text_or_unknown(answer, version):
    assert backend(earlier=1, version=answer)[0].version == version


@pytest.mark.parametrize(("answer", "health"), [(Answer(200, b""), 200), (Answer(503, b""), 503), (NOBODY, None)])
def test_health_is_a_status_or_unknown(answer, health):
    assert backend(front=True, health=answer)[0].health == health


@pytest.mark.parametrize("name", ["paused", "sleeping"])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda name: said({name: True}), True),
        (lambda name: said({name: False}), False),
        (lambda name: said({name: "true"}), False),
        (lambda name: said({}), False),
        (lambda name: said([True]), None),
        (lambda name: said({name: True}, 500), None),
        (lambda name: Answer(200, b"true?"), None),
        (lambda name: NOBODY, None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_paused_and_sleeping_are_what_the_endpoint_of_that_name_says(answer, expected, name):
    look, _asked = backend(front=True, **{"is_" + name: answer("is_" + name)})
    assert getattr(look, name) is expected


@pytest.mark.parametrize(
    ("answer", "names", "by_vllm"),
    [
        (models(BASE), ("tiny",), True),
        (models(ADAPTER, BASE, {**BASE, "id": "alias"}), ("tiny", "alias"), True),
        (models(ADAPTER), (), False),
        (models({**BASE, "owned_by": "openai"}), ("tiny",), False),
        (models({"id": "tiny"}), ("tiny",), False),
        (models(), (), False),
        (models(BASE, "x", None, 3, {"id": 4}, {}), ("tiny",), True),
        (models({**BASE, "id": "x" * 1000}), ("x" * 1000,), True),  # a probe must name it in full
        (models({**BASE, "id": "x" * 10_000}, BASE), ("tiny",), True),
        (models(*({**BASE, "id": str(at)} for at in range(50))), tuple(map(str, range(20))), True),
        (said({"data": {}}), None, False),
        (said({"data": None}), None, False),
        (said(["tiny"]), None, False),
        (Answer(200, b"<html>"), None, False),
    ],
    ids=lambda value: "",
)
def test_the_models_are_those_without_a_parent(answer, names, by_vllm):
    look = backend(front=True, v1__models=answer)[0]
    assert (look.models_status, look.models, look.models_by_vllm) == (200, names, by_vllm)


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_models_that_are_not_shown_leave_their_status(status):
    look = backend(front=True, v1__models=Answer(status, models(BASE).body))[0]
    assert (look.models_status, look.models) == (status, None)


def test_models_that_are_not_answered_leave_nothing():
    look = backend(front=True, v1__models=Failure("timeout", "no answer in time"))[0]
    assert (look.models_status, look.models) == (None, None)


# The unit


@pytest.fixture
def units(monkeypatch):
    """Notes the units that are asked for; all of them are well."""
    asked = []

    def show(unit, scope):
        asked.append((unit, scope))
        return FACTS

    monkeypatch.setattr(systemd, "show", show)
    return asked


def test_a_server_without_a_unit_needs_no_systemd(units):
    look, _asked = backend(front=True, earlier=0)
    assert (look.unit, look.unit_error, units) == (None, None, [])


@pytest.mark.parametrize(("front", "earlier", "times"), [(False, 1, 0), (True, 1, 1), (False, 0, 1), (True, 0, 1)])
def test_the_unit_is_asked_for_first_and_with_the_front(units, front, earlier, times):
    look, _asked = backend(front=front, earlier=earlier, unit="vllm.service")
    assert units == [("vllm.service", "system")] * times
    assert look.unit == (FACTS if times else None)


def test_the_unit_is_asked_for_where_nobody_answers(units):
    look, _asked = backend(front=True, unit="vllm.service", metrics=NOBODY)
    assert (look.failure, look.unit) == ("refused", FACTS)


def test_why_the_unit_cannot_be_read_is_kept(monkeypatch):
    def show(unit, scope):
        raise SystemctlError("systemctl did not answer within 5 s")

    monkeypatch.setattr(systemd, "show", show)
    look, _asked = backend(earlier=0, unit="vllm.service")
    assert (look.unit, look.unit_error) == (None, "systemctl did not answer within 5 s")


# A look at a proxy


def proxy(answer, unit=None):
    stub = Stub({"/v1/models": answer})
    clock = iter([10.0, 10.5])
    look = look_at_proxy(Server(stub, 2.5, unit, "user"), lambda: next(clock))
    assert stub.asked == ["/v1/models"]  # nothing else is ever asked of it
    assert (look.started, look.finished) == (10.0, 10.5)
    return look


def test_a_proxy_is_asked_for_its_models_alone(units):
    assert proxy(models(ADAPTER, BASE), "litellm.service").models == ("tiny",)
    assert units == [("litellm.service", "user")]


@pytest.mark.parametrize(
    ("answer", "failure", "detail"),
    [
        (NOBODY, "refused", "connection refused"),
        (Failure("timeout", "no answer in time"), "timeout", "no answer in time"),
        (Answer(401, b""), "unauthorized", "HTTP 401"),
        (Answer(403, b""), "unauthorized", "HTTP 403"),
        (Answer(404, b""), "absent", "HTTP 404"),
        (Answer(502, b""), "error", "HTTP 502"),
        (Answer(302, b""), "redirected", "HTTP 302"),
        (Answer(200, b"<html>", "text/html"), "malformed", "no list of models"),
        (said({"data": "x"}), "malformed", "no list of models"),
    ],
    ids=lambda value: "",
)
def test_a_proxy_without_a_list_of_models(answer, failure, detail):
    look = proxy(answer)
    assert (look.failure, look.detail, look.models) == (failure, detail, None)
    assert failure in looks.FAILED_LOOKS


def test_a_proxy_that_lists_no_model_still_lists_models():
    assert proxy(models()) == Look(10.0, 10.5, front=True, models=())


# A probe

COMPLETIONS, CHAT, EMBEDDINGS, POOLING = "/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/pooling"
ORDER = [COMPLETIONS, CHAT, EMBEDDINGS, POOLING]
DONE = said({"choices": []})


def probe(answers, model="tiny", rank=None):
    stub = Stub(answers)
    return send_probe(Server(stub), model, rank, 420.0), stub


def test_a_probe_is_one_completion_of_one_token():
    outcome, stub = probe({COMPLETIONS: DONE})
    assert outcome == ("answered", "HTTP 200")
    assert stub.posts == [(COMPLETIONS, {"model": "tiny", "prompt": "1", "max_tokens": 1, "temperature": 0}, 420.0, {})]


@pytest.mark.parametrize("absent", [404, 405, 501])
@pytest.mark.parametrize("place", range(1, 4))
def test_where_there_are_no_completions_the_next_path_is_tried(place, absent):
    answers = {path: Answer(absent, b"") for path in ORDER}
    outcome, stub = probe({**answers, ORDER[place]: DONE})
    assert outcome == ("answered", "HTTP 200")
    assert stub.asked == ORDER[: place + 1]
    assert all(body["model"] == "tiny" for _path, body, _timeout, _headers in stub.posts)


def test_no_probe_asks_for_more_than_one_token_and_none_for_luck():
    _outcome, stub = probe({})
    bodies = [body for _path, body, _timeout, _headers in stub.posts]
    assert [(body.get("max_tokens"), body.get("temperature")) for body in bodies] == [(1, 0), (1, 0), (None, None), (None, None)]


def test_where_no_path_takes_a_probe_it_is_absent():
    outcome, stub = probe({})
    assert outcome == ("absent", "HTTP 404")
    assert stub.asked == ORDER


@pytest.mark.parametrize("status", [400, 415, 422])
def test_a_request_that_the_front_end_does_not_take_is_not_repeated_elsewhere(status):
    outcome, stub = probe({COMPLETIONS: Answer(status, b"")})
    assert outcome == ("absent", "HTTP %d" % status)
    assert stub.asked == [COMPLETIONS]


@pytest.mark.parametrize("status", [401, 403, 429, 500, 502, 503, 204, 302])
def test_any_other_error_rejects_the_probe(status):
    outcome, stub = probe({COMPLETIONS: Answer(status, b"")})
    assert outcome == ("rejected", "HTTP %d" % status)
    assert stub.asked == [COMPLETIONS]


@pytest.mark.parametrize("kind", [kind for kind in reading.KINDS if kind != "timeout"])
def test_a_connection_that_breaks_loses_the_probe(kind):
    outcome, stub = probe({COMPLETIONS: Failure(kind, "said by the test")})
    assert outcome == ("lost", "said by the test")
    assert stub.asked == [COMPLETIONS]


def test_a_probe_that_is_not_answered_in_time_is_neither_lost_nor_rejected():
    assert probe({COMPLETIONS: Failure("timeout", "no answer in time")})[0] == ("unanswered", "no answer in time")


def test_every_outcome_is_one_the_judge_knows():
    answers = [DONE, NOBODY, Failure("timeout", ""), Answer(400, b""), Answer(404, b""), Answer(503, b"")]
    assert {probe({COMPLETIONS: answer})[0][0] for answer in answers} == set(looks.PROBE_OUTCOMES)


def test_one_of_several_engines_is_named_by_a_header():
    _outcome, stub = probe({COMPLETIONS: Answer(404, b""), CHAT: DONE}, rank="1")
    assert [headers for _path, _body, _timeout, headers in stub.posts] == [{"X-data-parallel-rank": "1"}] * 2


def test_without_a_known_model_none_is_named():
    _outcome, stub = probe({COMPLETIONS: DONE}, model=None)
    assert "model" not in stub.posts[0][1]


def test_the_probes_themselves_are_not_changed_by_sending_them():
    before = json.dumps(vllm_api._PROBES)
    probe({}, rank="1")
    assert json.dumps(vllm_api._PROBES) == before


@pytest.mark.parametrize(
    "error",
    [
        {"object": "error", "message": "The model does not support Completions API", "code": 400},
        {"error": {"message": "The model does not support Completions API", "code": 400}},
        {"object": "error"},
    ],
)
def test_an_error_with_the_status_200_is_no_answer_of_the_engine(error):
    (outcome, _detail), stub = probe({"/v1/completions": said(error), "/v1/chat/completions": said(error)})
    assert outcome == "absent"
    assert [path for path, *_rest in stub.posts] == ["/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/pooling"]
    (outcome, _detail), _stub = probe({"/v1/completions": said(error), "/v1/embeddings": said({"object": "list", "data": []})})
    assert outcome == "answered"


def test_half_a_character_goes_no_further():
    broken = dict(WELL, **{"/version": said({"version": "0.9\ud800"}), "/v1/models": models({**BASE, "id": "a\ud800"}, BASE)})
    looked = look_at_backend(Server(Stub(broken), 2.5), front=True, earlier=1)
    assert (looked.version, looked.models) == (None, ("tiny",))
