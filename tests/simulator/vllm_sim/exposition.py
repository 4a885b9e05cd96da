"""The text of GET /metrics: the series of a release with the numbers of the engines.

Everything but the numbers is put together once, so that a page of 600 lines costs well under a millisecond.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass

from .catalogue import HTTP_COARSE, HTTP_FINE, Series, cache_config, series_of
from .releases import Release
from .statistics import Histogram, Statistics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def number(value: float) -> str:
    """A number as prometheus_client writes it: 0.0, 12.0, 1.7e+09."""
    text = repr(float(value))
    dot = text.find(".")
    if value > 0 and dot > 6 and "e" not in text:
        mantissa = f"{text[0]}.{text[1:dot]}{text[dot + 1:]}".rstrip("0.")
        return f"{mantissa}e+{dot - 1:02d}"
    return text


def labels(pairs: dict) -> str:
    """A set of labels in braces, sorted by name, with their values escaped."""
    if not pairs:
        return ""
    return "{" + ",".join(f'{name}="{escape(str(pairs[name]))}"' for name in sorted(pairs)) + "}"


def escape(value: str) -> str:
    r"""A label's value with backslash, newline and quote escaped."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def family(name: str, kind: str, text: str) -> list[str]:
    """The two lines above the samples of a family."""
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def histogram_lines(name: str, pairs: dict, histogram: Histogram) -> list[str]:
    """All samples of one histogram."""
    total, lines = 0, []
    for bound, hits in zip((*histogram.buckets, None), histogram.hits):
        total += hits
        le = "+Inf" if bound is None else number(bound)
        lines.append(f"{name}_bucket{labels({**pairs, 'le': le})} {number(total)}")
    lines.append(f"{name}_count{labels(pairs)} {number(histogram.count)}")
    lines.append(f"{name}_sum{labels(pairs)} {number(histogram.sum)}")
    return lines


@dataclass(frozen=True)
class PageSettings:
    """What the page looks like, apart from the numbers."""

    release: Release
    model_name: str = "simulated"
    several_processes: bool = False  # no start time, no *_created, no gauges before the first request
    log_stats: bool = True
    extra_lines: int = 0
    block_size: int = 16
    blocks: int = 8192


