# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts as metrics of Prometheus."""

from __future__ import annotations

import calendar
import time
import traceback
import typing as t

from .verdicts import VERDICTS

PROMETHEUS_IMPORT_ERROR: t.Optional[str] = None
try:
    from prometheus_client import CollectorRegistry, Gauge, generate_latest
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    PROMETHEUS_IMPORT_ERROR = traceback.format_exc()

VERDICT = "vllm_fleetcheck_verdict"
LAST_CHECK = "vllm_fleetcheck_last_check_timestamp_seconds"
SILENT = "vllm_fleetcheck_silent_seconds"
PROBES = "vllm_fleetcheck_probes_sent"
HELD = "vllm_fleetcheck_restart_held"
LAST_RESTART = "vllm_fleetcheck_last_restart_timestamp_seconds"

DONE = ("restarted", "restart_failed")
"""The actions that are restarts; any other one is a reason why none was made."""

SERVER_SPEC: t.Dict[str, t.Any] = {
    "host": {"type": "str", "required": True},
    "server": {"type": "str", "required": True},
    "verdict": {"type": "str", "required": True, "choices": list(VERDICTS)},
    "probes": {"type": "int", "default": 0},
    "action": {"type": "str", "default": ""},
    "engines": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {"engine": {"type": "str", "required": True}, "silent_for": {"type": "float", "default": 0.0}},
    },
}

Measure = t.Mapping[str, t.Any]
Restarts = t.Dict[t.Tuple[str, str], float]
"""By server and result (one of DONE) the Unix time of the check that led to the last restart."""


def unix_time(stamp: str) -> float:
    """C(2026-11-29T22:00:00Z) as seconds since 1970. Raises ValueError."""
    return float(calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ")))


def of_check(measures: t.Sequence[Measure], checked_at: float) -> "CollectorRegistry":
    """What one check of one host says. measures: its servers, shaped as SERVER_SPEC."""
    registry = CollectorRegistry()
    verdicts = Gauge(
        VERDICT, "1 for the verdict of the last check on a server, 0 for all others.", ["server", "verdict"], registry=registry
    )
    silent = Gauge(SILENT, "Seconds without a sign of life that the last check saw.", ["server", "engine"], registry=registry)
    probes = Gauge(PROBES, "One-token requests that the last check sent.", ["server"], registry=registry)
    held = Gauge(HELD, "1 where a restart was held back in the last run, and why.", ["server", "reason"], registry=registry)
    last = Gauge(LAST_CHECK, "When the servers were last checked, Unix time.", registry=registry)
    last.set(checked_at)
    for measure in measures:
        server = _label(measure["server"])
        for verdict in VERDICTS:
            verdicts.labels(server, verdict).set(verdict == measure["verdict"])
        for engine in measure["engines"]:
            silent.labels(server, _label(engine["engine"])).set(engine["silent_for"])
        probes.labels(server).set(measure["probes"])
        if measure["action"] and measure["action"] not in DONE:
            held.labels(server, _label(measure["action"])).set(1)
    return registry


def of_restarts(restarts: Restarts, registry: "CollectorRegistry", by_server: bool = True) -> "CollectorRegistry":
    """Add the last restarts. by_server false: the server is told by other means, and restarts are of one alone."""
    text = "When a server was last restarted by a run, and how that went: time of the check that led to it, Unix time."
    labels = ["server", "result"] if by_server else ["result"]
    gauge = Gauge(LAST_RESTART, text, labels, registry=registry)
    for (server, result), when in restarts.items():
        gauge.labels(*([_label(server)] if by_server else []), result).set(when)
    return registry


def restarts_of(measures: t.Sequence[Measure], checked_at: float) -> Restarts:
    """The restarts that a run has made."""
    return {(_label(measure["server"]), measure["action"]): checked_at for measure in measures if measure["action"] in DONE}


def earlier_restarts(text: str, measures: t.Sequence[Measure]) -> Restarts:
    """What an earlier text of metrics says of the last restarts, of servers that still exist and were not restarted now."""
    kept = {_label(measure["server"]) for measure in measures if measure["action"] not in DONE}
    found: Restarts = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples if family.name == LAST_RESTART else ():
                if sample.labels.get("server") in kept and sample.labels.get("result") in DONE:
                    found[sample.labels["server"], sample.labels["result"]] = sample.value
    except (ValueError, LookupError, AttributeError, TypeError):  # the parser knows no error of its own
        return {}
    return found


def text_of(registry: "CollectorRegistry") -> bytes:
    """The metrics in Prometheus' text format."""
    return generate_latest(registry)


def _label(value: t.Any) -> str:
    """C(value) as a label: half characters, which JSON can carry, would break the whole text."""
    return str(value).encode("utf-8", "replace").decode("utf-8")
