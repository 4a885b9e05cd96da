# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentence that goes with a verdict: what was seen, with the numbers that decide.

Nothing that a server says (names of models, texts of errors) gets into it.
"""

from __future__ import annotations

import typing as t

from .looks import EngineEvidence, Judgement
from .systemd import UnitFacts


def message(judgement: Judgement, unit: t.Optional[str] = None) -> str:
    """One sentence for a person. unit: the unit's name, where known."""
    say = _SENTENCES[judgement.verdict, judgement.reason]
    sentence = say(judgement, unit or "the unit")
    if judgement.restarted_meanwhile and judgement.verdict != "unknown":
        sentence += "; the process was restarted during the check"
    return sentence


def seconds(value: float) -> str:
    """A length of time as a person reads it."""
    return "%.2g s" % round(value, 3) if value < 10 else "%.0f s" % value


def _many(count: float, one: str, more: str) -> str:
    return "%d %s" % (count, one if count == 1 else more)


def _count(value: t.Optional[float]) -> str:
    return "%d" % (value or 0)


def _gauges(engines: t.Sequence[EngineEvidence]) -> str:
    running = sum(engine.sample.running or 0 for engine in engines)
    waiting = sum(engine.sample.waiting or 0 for engine in engines)
    where = " on %d engines" % len(engines) if len(engines) > 1 else ""
    return "%s running, %s waiting%s" % (_count(running), _count(waiting), where)


def _sent(judgement: Judgement) -> str:
    if judgement.probes == 0:
        return "no request was sent"
    return "%s sent" % _many(judgement.probes, "one-token request was", "one-token requests were")


def _busy(judgement: Judgement, unit: str) -> str:
    working = [engine for engine in judgement.engines if engine.signs]
    interval = max(engine.interval for engine in working)
    tokens = sum(engine.tokens or 0 for engine in working)
    said = "%s, %s in %s" % (_gauges(judgement.engines), _many(tokens, "token", "tokens"), seconds(interval))
    if tokens and interval > 0:
        said += " (%.*f tokens/s)" % (0 if tokens >= interval else 2, tokens / interval)
    elif not tokens:
        said += ", but %s moved" % sorted(working[0].signs)[0]
    return "%s; %s" % (said, _sent(judgement))


def _answered(judgement: Judgement, unit: str) -> str:
    slowest = max(engine.probe_for for engine in judgement.engines)
    return "%s; a one-token request was answered in %s" % (_gauges(judgement.engines), seconds(slowest))


def _stale(judgement: Judgement, unit: str) -> str:
    # A real server can show this while one request waits inside the engine for something else, such as its grammar.
    return "%s and nothing moves, yet a one-token request was answered in %s: the engine works" % (
        _gauges(judgement.engines),
        seconds(max(engine.probe_for for engine in judgement.engines)),
    )


def _idle_not_probed(judgement: Judgement, unit: str) -> str:
    details = sorted({engine.probe_detail for engine in judgement.engines if engine.probe_detail})
    if details:
        return "%s; no path takes a one-token request (%s)" % (_gauges(judgement.engines), ", ".join(details))
    return "%s and nothing moves; no request was sent" % _gauges(judgement.engines)


def _serving(judgement: Judgement, unit: str) -> str:
    return "it lists %s; a proxy is asked for nothing else" % _many(len(judgement.models), "model", "models")


def _silent(judgement: Judgement) -> str:
    engine = _worst_engine(judgement)
    which = "engine %s: " % engine.engine if len(judgement.engines) > 1 else ""
    return "%s%s, nothing moved in %d reads over %s" % (
        which,
        _gauges([engine]),
        engine.reads,
        seconds(engine.silent_for),
    )


def _worst_engine(judgement: Judgement) -> EngineEvidence:
    """The one that has been silent longest, behind the probe that has been open longest."""
    silent = [engine for engine in judgement.engines if not engine.signs and engine.probe != "answered"]
    return max(silent, key=lambda engine: (engine.silent_for, engine.probe == "open", engine.probe_for))


def _stuck(judgement: Judgement, unit: str) -> str:
    open_for = seconds(_worst_engine(judgement).probe_for)
    return "%s, and a one-token request was not answered for %s" % (_silent(judgement), open_for)


def _too_young(judgement: Judgement, unit: str) -> str:
    return "%s; but the process is only %s old (startup grace %s)" % (
        _stuck(judgement, unit),
        seconds(judgement.age or 0),
        seconds(judgement.limits.startup_grace),
    )


def _probe_rejected(judgement: Judgement, unit: str) -> str:
    detail = _worst_engine(judgement).probe_detail or "no answer"
    if judgement.probes == 0:
        return "%s; no request is taken without an API key (%s), so a hang is not proven" % (_silent(judgement), detail)
    return "%s; a one-token request was turned away (%s), so a hang is not proven" % (_silent(judgement), detail)