class Page:
    """The metrics page of one server process; a new process has a new Page."""

    def __init__(self, settings: PageSettings, engines: list[Statistics], http: HttpStatistics) -> None:
        self.settings = settings
        self.engines = engines
        self.http = http
        self.started_at = time.time()
        # str: as it is; tuple (prefix, function): one sample, left out while the function returns None
        self._plan: list = []
        self._fresh_plan: list = []  # the same before the first request, where that differs
        self._padding = padding_lines(settings.extra_lines)
        if settings.log_stats:
            self._plan = self._lay_out(before_first_request=False)
            self._fresh_plan = self._lay_out(before_first_request=True)

    def text(self) -> str:
        """The page as it stands now."""
        lines: list[str] = []
        if self._has_process_series():
            lines += process_lines(self.started_at)
        published = any(engine.published for engine in self.engines)
        for entry in self._plan if published else self._fresh_plan:
            if isinstance(entry, str):
                lines.append(entry)
                continue
            value = entry[1]()
            if value is not None:
                lines.append(entry[0] + number(value))
        if not self.settings.release.is_v0:
            lines += self.http.lines(with_created=self._has_process_series())
        lines += self._padding
        return "\n".join(lines) + "\n"

    def _has_process_series(self) -> bool:
        return not (self.settings.release.is_v0 or self.settings.several_processes)

    def _lay_out(self, before_first_request: bool) -> list:
        plan: list = []
        release = self.settings.release
        if release.is_v0 and not before_first_request:
            plan += self._lora_requests()
        for series in series_of(release):
            if release.is_v0 and before_first_request:
                continue
            absent = before_first_request and self.settings.several_processes and series.kind == "gauge"
            plan += self._series(series, absent and series.name != "engine_sleep_state")
        return plan + self._cache_config()

    def _series(self, series: Series, absent: bool) -> list:
        name = f"vllm:{series.name}"
        plan: list = family(name, series.kind, series.text)
        pairs_of = self._label_sets(series)
        if not absent:
            for engine, pairs, value in pairs_of:
                plan += self._samples(series, name, engine, pairs, value)
        if series.kind != "gauge" and self._has_process_series():
            plan += self._created(series, [pairs for _, pairs, _ in pairs_of])
        return plan

    def _label_sets(self, series: Series) -> list:
        """(engine, labels, value of the series' own label) for every sample of a family."""
        sets = []
        for value in series.values:
            for index, engine in enumerate(self.engines if series.per_engine else self.engines[:1]):
                pairs = {"model_name": self.settings.model_name}
                if series.per_engine and not self.settings.release.is_v0:
                    pairs["engine"] = str(index)
                if series.label:
                    pairs[series.label] = value
                sets.append((engine, pairs, value))
        return sets

    def _samples(self, series: Series, name: str, engine: Statistics, pairs: dict, value: str) -> list:
        if series.kind == "histogram":
            return self._histogram(name, pairs, engine.histograms[series.name])
        prefix = f"{name}{labels(pairs)} "
        if self.settings.release.is_v0 and series.label:  # V0 shows a finished_reason once it has occurred
            return [(prefix, lambda: engine.numbers[series.name, value] or None)]
        return [(prefix, lambda: engine.numbers[series.name, value])]

    def _histogram(self, name: str, pairs: dict, histogram: Histogram) -> list:
        def up_to(place: int) -> Callable[[], int]:
            return lambda: sum(histogram.hits[:place])

        bounds = [number(bound) for bound in histogram.buckets] + ["+Inf"]
        plan: list = [(f"{name}_bucket{labels({**pairs, 'le': le})} ", up_to(place + 1))
                      for place, le in enumerate(bounds)]
        plan.append((f"{name}_count{labels(pairs)} ", lambda: histogram.count))
        plan.append((f"{name}_sum{labels(pairs)} ", lambda: histogram.sum))
        return plan

    def _created(self, series: Series, label_sets: list) -> list:
        stem = series.name[: -len("_total")] if series.kind == "counter" else series.name
        name = f"vllm:{stem}_created"
        return family(name, "gauge", series.text) + [
            f"{name}{labels(pairs)} {number(self.started_at)}" for pairs in label_sets]

    def _cache_config(self) -> list:
        settings = self.settings
        plan = family("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
        for index in range(len(self.engines)):
            pairs = cache_config(settings.release, settings.block_size, settings.blocks)
            if not settings.release.is_v0:
                pairs["engine"] = str(index)
            plan.append(f"vllm:cache_config_info{labels(pairs)} 1.0")
        return plan

    def _lora_requests(self) -> list:
        """V0's time stamp of the last step, there without any LoRA."""
        pairs = {"max_lora": "0", "running_lora_adapters": "", "waiting_lora_adapters": ""}
        engine = self.engines[0]
        return [*family("vllm:lora_requests_info", "gauge", "Running stats on lora requests."),
                (f"vllm:lora_requests_info{labels(pairs)} ", lambda: engine.last_step_at)]


class HttpStatistics:
    """The http_* series, which count what the front end answered: no sign of life of an engine."""

    def __init__(self) -> None:
        self.started_at = time.time()
        self.requests: dict[tuple[str, str, str], list] = {}  # (handler, method, 2xx) -> [count, created]
        self.sizes: dict[str, list] = {}  # handler -> [count, bytes in, bytes out, created]
        self.durations: dict[tuple[str, str], Histogram] = {}
        self.all_durations = Histogram(HTTP_FINE)

    def observe(self, handler: str, method: str, status: int, seconds: float, sizes: tuple[int, int]) -> None:
        """Count one answer; `sizes` are the bytes of its request and of its answer."""
        now = time.time()
        self.requests.setdefault((handler, method, f"{status // 100}xx"), [0, now])[0] += 1
        size = self.sizes.setdefault(handler, [0, 0, 0, now])
        size[0] += 1
        size[1] += sizes[0]
        size[2] += sizes[1]
        self.all_durations.observe(seconds)
        self.durations.setdefault((handler, method), Histogram(HTTP_COARSE)).observe(seconds)

    def lines(self, with_created: bool) -> list[str]:
        """All http_* lines of the page."""
        lines = self._request_lines(with_created)
        lines += self._size_lines("request", 1, with_created)
        lines += self._size_lines("response", 2, with_created)
        return lines + self._duration_lines(with_created)

    def _request_lines(self, with_created: bool) -> list[str]:
        text = "Total number of requests by method, status and handler."
        sets = [({"handler": key[0], "method": key[1], "status": key[2]}, values)
                for key, values in list(self.requests.items())]
        lines = family("http_requests_total", "counter", text)
        lines += [f"http_requests_total{labels(pairs)} {number(values[0])}" for pairs, values in sets]
        if with_created:
            lines += family("http_requests_created", "gauge", text)
            lines += [f"http_requests_created{labels(pairs)} {number(values[1])}" for pairs, values in sets]
        return lines

    def _size_lines(self, what: str, place: int, with_created: bool) -> list[str]:
        name, text = f"http_{what}_size_bytes", f"Content length of {what}s by handler."
        lines = family(name, "summary", text)
        sizes = list(self.sizes.items())
        for handler, values in sizes:
            lines.append(f"{name}_count{labels({'handler': handler})} {number(values[0])}")
            lines.append(f"{name}_sum{labels({'handler': handler})} {number(values[place])}")
        if with_created:
            lines += family(f"{name}_created", "gauge", text)
            lines += [f"{name}_created{labels({'handler': handler})} {number(values[3])}"
                      for handler, values in sizes]
        return lines

    def _duration_lines(self, with_created: bool) -> list[str]:
        fine, coarse = "http_request_duration_highr_seconds", "http_request_duration_seconds"
        lines = family(fine, "histogram", "Latency with many buckets but no API specific labels.")
        lines += histogram_lines(fine, {}, self.all_durations)
        if with_created:
            lines += family(f"{fine}_created", "gauge", "Latency with many buckets but no API specific labels.")
            lines.append(f"{fine}_created {number(self.started_at)}")
        lines += family(coarse, "histogram", "Latency with only few buckets by handler.")
        durations = list(self.durations.items())
        for (handler, method), histogram in durations:
            lines += histogram_lines(coarse, {"handler": handler, "method": method}, histogram)
        if with_created:
            lines += family(f"{coarse}_created", "gauge", "Latency with only few buckets by handler.")
            lines += [f"{coarse}_created{labels({'handler': handler, 'method': method})} {number(self.started_at)}"
                      for (handler, method), _ in durations]
        return lines


def process_lines(started_at: float) -> list[str]:
    """The python_* and process_* series, with true values where they are cheap to have."""
    lines: list[str] = []
    for name, text in (("objects_collected", "Objects collected during gc"),
                       ("objects_uncollectable", "Uncollectable objects found during GC"),
                       ("collections", "Number of times this generation was collected")):
        lines += family(f"python_gc_{name}_total", "counter", text)
        lines += [f'python_gc_{name}_total{{generation="{generation}"}} 0.0' for generation in range(3)]
    major, minor, patch = platform.python_version_tuple()
    info = {"implementation": "CPython", "major": major, "minor": minor, "patchlevel": patch,
            "version": platform.python_version()}
    lines += [*family("python_info", "gauge", "Python platform information"), f"python_info{labels(info)} 1.0"]
    for name, kind, text, value in (
        ("virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", 2.177040384e9),
        ("resident_memory_bytes", "gauge", "Resident memory size in bytes.", 6.45791744e8),
        ("start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.",
         round(started_at, 2)),
        ("cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.",
         round(sum(os.times()[:2]), 2)),
        ("open_fds", "gauge", "Number of open file descriptors.", 35),
        ("max_fds", "gauge", "Maximum number of open file descriptors.", 20000),
    ):
        lines += [*family(f"process_{name}", kind, text), f"process_{name} {number(value)}"]
    return lines


def padding_lines(count: int) -> list[str]:
    """Lines that make the page long and say nothing: histograms of handlers nobody asks about."""
    name = "http_request_duration_by_user_seconds"
    lines = family(name, "histogram", "Latency by user.")
    user = 0
    while len(lines) < count:
        lines += histogram_lines(name, {"user": f"user-{user:05d}"}, Histogram(HTTP_FINE))
        user += 1
    return lines[:count]
