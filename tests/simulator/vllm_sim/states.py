"""States a server can be in from the start, so that a demo needs no load generator and no control channel."""

from __future__ import annotations

import time
from typing import Callable

from .requests import Request
from .server import Server

BUSY_LOAD = 3
QUEUE_LOAD = 8  # requests beyond the slots
STATE_SECONDS = 30  # to get into a state; more means that it cannot be reached


def enter(server: Server, state: str, load: int) -> None:
    """Bring a server into a state; `load` is the number of requests in flight (0: what suits the state)."""
    STATES[state](server, load)


def _until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + STATE_SECONDS
    while not reached():
        if time.monotonic() > deadline:
            raise RuntimeError(f"the state was not reached within {STATE_SECONDS} s")
        time.sleep(0.005)


def _all(server: Server, key: str, at_least: int) -> Callable[[], bool]:
    return lambda: all(engine.truth()[key] >= at_least for engine in server.engines)


def _take_steps(server: Server, count: int) -> None:
    """Let every engine finish some steps, so that its gauges tell of what it has now."""
    target = {engine: engine.steps + count for engine in server.engines}
    _until(lambda: all(engine.steps >= steps for engine, steps in target.items()))


def _fresh(server: Server, load: int) -> None:
    """Just started; nothing was ever asked of it."""
    server.load.set(load)


def _idle(server: Server, load: int) -> None:
    """Has served requests and has nothing to do."""
    pooling = server.settings.engine.pooling
    for engine in server.engines:
        for _ in range(2):
            engine.submit(Request(max_tokens=4, pooling=pooling))
    _until(lambda: all(not engine.open_requests() for engine in server.engines))


def _busy(server: Server, load: int) -> None:
    """Works on a few requests, on each engine."""
    _idle(server, load)
    for engine in server.engines:
        server.load.set(load or BUSY_LOAD, engine.number)
    _until(_all(server, "running", 1))
    _take_steps(server, 5)


def _queued(server: Server, load: int) -> None:
    """Works on as many requests as it can, and more are waiting."""
    _idle(server, load)
    for engine in server.engines:
        server.load.set(load or engine.settings.max_num_seqs + QUEUE_LOAD, engine.number)
    _until(_all(server, "waiting", 1))
    _take_steps(server, 2)


def _frozen_idle(server: Server, load: int) -> None:
    """Hangs, with nothing in flight."""
    _idle(server, load)
    server.freeze()


def _frozen_busy(server: Server, load: int) -> None:
    """Hangs, with requests running."""
    _busy(server, load)
    server.freeze()


def _frozen_queued(server: Server, load: int) -> None:
    """Hangs, with requests running and more waiting."""
    _queued(server, load)
    server.freeze()


def _one_frozen(server: Server, load: int) -> None:
    """All engines have work; the last one hangs."""
    _busy(server, load)
    server.freeze(len(server.engines) - 1)


def _not_admitted(server: Server, load: int) -> None:
    """Requests wait and none is ever taken out of the queue."""
    _idle(server, load)
    for engine in server.engines:
        engine.admit(False)
        server.load.set(load or BUSY_LOAD, engine.number)
    _until(_all(server, "waiting", load or BUSY_LOAD))


def _sleeping(server: Server, load: int) -> None:
    """Put to sleep at level 1."""
    _idle(server, load)
    for engine in server.engines:
        engine.sleep(1)


def _paused(server: Server, load: int) -> None:
    """Paused with nothing in flight."""
    _idle(server, load)
    for engine in server.engines:
        engine.pause("abort")


def _paused_keep(server: Server, load: int) -> None:
    """Paused with mode=keep: requests are held as they were."""
    _busy(server, load)
    for engine in server.engines:
        engine.pause("keep")


def _http_frozen(server: Server, load: int) -> None:
    """Accepts connections and answers nothing but the control channel."""
    _idle(server, load)
    server.gate.set(shut=True)


def _stale(server: Server, load: int) -> None:
    """Says that requests run although none does; works."""
    _idle(server, load)
    for engine in server.engines:
        engine.make_stale(load or BUSY_LOAD)


def _prefill(server: Server, load: int) -> None:
    """Computes one very long prompt, half a second a chunk, and nothing else; for an hour by default."""
    _idle(server, load)
    block, blocks = server.settings.engine.block_size, server.settings.engine.blocks
    server.submit(Request(prompt_tokens=block * (blocks - 1), max_tokens=1, chunk_tokens=block, chunk_seconds=0.5), 0)
    _until(lambda: bool(server.engines[0].truth()["running"]))
    _take_steps(server, 1)


def _long_step(server: Server, load: int) -> None:
    """Is inside one single step of ten minutes that began while it was idle."""
    _idle(server, load)
    server.submit(Request(prompt_tokens=13000, max_tokens=1, chunk_tokens=13000, chunk_seconds=600))


def _dead_engine(server: Server, load: int) -> None:
    """The engine has died, /health says so, and the process goes on."""
    _busy(server, load)
    server.kill_engine()


STATES: dict[str, Callable[[Server, int], None]] = {
    "fresh": _fresh, "idle": _idle, "busy": _busy, "queued": _queued, "frozen-idle": _frozen_idle,
    "frozen-busy": _frozen_busy, "frozen-queued": _frozen_queued, "one-frozen": _one_frozen,
    "not-admitted": _not_admitted, "sleeping": _sleeping, "paused": _paused, "paused-keep": _paused_keep,
    "http-frozen": _http_frozen, "stale": _stale, "prefill": _prefill, "long-step": _long_step,
    "dead-engine": _dead_engine,
}
