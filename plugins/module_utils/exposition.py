# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the text of /metrics to one immutable sample per engine and the identity of the process.

The names of the series are those of vLLM 0.8.5 (V0) to 0.32.0, read off running servers.
"""

from __future__ import annotations

import dataclasses
import re
import traceback
import types
import typing as t

from . import importing

PROMETHEUS_IMPORT_ERROR: t.Optional[str] = None
try:
    # A page is all that is read here. The whole package brings an HTTP server along, and each host pays for that.
    text_string_to_metric_families = importing.alone("prometheus_client", "parser").text_string_to_metric_families
except ImportError:
    PROMETHEUS_IMPORT_ERROR = traceback.format_exc()

# Counters that only a working engine can raise.
_COUNTER = (
    r"iteration_tokens_total_count|generation_tokens_total|prompt_tokens_total|num_preemptions_total"
    r"|request_success_total|spec_decode_\w{1,60}_total|estimated_\w{1,60}_per_gpu_total"
)
_KV_USAGE = r"kv_cache_usage_perc|gpu_cache_usage_perc"
_GAUGE = r"num_requests_running|num_requests_waiting|engine_sleep_state|" + _KV_USAGE

# A real page has 600 to 10,000 lines of which some 20 count: the parser gets only those.
_KEPT_LINE = re.compile(
    (r"^(?:vllm:(?:%s|%s)|process_start_time_seconds)[ {].*$" % (_COUNTER, _GAUGE)).encode(), re.MULTILINE
)
_VLLM_LINE = re.compile(rb"^vllm:", re.MULTILINE)
_IS_COUNTER = re.compile(_COUNTER).fullmatch
_IS_KV_USAGE = re.compile(_KV_USAGE).fullmatch

MOST_LINES = 50_000
"""So many lines go to the parser at most; a server with 256 engines has some 6,000 that count."""

LONGEST_LINE = 8192
"""Bytes of one line at most: the parser's time grows with the square of it. A real line has some 200."""

_ONLY_ENGINE = "0"  # releases without the label `engine` have one engine
# The label goes into messages and into the header of a probe: only what can do no harm there.
_IS_ENGINE_LABEL = re.compile(r"[A-Za-z0-9_.:-]{1,40}").fullmatch
_TOO_MUCH = 1e30  # a GPU's floating point operations of ten years are 1e25; sums beyond this may get infinite
_MODEL_NAMES = 20
_ENGINES = 512  # each may be sent a probe, over a connection of its own


class Unparseable(ValueError):
    """The body is not a page of metrics in Prometheus' text format, or it was cut off."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """What one read says about one engine. None: the series is absent.

    counters: totals since the process started, by the series' name without `vllm:`.
    running, waiting: requests. kv_cache_usage: 0 to 1. asleep: whether the engine was put to sleep.
    """

    counters: t.Mapping[str, float]
    running: t.Optional[float] = None
    waiting: t.Optional[float] = None
    kv_cache_usage: t.Optional[float] = None
    asleep: t.Optional[bool] = None

    @property
    def in_flight(self) -> float:
        """Running and waiting requests; an absent gauge counts as 0 (some set-ups export none before the first)."""
        return (self.running or 0) + (self.waiting or 0)


@dataclasses.dataclass(frozen=True)
class Page:
    """What one read of /metrics says.

    is_vllm: whether there is any `vllm:` series at all. start_time: of the process, Unix seconds, None where not
    exported. engines: the samples by engine label. models: served model names as the labels have them.
    """

    is_vllm: bool
    start_time: t.Optional[float]
    engines: t.Mapping[str, Sample]
    models: t.Tuple[str, ...] = ()


def parse(body: bytes) -> Page:
    """Parse a body of /metrics. Raises Unparseable."""
    if body and not body.endswith(b"\n"):
        # A number may have lost its last digits, and then it would seem to have moved.
        raise Unparseable("the last line is cut off")
    is_vllm = _VLLM_LINE.search(body) is not None
    building: t.Dict[str, _Building] = {}
    start_time: t.Optional[float] = None
    models: t.Dict[str, None] = {}
    for name, labels, value in _samples(body):
        if not abs(value) < _TOO_MUCH:
            continue  # so is NaN, which differs from itself and would pass for a sign of life
        if name == "process_start_time_seconds":
            start_time = value
            continue
        label = labels.get("engine", _ONLY_ENGINE)
        if not _IS_ENGINE_LABEL(label):
            raise Unparseable("a strange label `engine`")
        building.setdefault(label, _Building()).add(name[len("vllm:") :], labels, value)
        if len(building) > _ENGINES:
            raise Unparseable("more engines than any server has")
        if "model_name" in labels:
            models.setdefault(labels["model_name"])
    if is_vllm and not building:
        building[_ONLY_ENGINE] = _Building()
    engines = {label: building[label].sample() for label in sorted(building)}
    return Page(is_vllm, start_time, types.MappingProxyType(engines), tuple(models)[:_MODEL_NAMES])


def _samples(body: bytes) -> t.Iterator[t.Tuple[str, t.Mapping[str, str], float]]:
    lines = _KEPT_LINE.findall(body)
    if len(lines) > MOST_LINES:
        raise Unparseable("more series than any server has")
    if any(len(line) > LONGEST_LINE for line in lines):
        raise Unparseable("a longer line than any server has")
    kept = b"".join(line.rstrip(b"\r") + b"\n" for line in lines)
    try:
        families = list(text_string_to_metric_families(kept.decode("utf-8")))
    except (ValueError, LookupError, AttributeError, TypeError) as error:  # the parser knows no error of its own
        raise Unparseable("not in Prometheus' text format") from error
    for family in families:
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


class _Building:
    """The series of one engine while they are read, each summed over its other labels."""

    def __init__(self) -> None:
        self.counters: t.Dict[str, float] = {}
        self.gauges: t.Dict[str, float] = {}
        self.asleep: t.Optional[bool] = None

    def add(self, name: str, labels: t.Mapping[str, str], value: float) -> None:
        if name == "engine_sleep_state":
            if labels.get("sleep_state") == "awake":
                self.asleep = value == 0
        elif name == "request_success_total" and labels.get("finished_reason") == "abort":
            pass  # clients that give up raise it without any work of the engine
        else:
            series = self.counters if _IS_COUNTER(name) else self.gauges
            key = "kv_cache_usage" if _IS_KV_USAGE(name) else name
            # 0.10.2 exports the KV usage under both of its names.
            series[key] = value if key == "kv_cache_usage" else series.get(key, 0.0) + value

    def sample(self) -> Sample:
        return Sample(
            types.MappingProxyType(self.counters),
            self.gauges.get("num_requests_running"),
            self.gauges.get("num_requests_waiting"),
            self.gauges.get("kv_cache_usage"),
            self.asleep,
        )
