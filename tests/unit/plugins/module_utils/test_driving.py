"""Many servers at the same time, each one judged by its own looks, the answers in the order asked."""

import dataclasses
import os
import threading

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import driving, failing, sharing, vllm_api
from ansible_collections.fleetcheck.vllm.plugins.module_utils.driving import Target, check
from ansible_collections.fleetcheck.vllm.plugins.module_utils.exposition import Page, Sample
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import Limits, Look, Probe, Step
from ansible_collections.fleetcheck.vllm.plugins.module_utils.reading import Endpoint
from ansible_collections.fleetcheck.vllm.plugins.module_utils.vllm_api import Server

ENOUGH = 20.0  # seconds that nothing here may take; only a fault would
ASLEEP = Page(True, 100.0, {"0": Sample({}, 0.0, 0.0, 0.0, asleep=True)})


def idle(engines=1, models=("tiny",)):
    return Page(True, 100.0, {str(at): Sample({}, 0.0, 0.0, 0.0, False) for at in range(engines)}, models)


def busy(tokens):
    return Page(True, 100.0, {"0": Sample({"generation_tokens_total": float(tokens)}, 1.0, 0.0, 0.5, False)}, ("tiny",))


class Fleet:
    """Stands in for all servers: each name has a script, and what is asked of them is noted.

    A script says what the nth look at the server shows (a page, or an exception to raise).
    """

    def __init__(self):
        self.scripts = {}
        self.looks = {}
        self.probes = []
        self.answer = lambda *asked: ("answered", "HTTP 200")
        self.models = ("listed",)

    def target(self, name, script, kind="backend", model=None, **limits):
        self.scripts[name] = script
        self.looks[name] = []
        return Target(Server(Endpoint("http://" + name), model=model), Limits(**limits), kind)

    def look_at_backend(self, server, front, earlier):
        name = server.endpoint.url[len("http://") :]
        self.looks[name].append((front, earlier))
        started = driving.time.monotonic()
        shown = self.scripts[name](len(self.looks[name]))
        said = {"health": 200, "models": self.models, "models_status": 200, "models_by_vllm": True} if front else {}
        return Look(started, driving.time.monotonic(), page=shown, front=front, **said)

    def look_at_proxy(self, server):
        name = server.endpoint.url[len("http://") :]
        self.looks[name].append("proxy")
        now = driving.time.monotonic()
        return Look(now, now, front=True, models=self.scripts[name](len(self.looks[name])))

    def send_probe(self, server, model, rank, timeout):
        asked = (server.endpoint.url[len("http://") :], model, rank, timeout)
        self.probes.append(asked)
        return self.answer(*asked)


@pytest.fixture
def fleet(monkeypatch):
    servers = Fleet()
    for name in ("look_at_backend", "look_at_proxy", "send_probe"):
        monkeypatch.setattr(vllm_api, name, getattr(servers, name))
    monkeypatch.setattr(failing, "FIRST_GAP", 0.005)
    return servers


def words(judgements):
    return [(judgement.verdict, judgement.reason) for judgement in judgements]


# One server


def test_a_working_server_is_answered_with_the_read_that_shows_life_and_gets_no_probe(fleet):
    (judgement,) = check([fleet.target("a", lambda look: busy(100 + look))])
    assert (judgement.verdict, judgement.reason, judgement.reads) == ("busy", "progress", 2)
    assert fleet.looks["a"] == [(False, 0), (False, 1)]  # nor is anything asked of its front end
    assert fleet.probes == []


def test_each_look_is_told_how_many_came_before(fleet):
    check([fleet.target("a", lambda look: busy(max(look, 3)))])
    assert [earlier for _front, earlier in fleet.looks["a"]] == [0, 1, 2, 3]


def test_an_idle_server_gets_one_probe_and_the_answer_ends_the_check(fleet):
    (judgement,) = check([fleet.target("a", lambda look: idle())])
    assert (judgement.verdict, judgement.reason, judgement.probes) == ("idle", "answered", 1)
    assert len(fleet.probes) == 1


def test_the_front_end_is_asked_before_a_probe_is_sent(fleet):
    def answer(*_asked):
        assert any(front for front, _earlier in fleet.looks["a"])
        return "answered", "HTTP 200"

    fleet.answer = answer
    assert words(check([fleet.target("a", lambda look: idle())])) == [("idle", "answered")]


