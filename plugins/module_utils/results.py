# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From judgements to what the module returns."""

from __future__ import annotations

import datetime
import time
import typing as t

from . import verdicts, wording
from .driving import Target
from .exposition import Sample
from .looks import EngineEvidence, Judgement
from .systemd import UnitFacts

_MODEL_NAME = 200  # characters of a model's name that are shown


def report(names: t.Sequence[str], targets: t.Sequence[Target], judgements: t.Sequence[Judgement]) -> t.Dict[str, t.Any]:
    """The return values of a whole run: the worst verdict, counts, and one dict per server in the order asked."""
    words = [judgement.verdict for judgement in judgements]
    worst = verdicts.worst(words)
    return {
        "verdict": worst,
        "healthy": verdicts.healthy(worst),
        "counts": verdicts.counts(words),
        "servers": [_server(*row) for row in zip(names, targets, judgements)],
    }


def _server(name: str, target: Target, judgement: Judgement) -> t.Dict[str, t.Any]:
    return {
        "name": name,
        "url": target.server.endpoint.url,
        "unit": target.server.unit,
        "kind": target.kind,
        "verdict": judgement.verdict,
        "reason": judgement.reason,
        "healthy": verdicts.healthy(judgement.verdict),
        "message": wording.message(judgement, target.server.unit),
        "engines": [_engine(engine) for engine in judgement.engines],
        "reads": judgement.reads,
        "probes": judgement.probes,
        "elapsed": round(judgement.elapsed, 3),
        "restarted_meanwhile": judgement.restarted_meanwhile,
        "vllm_version": judgement.version,
        "models": [name[:_MODEL_NAME] for name in judgement.models],
        "process_start_time": judgement.page.start_time if judgement.page else None,
        "systemd": _systemd(judgement, target),
        "last_sample": last_sample(judgement),
    }


def _engine(engine: EngineEvidence) -> t.Dict[str, t.Any]:
    rate = None if engine.tokens is None or engine.interval <= 0 else round(engine.tokens / engine.interval, 1)
    return {
        "engine": engine.engine,
        "running": engine.sample.running or 0.0,
        "waiting": engine.sample.waiting or 0.0,
        "steps": engine.sample.counters.get("iteration_tokens_total_count"),
        "tokens": engine.sample.counters.get("generation_tokens_total"),
        "tokens_per_second": rate,
        "kv_cache_usage": engine.sample.kv_cache_usage,
        "signs_of_life": sorted(engine.signs),
        "silent_for": round(engine.silent_for, 3),
    }


def last_sample(judgement: Judgement) -> t.Optional[t.Dict[str, t.Any]]:
    """What a later step compares to see whether the server is still frozen at the same numbers.

    frozen_engines are those that showed no life and did not answer.
    """
    page = judgement.page
    if page is None:
        return None
    return {
        "process_start_time": page.start_time,
        "frozen_engines": [row.engine for row in judgement.engines if row.probe == "open" and not row.signs],
        "engines": {label: _numbers(sample) for label, sample in page.engines.items()},
    }


def _numbers(sample: Sample) -> t.Dict[str, t.Any]:
    return {
        "counters": dict(sample.counters),
        "running": sample.running,
        "waiting": sample.waiting,
        "kv_cache_usage": sample.kv_cache_usage,
    }


def _systemd(judgement: Judgement, target: Target) -> t.Optional[t.Dict[str, t.Any]]:
    if target.server.unit is None:
        return None
    if judgement.unit is None:
        return {"error": judgement.unit_error}
    facts = judgement.unit
    return {
        "active_state": facts.active_state,
        "sub_state": facts.sub_state,
        "invocation_id": facts.invocation_id,
        "main_pid": facts.main_pid,
        "restarts": facts.restarts,
        "started_at": _started_at(facts),
    }


def _started_at(facts: UnitFacts) -> t.Optional[str]:
    """The start as UTC, worked out backwards from now: systemd's monotonic times have no date."""
    if facts.started is None:
        return None
    started = time.time() - (time.monotonic() - facts.started)
    return datetime.datetime.fromtimestamp(started, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
