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

    def __init__(self, stages: t.Sequence[Stage], at_once: int, at_the_end: t.Callable[[], None]) -> None:
        """at_once: how many are played at the same time; at_the_end is called after the last, for what they ran on."""
        self._stages: queue.Queue[Stage] = queue.Queue()
        for stage in stages:
            self._stages.put(stage)
        self._pool = ThreadPoolExecutor(at_once)
        self._outcomes: dict[str, Future[None]] = {}
        self._left: set[str] = set()
        self._at_the_end = at_the_end

    def __enter__(self) -> Players:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def outcome_of(self, test: pytest.Function) -> None:
        """Wait for the end of a test. Raises what it raised."""
        if not self._outcomes:
            self._start(test)
        try:
            self._outcomes[test.nodeid].result()
        finally:
            self._left.discard(test.nodeid)
            if not self._left:
                self._at_the_end()

    def _start(self, first: pytest.Function) -> None:
        for test in first.session.items:
            if isinstance(test, pytest.Function) and "stage" in test.fixturenames and test.path.parent == first.path.parent:
                self._outcomes[test.nodeid] = self._pool.submit(self._play, test)
        self._left = set(self._outcomes)

    def _play(self, test: pytest.Function) -> None:
        stage = self._stages.get(timeout=300)
        try:
            parameters = test.callspec.params if hasattr(test, "callspec") else {}
            test.obj(stage=stage, **parameters)
        finally:
            if not stage.spoilt:
                stage.clear()
                self._stages.put(stage)