def test_reads_go_on_beside_an_open_probe_and_an_answer_wakes_the_check(fleet):
    read_again = threading.Event()

    def script(look):
        if fleet.probes:
            read_again.set()
        return idle()

    def answer(*_asked):
        assert read_again.wait(ENOUGH)
        return "answered", "HTTP 200"

    fleet.answer = answer
    assert words(check([fleet.target("a", script)])) == [("idle", "answered")]


def test_a_probe_that_nobody_answers_does_not_keep_the_check_from_its_verdict(fleet):
    over = threading.Event()

    def answer(*_asked):
        over.wait(ENOUGH)
        return "unanswered", "no answer in time"

    fleet.answer = answer
    (judgement,) = check([fleet.target("a", lambda look: idle(), patience=0.2, startup_grace=0.0)])
    assert not over.is_set()
    over.set()
    assert (judgement.verdict, judgement.reason, judgement.probes) == ("stuck", "no_answer", 1)


@pytest.mark.parametrize(
    ("asked_for", "listed", "labelled", "named"),
    [
        ("mine", ("listed",), ("labelled",), "mine"),
        (None, ("listed", "other"), ("labelled",), "listed"),
        (None, None, ("labelled",), "labelled"),
        (None, (), ("labelled",), "labelled"),
        (None, None, (), None),
    ],
)
def test_the_probe_names_the_model_asked_for_or_listed_or_labelled(fleet, asked_for, listed, labelled, named):
    fleet.models = listed
    check([fleet.target("a", lambda look: idle(models=labelled), model=asked_for)])
    assert [model for _name, model, _rank, _timeout in fleet.probes] == [named]


def test_a_lone_engine_is_not_named(fleet):
    check([fleet.target("a", lambda look: idle())])
    assert [rank for _name, _model, rank, _timeout in fleet.probes] == [None]


@pytest.mark.parametrize("engines", [2, 3])
def test_each_of_several_engines_gets_a_probe_of_its_own(fleet, engines):
    (judgement,) = check([fleet.target("a", lambda look: idle(engines=engines))])
    assert sorted(rank for _name, _model, rank, _timeout in fleet.probes) == ["0", "1", "2"][:engines]
    assert (judgement.verdict, judgement.probes) == ("idle", engines)


@pytest.mark.parametrize("patience", [1.0, 300.0])
def test_a_probe_is_waited_for_longer_than_the_judge_does(fleet, patience):
    check([fleet.target("a", lambda look: idle(), patience=patience)])
    assert all(timeout > 2 * patience for _name, _model, _rank, timeout in fleet.probes)


def test_without_leave_no_probe_is_sent(fleet):
    assert words(check([fleet.target("a", lambda look: idle(), probe=False)])) == [("idle", "not_probed")]
    assert fleet.probes == []


def test_a_proxy_is_asked_for_nothing_but_its_models(fleet):
    (judgement,) = check([fleet.target("a", lambda look: ("one", "two"), kind="proxy")])
    assert (judgement.verdict, judgement.reason, judgement.models) == ("serving", "models_listed", ("one", "two"))
    assert fleet.looks["a"] == ["proxy"] and fleet.probes == []


def test_what_is_still_under_way_at_the_end_does_not_keep_the_program_from_ending(fleet):
    daemons = []

    def note(*_asked):
        daemons.append(threading.current_thread().daemon)
        return "answered", "HTTP 200"

    fleet.answer = note
    check([fleet.target("a", lambda look: idle() if note() else None)])
    assert len(daemons) > 1 and all(daemons)


# Many servers


def test_the_judgements_come_in_the_order_of_the_targets(fleet):
    targets = [
        fleet.target("slow", lambda look: busy(max(look, 5))),
        fleet.target("asleep", lambda look: ASLEEP),
        fleet.target("idle", lambda look: idle()),
        fleet.target("proxy", lambda look: ("one",), kind="proxy"),
    ]
    assert words(check(targets)) == [
        ("busy", "progress"),
        ("sleeping", "sleep_mode"),
        ("idle", "answered"),
        ("serving", "models_listed"),
    ]
    assert [name for name, *_rest in fleet.probes] == ["idle"]


