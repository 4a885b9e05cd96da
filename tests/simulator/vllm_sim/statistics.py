"""The numbers one engine has reported so far: what the metrics page shows of it."""

from __future__ import annotations

from bisect import bisect_left

from .catalogue import series_of
from .releases import Release


class Histogram:
    """Counts by bucket, as Prometheus keeps them."""

    def __init__(self, buckets: tuple) -> None:
        self.buckets = buckets
        self.hits = [0] * (len(buckets) + 1)
        self.sum = 0.0
        self.count = 0

    def observe(self, value: float) -> None:
        """Add one observation."""
        self.hits[bisect_left(self.buckets, value)] += 1
        self.sum += value
        self.count += 1


class Statistics:
    """Counters, gauges and histograms of one engine.

    The engine writes them once a step, in one go, and never between: a reader sees the state after the last step.
    """

    def __init__(self, release: Release) -> None:
        self.numbers: dict[tuple[str, str], float] = {}
        self.histograms: dict[str, Histogram] = {}
        self.published = False  # has a step ever been reported?
        self.last_step_at = 0.0  # seconds since the epoch
        for series in series_of(release):
            if series.kind == "histogram":
                self.histograms[series.name] = Histogram(series.buckets)
            else:
                self.numbers.update({(series.name, value): 0 for value in series.values})
        self.set("engine_sleep_state", 1, "awake")

    def add(self, name: str, amount: float, value: str = "") -> None:
        """Raise a counter; one that the release does not have is passed over."""
        if (name, value) in self.numbers:
            self.numbers[name, value] += amount

    def set(self, name: str, amount: float, value: str = "") -> None:
        """Set a gauge; one that the release does not have is passed over."""
        if (name, value) in self.numbers:
            self.numbers[name, value] = amount

    def get(self, name: str, value: str = "") -> float:
        """Read a counter or gauge."""
        return self.numbers[name, value]

    def observe(self, name: str, amount: float) -> None:
        """Add an observation; a histogram that the release does not have is passed over."""
        if name in self.histograms:
            self.histograms[name].observe(amount)

    def set_sleep(self, level: int) -> None:
        """Level 0 is awake, 1 has its weights offloaded, 2 has discarded everything."""
        for number, state in enumerate(("awake", "weights_offloaded", "discard_all")):
            self.set("engine_sleep_state", int(number == level), state)
