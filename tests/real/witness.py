"""A second pair of eyes on /metrics, written without a line of the module's code.

It sees to it that a state is really there before the module is asked, keeps the
readings as evidence, and measures the longest silence of a working engine: the
number above which patience has to lie.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable

from . import lab

SAMPLE = re.compile(r"^(vllm:\w+)(?:\{(.*)\})? (\S+)$")
ENGINE = re.compile(r'engine="(\d+)"')

RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"

# What an engine moves by working, and arrivals alone do not.
WORK = (
    "vllm:iteration_tokens_total_count",
    "vllm:generation_tokens_total",
    "vllm:prompt_tokens_total",
    "vllm:num_preemptions_total",
    "vllm:kv_cache_usage_perc",
    RUNNING,
)

Reading = dict[tuple[str, str], float]


def parse(text: str) -> Reading:
    """The `vllm:` values of a page, summed by series name and engine."""
    reading: Reading = {}
    for line in text.splitlines():
        match = SAMPLE.match(line)
        if match and not match[1].endswith(("_bucket", "_created")):
            engine = ENGINE.search(match[2] or "")
            key = (match[1], engine[1] if engine else "0")
            reading[key] = reading.get(key, 0.0) + float(match[3])
    return reading


def by_engine(reading: Reading, series: str) -> dict[str, float]:
    """One series, engine by engine."""
    return {engine: value for (name, engine), value in reading.items() if name == series}


def total(reading: Reading, series: str) -> float:
    """One series over all engines; absent is 0."""
    return sum(by_engine(reading, series).values())


def worked(before: Reading, after: Reading) -> set[str]:
    """The engines that did something between two readings."""
    return {engine for (name, engine), value in after.items() if name in WORK and value != before.get((name, engine), 0.0)}


def read(url: str, seconds: float = 20.0) -> str:
    """The page of a server as it is."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{url}/metrics", timeout=seconds) as answer:
        return str(answer.read().decode())


def until(server: lab.Place, state: str, holds: Callable[[Reading], bool], seconds: float = 60.0) -> Reading:
    """Waits until a reading shows the state; raises LabError naming the state where it never does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        reading = parse(read(server.url))
        if holds(reading):
            return reading
        time.sleep(0.25)
    raise lab.LabError(f"the state was not reached within {seconds:.0f} s: {state}")


def until_working(server: lab.Place, seconds: float = 60.0) -> None:
    """Waits until two readings a quarter of a second apart show work."""
    last = parse(read(server.url))

    def moves(reading: Reading) -> bool:
        nonlocal last
        before, last = last, reading
        return bool(worked(before, reading))

    until(server, "an engine works", moves, seconds)


class Watch(threading.Thread):
    """Reads beside the module, from outside it, and keeps the pages with the time of each."""

    def __init__(self, url: str, every: float = 0.25) -> None:
        super().__init__(daemon=True)
        self.pages: list[tuple[float, str]] = []
        self._url = url
        self._every = every
        self._over = threading.Event()

    def run(self) -> None:
        """Reads until told to stop; a read that fails is left out."""
        while not self._over.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                at = time.monotonic()
                self.pages.append((at, read(self._url)))
            self._over.wait(self._every)

    def finish(self) -> None:
        """Stops reading."""
        self._over.set()
        self.join(timeout=30)


def longest_silence(readings: Iterable[tuple[float, Reading]]) -> float:
    """The longest time in seconds in which no engine worked.

    It is as exact as the readings are close: the step behind it may have been
    up to one distance between two readings longer.
    """
    longest, since = 0.0, 0.0
    before: Reading | None = None
    for at, reading in readings:
        if before is None:
            since = at
        else:
            longest = max(longest, at - since)
            since = at if worked(before, reading) else since
        before = reading
    return longest