def test_all_servers_are_looked_at_at_the_same_time(fleet):
    together = threading.Barrier(10)

    def script(look):
        together.wait(ENOUGH)  # breaks unless all ten are in here at once
        return ASLEEP

    assert words(check([fleet.target(str(at), script) for at in range(10)])) == [("sleeping", "sleep_mode")] * 10


def test_all_probes_are_open_at_the_same_time(fleet):
    together = threading.Barrier(10)

    def answer(*_asked):
        together.wait(ENOUGH)
        return "answered", "HTTP 200"

    fleet.answer = answer
    assert words(check([fleet.target(str(at), lambda look: idle()) for at in range(10)])) == [("idle", "answered")] * 10


def test_no_more_looks_are_under_way_than_allowed_and_all_servers_get_their_turn(fleet, monkeypatch):
    driver = driving._Driver([fleet.target(str(at), lambda look: ASLEEP) for at in range(10)], 3)
    under_way = []
    monkeypatch.setattr(driver, "_in_thread", lambda look, then: under_way.append((look, then)))
    for player in driver._players:
        driver._plan(player, Step(0.0, front=False))
    seen = []
    driver._start_looks()
    while under_way:
        seen.append(len(under_way))
        look, then = under_way.pop(0)
        then(look())
        driver._start_looks()
    assert seen == [3] * 8 + [2, 1]
    assert words(player.judgement for player in driver._players) == [("sleeping", "sleep_mode")] * 10


@pytest.mark.parametrize("cpus", [1, 3])
def test_more_servers_than_looks_at_once_are_all_judged_in_the_order_of_the_targets(fleet, monkeypatch, cpus):
    monkeypatch.setattr(sharing, "_cpus", lambda: cpus)
    count = driving.LOOKS_AT_ONCE + 136
    shown = [ASLEEP if at % 7 else None for at in range(count)]
    targets = [fleet.target(str(at), lambda look, at=at: shown[at] or busy(100 + look)) for at in range(count)]
    assert words(check(targets)) == [("sleeping", "sleep_mode") if at % 7 else ("busy", "progress") for at in range(count)]


def test_many_servers_are_shared_out_over_processes(fleet, monkeypatch):
    monkeypatch.setattr(sharing, "_cpus", lambda: 2)
    targets = [fleet.target(str(at), lambda look: dataclasses.replace(ASLEEP, models=(str(os.getpid()),))) for at in range(100)]
    assert len({judgement.models for judgement in check(targets)} - {(str(os.getpid()),)}) == 2


def test_a_server_that_is_slow_to_answer_does_not_hold_up_the_others(fleet):
    others_done = threading.Event()

    def slow(look):
        assert others_done.wait(ENOUGH)
        return ASLEEP

    def last(look):
        if look == 4:
            others_done.set()
        return busy(max(look, 3))

    assert words(check([fleet.target("slow", slow), fleet.target("other", last)])) == [
        ("sleeping", "sleep_mode"),
        ("busy", "progress"),
    ]


def test_no_targets_are_no_judgements():
    assert check([]) == []


def test_what_comes_after_the_verdict_changes_nothing(fleet):
    driver = driving._Driver([fleet.target("a", lambda look: busy(100 + look))], 3)
    (judgement,) = driver.run()
    (player,) = driver._players
    driver._probed(player, Probe("0", 0), ("rejected", "HTTP 503"))
    driver._looked(player, Look(0.0, 0.0, failure="refused"))
    assert player.judgement is judgement


# A fault of our own


def test_a_fault_in_a_look_ends_the_check_and_does_not_hang(fleet):
    def fault(look):
        raise ZeroDivisionError("said by the test")

    with pytest.raises(ZeroDivisionError, match="said by the test"):
        check([fleet.target("a", lambda look: busy(7)), fleet.target("b", fault)])


def test_a_fault_in_a_probe_ends_the_check_and_does_not_hang(fleet):
    def answer(*_asked):
        raise ZeroDivisionError("said by the test")

    fleet.answer = answer
    with pytest.raises(ZeroDivisionError, match="said by the test"):
        check([fleet.target("a", lambda look: idle())])


def test_a_fault_in_the_judge_ends_the_check_and_does_not_hang(fleet, monkeypatch):
    def look(self, look):
        raise ZeroDivisionError("said by the test")

    monkeypatch.setattr(driving.Judge, "look", look)
    with pytest.raises(ZeroDivisionError, match="said by the test"):
        check([fleet.target("a", lambda look: idle())])
