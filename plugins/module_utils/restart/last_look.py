# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last look before a restart: is the server still exactly as it was judged?"""

from __future__ import annotations

import concurrent.futures
import typing as t

from .. import failing, vllm_api
from ..exposition import Page, Sample
from ..looks import Limits, Look

ANSWER_WITHIN = 10.0
"""Seconds that an engine which seems frozen gets for one token. An idle one answers at once."""

_SICK_HEALTH = (500, 503)


def objection(verdict: str, last_sample: t.Optional[t.Mapping[str, t.Any]], server: vllm_api.Server) -> t.Optional[str]:
    """Why the server is no longer what it was judged to be, as a sentence, or None where it still is.

    verdict: stuck, dead or unresponsive. last_sample: what the check returned.
    """
    look = vllm_api.look_at_backend(server, front=True, earlier=0)
    if verdict == "stuck":
        return _not_frozen(last_sample, look, server)
    meant = _meaning(look)
    if meant != verdict:
        return "it was %s, but now it looks %s" % (verdict, meant)
    if look.page is not None and last_sample:
        # Only the front end says that the engine is dead: its numbers must agree.
        return _differences(last_sample, look.page, last_sample["engines"])
    return None


def _meaning(look: Look) -> str:
    if look.failure is not None:
        return failing.meaning(look, Limits(startup_grace=0.0))[0]
    return "dead" if look.health in _SICK_HEALTH else "alive"


def _not_frozen(
    last_sample: t.Optional[t.Mapping[str, t.Any]], look: Look, server: vllm_api.Server
) -> t.Optional[str]:
    if look.page is None:
        return "/metrics cannot be read any more (%s)" % look.detail
    if look.paused:
        return "its scheduler was paused meanwhile"
    if look.sleeping:
        return "it was put to sleep meanwhile"
    moved = differences(last_sample, look.page)
    if moved is not None:
        return moved
    frozen = t.cast(t.Mapping[str, t.Any], last_sample)["frozen_engines"]
    return _answers(frozen, look, server) or _moved_since(last_sample, server)


def _answers(frozen: t.Sequence[str], look: Look, server: vllm_api.Server) -> t.Optional[str]:
    """Whether one of the engines answers again. The numbers do not tell: an idle engine that works again shows the same
    zeros, and some releases go on to say that requests run whose clients left while it was frozen."""
    several = len(t.cast(Page, look.page).engines) > 1
    model = _model(server, look)

    def ask(label: str) -> t.Tuple[str, str]:
        return vllm_api.send_probe(server, model, label if several else None, ANSWER_WITHIN)

    with concurrent.futures.ThreadPoolExecutor(len(frozen)) as pool:
        for label, (outcome, detail) in zip(frozen, pool.map(ask, frozen)):
            if outcome != "unanswered":
                return "engine %s is not silent any more (%s: %s)" % (label, outcome, detail)
    return None


def _moved_since(last_sample: t.Optional[t.Mapping[str, t.Any]], server: vllm_api.Server) -> t.Optional[str]:
    look = vllm_api.look_at_backend(server, front=False, earlier=2)
    if look.page is None:
        return "/metrics cannot be read any more (%s)" % look.detail
    return differences(last_sample, look.page)


def _model(server: vllm_api.Server, look: Look) -> t.Optional[str]:
    return server.model or next(iter(look.models or (look.page.models if look.page else ())), None)


def differences(last_sample: t.Optional[t.Mapping[str, t.Any]], page: Page) -> t.Optional[str]:
    """What moved since the verdict, as a sentence; None where every frozen engine shows exactly the same numbers.

    Waiting requests are left out: arrivals move them.
    """
    if not last_sample or not last_sample.get("frozen_engines"):
        return "the verdict names no frozen engine"
    return _differences(last_sample, page, last_sample["frozen_engines"])


def _differences(last_sample: t.Mapping[str, t.Any], page: Page, labels: t.Iterable[str]) -> t.Optional[str]:
    if last_sample["process_start_time"] != page.start_time:
        return "the process was restarted meanwhile"
    for label in labels:
        sample = page.engines.get(label)
        if sample is None:
            return "engine %s is gone from /metrics" % label
        if sample.asleep:
            return "engine %s was put to sleep meanwhile" % label
        name = _moved(last_sample["engines"][label], sample)
        if name is not None:
            return "engine %s moved meanwhile (%s)" % (label, name)
    return None


def _moved(before: t.Mapping[str, t.Any], now: Sample) -> t.Optional[str]:
    gauges = {"num_requests_running": now.running, "kv_cache_usage_perc": now.kv_cache_usage}
    judged = {"num_requests_running": before["running"], "kv_cache_usage_perc": before["kv_cache_usage"]}
    shown = {**now.counters, **gauges}
    numbers = {**before["counters"], **judged}
    return next((name for name in sorted(set(shown) | set(numbers)) if shown.get(name) != numbers.get(name)), None)