def _stalled_not_probed(judgement: Judgement, unit: str) -> str:
    return "%s; no request may be sent, so a hang is not proven" % _silent(judgement)


def _reads_lost(judgement: Judgement, unit: str) -> str:
    if judgement.failed == 0:
        return "engines came and went on /metrics for %s, so neither work nor a hang can be shown" % seconds(judgement.elapsed)
    return "%d of %d reads of /metrics failed in %s (last: %s), so neither work nor a hang can be shown" % (
        judgement.failed,
        judgement.failed + judgement.reads,
        seconds(judgement.elapsed),
        judgement.detail,
    )


def _failing(what: str) -> t.Callable[[Judgement, str], str]:
    def say(judgement: Judgement, unit: str) -> str:
        tries = _many(judgement.failing_tries, "try", "tries")
        return "%s (%s; %s in %s)" % (what, judgement.detail, tries, seconds(judgement.failing_for))

    return say


def _plain(text: str) -> t.Callable[[Judgement, str], str]:
    return lambda judgement, unit: text


def _unit_is(judgement: Judgement, unit: str) -> str:
    facts = t.cast(UnitFacts, judgement.unit)
    restarts = ", restarted %s by systemd" % _many(facts.restarts, "time", "times") if facts.restarts else ""
    return "%s is %s (%s)%s" % (unit, facts.active_state, facts.sub_state, restarts)


def _not_listening_yet(judgement: Judgement, unit: str) -> str:
    return "%s is active, but does not answer yet (%s; startup grace %s)" % (
        unit,
        judgement.detail,
        seconds(judgement.limits.startup_grace),
    )


def _keeps_restarting(judgement: Judgement, unit: str) -> str:
    if judgement.unit is not None and judgement.unit.sub_state == "auto-restart":
        return "%s; it does not stay up" % _unit_is(judgement, unit)
    return "the process changed at least 3 times within %s" % seconds(judgement.elapsed)


def _unauthorized(judgement: Judgement, unit: str) -> str:
    what = "nothing is shown" if judgement.page is None else "%s, but no request is taken" % _gauges(judgement.engines)
    return "%s without an API key (HTTP 401 or 403); set api_key" % what


def _unit_not_found(judgement: Judgement, unit: str) -> str:
    return "there is no unit %s on this host; 'systemctl list-units' shows the right name" % unit


_SENTENCES: t.Dict[t.Tuple[str, str], t.Callable[[Judgement, str], str]] = {
    ("busy", "progress"): _busy,
    ("idle", "answered"): _answered,
    ("idle", "stale_gauges"): _stale,
    ("idle", "not_probed"): _idle_not_probed,
    ("serving", "models_listed"): _serving,
    ("starting", "unit_activating"): _unit_is,
    ("starting", "unit_deactivating"): _unit_is,
    ("starting", "not_listening_yet"): _not_listening_yet,
    ("sleeping", "sleep_mode"): _plain("an engine was put to sleep; no request was sent"),
    ("paused", "scheduler_paused"): _plain("its scheduler is paused, says /is_paused; no request was sent"),
    ("stalled", "too_young"): _too_young,
    ("stalled", "probe_rejected"): _probe_rejected,
    ("stalled", "not_probed"): _stalled_not_probed,
    ("stalled", "reads_lost"): _reads_lost,
    ("stuck", "no_progress"): _stuck,
    ("stuck", "not_admitted"): _stuck,
    ("stuck", "no_answer"): _stuck,
    ("dead", "refused"): _failing("nothing listens at its address"),
    ("dead", "engine_dead"): lambda judgement, unit: "its engine died: %s and nothing moved" % judgement.detail,
    ("dead", "unit_inactive"): _unit_is,
    ("dead", "unit_failed"): _unit_is,
    ("unresponsive", "timeout"): _failing("nothing is answered at its address"),
    ("unknown", "no_metrics"): _failing("vLLM answers, but exports no metrics of its engine, as with --disable-log-stats"),
    ("unknown", "not_vllm"): _failing("what answers there is not vLLM"),
    ("unknown", "unauthorized"): _unauthorized,
    ("unknown", "metrics_error"): _failing("/metrics cannot be read"),
    ("unknown", "unparseable"): _failing("/metrics cannot be understood"),
    ("unknown", "behind_proxy"): _plain(
        "several servers answer at this address in turn: name each one's own address, or say kind: proxy"
    ),
    ("unknown", "keeps_restarting"): _keeps_restarting,
    ("unknown", "unit_not_found"): _unit_not_found,
    ("unknown", "name_not_resolved"): _failing("its name cannot be looked up"),
    ("unknown", "unreachable"): _failing("its address cannot be reached"),
    ("unknown", "tls_error"): _failing("no trusted TLS connection can be made"),
    ("unknown", "redirected"): _failing("it sends elsewhere, and redirects are not followed"),
}
