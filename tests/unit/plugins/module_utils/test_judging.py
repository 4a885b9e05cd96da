"""The rules of the judge, each as a timeline."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.exposition import Page, Sample
from ansible_collections.fleetcheck.vllm.plugins.module_utils.judging import ProxyJudge
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import Judgement, Limits, Look, Step
from ansible_collections.fleetcheck.vllm.plugins.module_utils.systemd import UnitFacts

from tests.unit.plugins.module_utils.playing import WALL, Played, Script, failed, good, page, play, sample

ANSWER = (0.03, "answered", "HTTP 200")
SHORT = Limits(patience=10.0)


def steady(*engines: Sample, start: t.Optional[float] = WALL - 5000, **front: t.Any) -> t.Callable[[float, bool], Look]:
    """A server whose numbers never change."""
    return lambda now, is_front: good(page(*engines, start=start), is_front, **(front if is_front else {}))


def moving(make: t.Callable[[float], Sample], *others: Sample) -> t.Callable[[float, bool], Look]:
    """A server whose engine 0 changes with time."""
    return lambda now, is_front: good(page(make(now), *others), is_front)


def answering(now: float, engine: str) -> t.Tuple[float, str, str]:
    return ANSWER


def saying(outcome: str, detail: str) -> t.Callable[[float, str], t.Tuple[float, str, str]]:
    return lambda now, engine: (0.03, outcome, detail)


def unit(active: str = "active", sub: str = "running", **more: t.Any) -> UnitFacts:
    facts = {"load_state": "loaded", "invocation_id": "a" * 32, "main_pid": 4711, "restarts": 0, "started": -5000.0}
    return UnitFacts(active_state=active, sub_state=sub, **{**facts, **more})


# Working servers: answered with the first read that shows life, and never probed


@pytest.mark.parametrize(
    "grows",
    [
        lambda now: sample(running=1, steps=100 + now * 50),
        lambda now: sample(running=1, tokens=1000 + now * 50),
        lambda now: sample(running=1, kv=0.1 + now / 1000),
        lambda now: sample(running=1 + (now > 0.1)),
    ],
    ids=["steps", "tokens", "kv usage", "running"],
)
def test_any_sign_of_life_is_busy_at_the_second_read(grows: t.Callable[[float], Sample]) -> None:
    played = play(Script(moving(grows)))
    assert played.words == ("busy", "progress")
    assert len(played.looks) == 2
    assert played.probes == []


def test_arrivals_alone_are_no_sign_of_life() -> None:
    played = play(Script(moving(lambda now: sample(running=1, waiting=now * 10))), SHORT)
    assert played.words == ("stuck", "no_progress")


def test_full_queue_that_moves_is_busy_without_a_probe() -> None:
    played = play(Script(moving(lambda now: sample(running=12, waiting=40, tokens=now * 600))))
    assert played.words == ("busy", "progress")
    assert played.probes == []


def test_pooling_server_with_zeros_on_its_gauges_but_moving_counters_is_busy() -> None:
    played = play(Script(moving(lambda now: sample(steps=100 + now * 50))))
    assert played.words == ("busy", "progress")
    assert played.probes == []


def test_life_late_in_the_first_half_acquits_without_a_probe() -> None:
    played = play(Script(moving(lambda now: sample(running=1, steps=100 + (now > 50)))))
    assert played.words == ("busy", "progress")
    assert played.probes == []


def test_life_in_the_second_half_acquits_beside_the_open_probe() -> None:
    played = play(Script(moving(lambda now: sample(running=1, steps=100 + now * (now > 80)))))
    assert played.words == ("busy", "progress")
    assert len(played.probes) == 1


def test_reads_come_soon_and_then_at_growing_distances_of_at_most_15_seconds() -> None:
    starts = [look.started for look in play(Script(steady(sample(running=1)))).looks]
    distances = [after - before for before, after in zip(starts, starts[1:])]
    assert distances[0] == pytest.approx(0.26)
    assert max(distances) <= 15.02
    first_half = [distance for start, distance in zip(starts, distances) if start < 30]
    assert first_half == sorted(first_half)


# Idle servers


def test_idle_server_is_asked_once_and_answers() -> None:
    played = play(Script(steady(sample()), answering))
    assert played.words == ("idle", "answered")
    assert len(played.probes) == 1
    assert played.ended < 1


def test_move_of_the_counters_by_our_own_probe_is_not_called_busy() -> None:
    # The probe takes half a second; a read beside it shows the token it made.
    shows_probe = moving(lambda now: sample(running=float(0.3 < now < 0.8), tokens=1000 + (now > 0.4)))
    played = play(Script(shows_probe, lambda now, engine: (0.5, "answered", "HTTP 200")))
    assert played.words == ("idle", "answered")


def test_slow_answer_to_our_own_probe_is_not_called_busy() -> None:
    # One token takes this engine five seconds; reads beside the probe show it running.
    shows_probe = moving(lambda now: sample(running=float(0.5 < now < 5.3), kv=0.01 * (0.5 < now < 5.3), tokens=1000 + (now > 5.2)))
    played = play(Script(shows_probe, lambda now, engine: (5.0, "answered", "HTTP 200")))
    assert played.words == ("idle", "answered")


def test_engine_that_takes_the_probe_and_freezes_then_is_not_called_stuck_by_this_check() -> None:
    took_it = moving(lambda now: sample(running=float(now > 0.5)))
    assert play(Script(took_it), SHORT).words == ("busy", "progress")


def test_batch_that_arrives_beside_the_open_probe_is_busy() -> None:
    arrives = moving(lambda now: sample(running=12 * (now > 2), tokens=1000 + max(0.0, now - 2) * 100))
    played = play(Script(arrives))
    assert played.words == ("busy", "progress")


def test_probe_answered_behind_a_long_step_with_work_going_on_is_busy() -> None:
    working = moving(lambda now: sample(running=1 * (now > 83), steps=100 + max(0.0, now - 83) * 10))
    played = play(Script(working, lambda now, engine: (83 - now, "answered", "HTTP 200")))
    assert played.words == ("busy", "progress")


def test_gauges_that_stay_up_though_the_engine_answers_are_stale() -> None:
    played = play(Script(steady(sample(running=2)), answering), SHORT)
    assert played.words == ("idle", "stale_gauges")


def test_server_without_any_path_for_a_probe_is_idle_and_not_probed() -> None:
    played = play(Script(steady(sample()), saying("absent", "HTTP 404")))
    assert played.words == ("idle", "not_probed")


def test_nothing_is_sent_where_probes_are_switched_off() -> None:
    played = play(Script(steady(sample())), Limits(probe=False))
    assert played.words == ("idle", "not_probed")
    assert played.probes == []


# Frozen servers


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (sample(running=3), "no_progress"),
        (sample(running=1, waiting=3), "no_progress"),
        (sample(waiting=3), "not_admitted"),
        (sample(), "no_answer"),
    ],
    ids=["busy", "queued", "not admitted", "idle"],
)
@pytest.mark.parametrize("patience", [2.0, 10.0, 120.0, 600.0])
def test_frozen_server_is_stuck_right_after_its_patience_and_not_before(
    shown: Sample, reason: str, patience: float
) -> None:
    played = play(Script(steady(shown)), Limits(patience=patience))
    assert played.words == ("stuck", reason)
    silence = played.looks[-1].started - played.looks[0].finished
    assert patience - 1e-6 <= silence < patience + 0.1


def test_probe_of_a_silent_server_with_work_goes_out_after_half_of_the_patience() -> None:
    played = play(Script(steady(sample(running=3))))
    assert [round(at) for at, _probe in played.probes] == [60]


def test_probe_that_was_refused_for_a_while_must_still_be_open_for_half_of_the_patience() -> None:
    def probe(now: float, engine: str) -> t.Optional[t.Tuple[float, str, str]]:
        return (0.01, "rejected", "HTTP 503") if now < 61 else None

    played = play(Script(steady(sample(running=3)), probe))
    assert played.words == ("stuck", "no_progress")
    assert played.looks[-1].started - played.probes[-1][0] >= 60


@pytest.mark.parametrize("status", [429, 503, 500])
def test_probe_that_the_front_end_turns_away_proves_nothing(status: int) -> None:
    played = play(Script(steady(sample(running=3)), saying("rejected", "HTTP %d" % status)), SHORT)
    assert played.words == ("stalled", "probe_rejected")


def test_quiet_server_that_turns_probes_away_is_stalled_after_the_whole_patience() -> None:
    played = play(Script(steady(sample()), saying("rejected", "HTTP 429")), SHORT)
    assert played.words == ("stalled", "probe_rejected")
    assert played.ended >= 10


def test_silent_server_cannot_be_proven_stuck_without_a_probe() -> None:
    played = play(Script(steady(sample(running=3))), Limits(patience=10, probe=False))
    assert played.words == ("stalled", "not_probed")
    assert played.probes == []


def test_young_process_is_stalled_and_not_stuck() -> None:
    played = play(Script(steady(sample(running=3), start=WALL - 300)))
    assert played.words == ("stalled", "too_young")


@pytest.mark.parametrize(
    ("started", "words"),
    [(None, ("stalled", "too_young")), (-100_000.0, ("stuck", "no_progress"))],
    ids=["nothing else is known", "systemd knows better"],
)
def test_process_that_starts_in_the_future_is_young_unless_systemd_knows_better(
    started: t.Optional[float], words: t.Tuple[str, str]
) -> None:
    # Its clock is ahead of ours, or was set back since: no process starts after it was read.
    unit = None if started is None else UnitFacts("loaded", "active", "running", "a", 5, 0, started)
    shown = page(sample(running=3), start=WALL + 100_000)
    played = play(Script(lambda now, front: good(shown, front, unit=unit)))
    assert played.words == words
    assert played.judgement.age is None or played.judgement.age >= 0


@pytest.mark.parametrize(("patience", "takes"), [(10, 10), (20, 20), (120, 40)])
def test_questions_that_take_long_do_not_keep_a_hang_from_being_proven(patience: float, takes: float) -> None:
    # /is_paused is answered by the engine: a frozen one takes the whole time-out.
    shown = page(sample(running=3))
    played = play(Script(lambda now, front: good(shown, front)), Limits(patience, 0.0), front_takes=takes)
    assert played.words == ("stuck", "no_progress")


def test_engine_that_is_frozen_beside_a_sick_front_end_is_not_looked_at_without_a_pause() -> None:
    def look(now: float, front: bool) -> Look:
        both = page(sample(running=2, tokens=1000 + now), sample(running=2))
        return good(both, front, **({"health": 503} if front else {}))

    played = play(Script(look), Limits(20, 0.0))
    assert played.words == ("stalled", "reads_lost")
    assert len(played.looks) < 40


def test_young_unit_is_stalled_even_where_no_start_time_is_exported() -> None:
    look = steady(sample(running=3), start=None, unit=unit(started=-300.0))
    assert play(Script(look)).words == ("stalled", "too_young")


def test_process_that_started_during_the_check_is_young_without_any_start_time() -> None:
    def look(now: float, front: bool) -> Look:
        return good(page(sample(running=3, tokens=1000 if now < 0.2 else 3), start=None), front)

    played = play(Script(look), SHORT)
    assert played.words == ("stalled", "too_young")
    assert played.judgement.restarted_meanwhile


# Several engines


def test_one_frozen_engine_beside_a_working_one_is_stuck() -> None:
    played = play(Script(moving(lambda now: sample(running=2, steps=now * 50), sample(running=2))), SHORT)
    assert played.words == ("stuck", "no_progress")
    assert {probe.engine for _at, probe in played.probes} == {"1"}


def test_idle_engine_beside_a_working_one_is_not_probed() -> None:
    played = play(Script(moving(lambda now: sample(running=2, steps=now * 50), sample())))
    assert played.words == ("busy", "progress")
    assert played.probes == []


def test_every_idle_engine_is_asked_and_the_frozen_one_found() -> None:
    frozen = Script(steady(sample(), sample()), lambda now, engine: ANSWER if engine == "0" else None)
    played = play(frozen, SHORT)
    assert played.words == ("stuck", "no_answer")
    assert {probe.engine for _at, probe in played.probes} == {"0", "1"}


def test_batch_on_one_engine_does_not_hide_a_frozen_idle_one_that_was_already_asked() -> None:
    batch = moving(lambda now: sample(running=4 * (now > 1), steps=100 + max(0.0, now - 1) * 50), sample())
    played = play(Script(batch, lambda now, engine: ANSWER if engine == "0" else None), SHORT)
    assert played.words == ("stuck", "no_answer")


def gone_after(when: float) -> t.Callable[[float, bool], Look]:
    """Engine 0 works on; engine 1 is silent and not on the page any more from then on."""

    def look(now: float, front: bool) -> Look:
        working = sample(running=2, steps=now * 50)
        return good(page(working, sample(running=2)) if now < when else page(working), front)

    return look


@pytest.mark.parametrize("when", [0.1, 1.5, 6.0, 9.9])
def test_engine_that_is_gone_from_the_page_is_not_called_stuck(when: float) -> None:
    assert play(Script(gone_after(when)), SHORT).words == ("busy", "progress")


def test_engine_that_comes_and_goes_is_not_watched_for_ever() -> None:
    looked: t.List[float] = []

    def look(now: float, front: bool) -> Look:
        looked.append(now)
        silent = sample(running=2)
        return good(page(silent, silent) if len(looked) % 2 else page(silent), front, paused=None)

    assert play(Script(look, lambda now, engine: ANSWER if engine == "0" else None), SHORT).ended < 40


def test_probe_is_open_from_when_the_front_end_has_answered_and_not_from_when_metrics_were_read() -> None:
    def look(now: float, front: bool) -> Look:
        return good(page(sample(running=2)), front, returned=now + (3.0 if front else 0.0))

    played = play(Script(look), SHORT)
    assert played.words == ("stuck", "no_progress")
    assert played.looks[-1].started - (played.probes[-1][0] + 3.0) >= 5.0 - 0.02


def test_slow_front_end_is_waited_for_instead_of_being_called_a_refusal() -> None:
    def look(now: float, front: bool) -> Look:
        return good(page(sample(running=2)), front and now > 25)

    played = play(Script(look), Limits(patience=2.0))
    assert len(played.probes) == 1


def test_one_timeout_that_is_longer_than_the_patience_is_not_yet_unresponsive() -> None:
    looks: t.List[float] = []

    def look(now: float, front: bool) -> Look:
        looks.append(now)
        return failed("timeout")

    played = play(Script(look), Limits(patience=1.0))
    assert played.words == ("unresponsive", "timeout")
    assert len(looks) >= 2


# Asleep, paused, died


def test_sleeping_server_is_never_probed() -> None:
    played = play(Script(steady(sample(asleep=True))))
    assert played.words == ("sleeping", "sleep_mode")
    assert played.probes == []
    assert len(played.looks) == 1


@pytest.mark.parametrize("shown", [sample(), sample(running=2, waiting=2)], ids=["idle", "held"])
def test_paused_server_is_never_probed(shown: Sample) -> None:
    played = play(Script(steady(shown, paused=True)))
    assert played.words == ("paused", "scheduler_paused")
    assert played.probes == []


def test_server_that_says_it_sleeps_where_the_metrics_do_not_is_never_probed() -> None:
    played = play(Script(steady(sample(), sleeping=True)))  # before 0.12
    assert played.words == ("sleeping", "sleep_mode")
    assert played.probes == []


def test_server_paused_while_the_probe_is_open_is_not_stuck() -> None:
    def look(now: float, front: bool) -> Look:
        return good(page(sample(running=2)), front, **({"paused": now > 90} if front else {}))

    assert play(Script(look)).words == ("paused", "scheduler_paused")


@pytest.mark.parametrize("status", [500, 503])
@pytest.mark.parametrize("shown", [sample(), sample(running=3)], ids=["idle", "busy"])
def test_bad_health_on_two_looks_without_life_is_a_dead_engine(status: int, shown: Sample) -> None:
    played = play(Script(steady(shown, health=status)))
    assert played.words == ("dead", "engine_dead")
    assert played.probes == []


def test_bad_health_once_is_not_a_dead_engine() -> None:
    seen: t.List[float] = []

    def look(now: float, front: bool) -> Look:
        seen.extend([now] if front else [])
        return good(page(sample()), front, **({"health": 503 if len(seen) == 1 else 200} if front else {}))

    assert play(Script(look, answering)).words == ("idle", "answered")


# Restarts and several servers behind one address


def restarting(at: float, start: t.Optional[float], after: Sample, before: Sample) -> t.Callable[[float, bool], Look]:
    def look(now: float, front: bool) -> Look:
        old = page(before, start=None if start is None else WALL - 5000)
        return good(old if now < at else page(after, start=start), front)

    return look


@pytest.mark.parametrize("start", [WALL + 0.1, None], ids=["start time", "counters fell"])
def test_counters_of_two_processes_are_never_compared(start: t.Optional[float]) -> None:
    look = restarting(0.2, start, after=sample(tokens=5, steps=5), before=sample(running=1))
    played = play(Script(look, answering))
    assert played.words == ("idle", "answered")
    assert played.judgement.restarted_meanwhile


def test_restart_late_in_the_silence_starts_the_patience_anew() -> None:
    look = restarting(9.0, WALL + 9.0, after=sample(running=1, tokens=5), before=sample(running=1))
    played = play(Script(look), Limits(patience=10, startup_grace=1))
    assert played.words == ("stuck", "no_progress")
    assert played.ended > 19


def test_answer_to_a_probe_of_the_process_before_acquits_nobody() -> None:
    look = restarting(7.0, WALL + 7.0, after=sample(running=1, tokens=5), before=sample(running=1))
    late = Script(look, lambda now, engine: (5.0, "answered", "HTTP 200") if now < 7 else None)
    assert play(late, Limits(patience=10, startup_grace=1)).words == ("stuck", "no_progress")


def test_change_of_the_invocation_is_a_restart_even_where_the_numbers_go_on() -> None:
    def look(now: float, front: bool) -> Look:
        facts = unit(invocation_id=("a" if now < 5 else "b") * 32)
        return good(page(sample(running=1), start=None), front, unit=facts)

    played = play(Script(look), SHORT)
    assert played.judgement.restarted_meanwhile
    assert played.ended > 15


@pytest.mark.parametrize("starts", [(-5000, -4000), (-5000, -5000.5)])
def test_processes_that_ran_side_by_side_are_several_servers_behind_one_address(starts: t.Tuple[float, float]) -> None:
    looked: t.List[float] = []

    def look(now: float, front: bool) -> Look:
        looked.append(now)
        return good(page(sample(running=1), start=WALL + starts[len(looked) % 2]), front)

    assert play(Script(look)).words == ("unknown", "behind_proxy")


def test_process_that_comes_back_is_several_servers_behind_one_address() -> None:
    # The clock of the host is ahead by an hour: the starts alone do not tell.
    shown = iter([3600.0, 3601.0, 3600.0])
    played = play(Script(lambda now, front: good(page(sample(running=1), start=WALL + next(shown)), front)))
    assert played.words == ("unknown", "behind_proxy")


def test_counters_that_fall_and_come_back_are_several_servers_behind_one_address() -> None:
    shown = iter([1000.0, 3.0, 1001.0, 4.0, 1002.0])
    played = play(Script(lambda now, front: good(page(sample(running=1, tokens=next(shown)), start=None), front)))
    assert played.words == ("unknown", "behind_proxy")


def test_process_that_changes_with_every_look_keeps_restarting() -> None:
    played = play(Script(lambda now, front: good(page(sample(running=1), start=WALL + now), front)))
    assert played.words == ("unknown", "keeps_restarting")


# Looks that fail


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("refused", ("dead", "refused")),
        ("unreachable", ("unknown", "unreachable")),
        ("reset", ("unknown", "metrics_error")),
        ("tls", ("unknown", "tls_error")),
        ("name", ("unknown", "name_not_resolved")),
        ("too_large", ("unknown", "unparseable")),
        ("malformed", ("unknown", "not_vllm")),
        ("unparseable", ("unknown", "unparseable")),
        ("redirected", ("unknown", "redirected")),
        ("unauthorized", ("unknown", "unauthorized")),
        ("absent", ("unknown", "not_vllm")),
        ("error", ("unknown", "metrics_error")),
        ("no_series", ("unknown", "not_vllm")),
    ],
)
def test_lasting_failure_is_a_verdict_after_three_tries_or_more(kind: str, words: t.Tuple[str, str]) -> None:
    played = play(Script(lambda now, front: failed(kind)))
    assert played.words == words
    assert len(played.looks) >= 3


@pytest.mark.parametrize("kind", ["absent", "no_series"])
def test_vllm_without_metrics_is_told_from_something_else(kind: str) -> None:
    played = play(Script(lambda now, front: failed(kind, models_by_vllm=front)))
    assert played.words == ("unknown", "no_metrics")


def test_page_of_something_else_is_not_vllm() -> None:
    played = play(Script(lambda now, front: good(Page(False, None, {}), front, models_by_vllm=False)))
    assert played.words == ("unknown", "not_vllm")


@pytest.mark.parametrize("kind", ["refused", "timeout", "reset", "unparseable", "error"])
def test_lost_reads_neither_acquit_nor_convict(kind: str) -> None:
    def look(now: float, front: bool) -> Look:
        return failed(kind) if 1 < now < 2 else good(page(sample(running=1)), front)

    played = play(Script(look), SHORT)
    assert played.words == ("stuck", "no_progress")
    assert played.looks[-1].started - played.looks[0].finished >= 10


def test_timeouts_are_unresponsive_only_after_the_whole_patience() -> None:
    played = play(Script(lambda now, front: failed("timeout")))
    assert played.words == ("unresponsive", "timeout")
    assert played.ended >= 120


def test_front_end_that_freezes_during_the_check_gets_the_whole_patience_too() -> None:
    def look(now: float, front: bool) -> Look:
        return failed("timeout") if now > 0.1 else good(page(sample(running=1)), front)

    played = play(Script(look), SHORT)
    assert played.words == ("unresponsive", "timeout")
    assert played.ended >= 10.2


def wedged(shown: Sample, *spells: t.Tuple[float, float]) -> t.Callable[[float, bool], Look]:
    """A silent engine behind a front end that answers nothing in these spells."""

    def look(now: float, front: bool) -> Look:
        if any(begin < now < end for begin, end in spells):
            return failed("timeout")
        return good(page(shown), front)

    return look


@pytest.mark.parametrize("shown", [sample(), sample(running=2, waiting=2)], ids=["idle", "busy"])
@pytest.mark.parametrize(
    ("spells", "silent_by"),
    [([(1, 118)], 200), ([(2, 59), (62, 118)], 170), ([(61, 175)], 180)],
    ids=["nearly all of it", "in two pieces", "while the probe is open"],
)
def test_time_in_which_reads_were_lost_is_no_silence(
    shown: Sample, spells: t.List[t.Tuple[float, float]], silent_by: float
) -> None:
    played = play(Script(wedged(shown, *spells)))
    assert played.words[0] == "stuck"  # in the end: it is frozen
    assert played.ended > silent_by
    good_reads = [read for read in played.looks if read.page is not None]
    assert len([read for read in good_reads if read.started > spells[-1][1]]) >= 3


def test_one_lost_read_does_not_prolong_the_patience() -> None:
    played = play(Script(wedged(sample(running=2), (89, 101))))
    assert played.words == ("stuck", "no_progress")
    assert 120 < played.ended < 121


def test_engine_that_worked_behind_a_wedged_front_end_is_acquitted() -> None:
    def look(now: float, front: bool) -> Look:
        # The page of the first read after the spell was made before the engine's output was counted.
        return good(page(sample(running=2, tokens=1000 if now < 121 else 9000)), front)

    silent = wedged(sample(running=2), (1, 119.5))
    played = play(Script(lambda now, front: silent(now, front) if now < 121 else look(now, front)))
    assert played.words == ("busy", "progress")


def test_server_that_fails_now_so_and_now_so_is_stalled_in_the_end() -> None:
    looked: t.List[float] = []

    def look(now: float, front: bool) -> Look:
        looked.append(now)
        if len(looked) == 1:
            return good(page(sample(running=1)), front)
        return failed("timeout" if len(looked) % 2 else "reset")

    assert play(Script(look), SHORT).words == ("stalled", "reads_lost")


# Units


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (unit("inactive", "dead"), ("dead", "unit_inactive")),
        (unit("failed", "failed"), ("dead", "unit_failed")),
        (unit("activating", "start"), ("starting", "unit_activating")),
        (unit("activating", "auto-restart", restarts=1), ("starting", "unit_activating")),
        (unit("activating", "auto-restart", restarts=7), ("unknown", "keeps_restarting")),
        (unit("deactivating", "stop-sigterm"), ("starting", "unit_deactivating")),
        (unit(started=-40.0), ("starting", "not_listening_yet")),
        (unit(started=-5000.0), ("dead", "refused")),
        (unit(load_state="not-found", active="inactive"), ("unknown", "unit_not_found")),
    ],
)
def test_unit_knows_more_than_a_closed_port(facts: UnitFacts, words: t.Tuple[str, str]) -> None:
    assert play(Script(lambda now, front: failed("refused", unit=facts))).words == words


def test_server_that_answers_is_not_dead_whatever_the_unit_says() -> None:
    look = steady(sample(running=1), unit=unit("inactive", "dead"))
    assert play(Script(look, answering), SHORT).judgement.verdict == "idle"


@pytest.mark.parametrize("state", ["activating", "deactivating"])
def test_server_whose_unit_is_on_its_way_is_starting_though_it_answers(state: str) -> None:
    def look(now: float, front: bool) -> Look:
        return good(page(sample(running=1)), front, unit=unit(state, "stop-sigterm"))

    assert play(Script(look)).words == ("starting", "unit_" + state)


def test_silent_port_of_a_young_unit_is_starting() -> None:
    played = play(Script(lambda now, front: failed("timeout", unit=unit(started=-40.0))), SHORT)
    assert played.words == ("starting", "not_listening_yet")


# Proxies


def play_proxy(look: Look) -> t.Tuple[Judgement, int]:
    judge = ProxyJudge(SHORT, 0.0)
    said: t.Union[Step, Judgement] = judge.begin()
    looks = 0
    while isinstance(said, Step):
        looks += 1
        said = judge.look(
            Look(said.look_at, said.look_at + 0.01, failure=look.failure, detail=look.detail, models=look.models)
        )
    return said, looks


def test_proxy_that_lists_models_is_serving() -> None:
    judgement, looks = play_proxy(Look(0, 0, models=("a", "b")))
    assert (judgement.verdict, judgement.reason, looks) == ("serving", "models_listed", 1)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("refused", ("dead", "refused")),
        ("timeout", ("unresponsive", "timeout")),
        ("unauthorized", ("unknown", "unauthorized")),
        ("error", ("unknown", "metrics_error")),
    ],
)
def test_proxy_that_fails_is_judged_by_how(kind: str, words: t.Tuple[str, str]) -> None:
    judgement, looks = play_proxy(failed(kind))
    assert (judgement.verdict, judgement.reason) == words
    assert looks >= 2


def test_evidence_has_the_numbers_of_the_deciding_interval() -> None:
    played: Played = play(Script(moving(lambda now: sample(running=2, tokens=1000 + now * 200, steps=now * 50))))
    (engine,) = played.judgement.engines
    assert engine.interval == pytest.approx(0.26)
    assert engine.tokens == pytest.approx(52)
    assert set(engine.signs) == {"generation_tokens_total", "iteration_tokens_total_count"}
    assert engine.silent_for == 0
