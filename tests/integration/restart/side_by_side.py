"""Tests that are played at the same time, each on a stage of its own.

pytest knows nothing of it: when it comes to the first of them all are started, and each is then waited for.
"""

from __future__ import annotations

import queue
import typing as t
from concurrent.futures import Future, ThreadPoolExecutor

import pytest


class Stage(t.Protocol):
    """What a test is played on."""

    spoilt: bool
    """Whether the test has left it in a state that no other test can use."""

    def clear(self) -> None:
        """Make it ready for the next test."""


class Players:
    """Threads that play the tests, so many at the same time."""

    def __init__(self, stages: t.Sequence[Stage], at_once: int) -> None:
        self._stages: queue.Queue[Stage] = queue.Queue()
        for stage in stages:
            self._stages.put(stage)
        self._pool = ThreadPoolExecutor(at_once)
        self._outcomes: dict[str, Future[None]] = {}

    def __enter__(self) -> Players:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def outcome_of(self, test: pytest.Function) -> None:
        """Wait for the end of a test. Raises what it raised."""
        if test.nodeid not in self._outcomes:
            for other in test.session.items:
                if isinstance(other, pytest.Function) and "stage" in other.fixturenames and other.path.parent == test.path.parent:
                    self._outcomes[other.nodeid] = self._pool.submit(self._play, other)
        self._outcomes[test.nodeid].result()

    def _play(self, test: pytest.Function) -> None:
        stage = self._stages.get(timeout=300)
        try:
            parameters = test.callspec.params if hasattr(test, "callspec") else {}
            test.obj(stage=stage, **parameters)
        finally:
            if not stage.spoilt:
                stage.clear()
                self._stages.put(stage)
