"""Who runs, who waits, and which tokens the next step computes.  Plain bookkeeping: no thread, no numbers shown."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

from .releases import Release
from .requests import Request


@dataclass(frozen=True)
class EngineSettings:
    """What an engine is like.  Times in seconds."""

    release: Release
    step_seconds: float = 0.02
    max_num_seqs: int = 12
    max_num_batched_tokens: int = 2048
    block_size: int = 16
    blocks: int = 8192
    max_model_len: int = 131072
    first_step_seconds: float = 0.0  # one-off work inside the very first step, such as compiling
    pooling: bool = False


class Scheduler:
    """A first-in, first-out queue, a batch of `max_num_seqs` slots, and the blocks of KV cache they hold."""

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings
        self.waiting: deque = deque()
        self.running: list = []
        self.queried_tokens = 0  # looked up in the prefix cache
        self.preemptions = 0

    def enqueue(self, arrivals: list) -> None:
        """New requests, at the end of the queue."""
        self.waiting.extend(arrivals)

    def drop_gone(self) -> None:
        """Forget requests that have ended or were aborted."""
        self.running = [request for request in self.running if not request.gone]
        if any(request.gone for request in self.waiting):
            self.waiting = deque(request for request in self.waiting if not request.gone)

    def admit(self) -> None:
        """Fill free slots from the queue."""
        now = time.monotonic()
        while self.waiting and len(self.running) < self.settings.max_num_seqs:
            request = self.waiting.popleft()
            request.admitted_at = now
            self.running.append(request)
            self.queried_tokens += request.prompt_tokens

    def plan_step(self) -> tuple[list, float]:
        """The step that begins now: (request, tokens) for each that takes part, and how many seconds it takes."""
        budget, seconds, plan = self.settings.max_num_batched_tokens, self.settings.step_seconds, []
        for request in self.running:
            tokens = self._tokens_for(request, budget)
            if not tokens:
                continue
            plan.append((request, tokens))
            budget -= tokens
            if not request.prefilled:
                seconds = max(seconds, request.chunk_seconds)
        return plan, seconds

    @staticmethod
    def _tokens_for(request: Request, budget: int) -> int:
        if request.prefilled:
            return 1
        missing = request.prompt_tokens - request.computed
        return min(request.chunk_tokens, missing) if request.chunk_tokens else max(0, min(budget, missing))

    def kv_usage(self) -> float:
        """The share of all blocks that is held, 0 to 1."""
        return min(1.0, self._blocks_held() / self.settings.blocks)

    def make_room(self) -> None:
        """Preempt until what runs fits into the KV cache."""
        while len(self.running) > 1 and self._blocks_held() > self.settings.blocks:
            self.preempt(1)

    def preempt(self, count: int) -> None:
        """Put the youngest requests back in front of the queue; they compute everything again."""
        for _ in range(count):
            request = self.running.pop()
            request.computed = 0
            request.preemptions += 1
            self.waiting.appendleft(request)
            self.preemptions += 1

    def _blocks_held(self) -> int:
        return sum(self._blocks_of(request) for request in self.running if not request.gone)

    def _blocks_of(self, request: Request) -> int:
        # V0 takes the blocks of the whole prompt when it admits a request, V1 those of each chunk.
        prompt = request.prompt_tokens if self.settings.release.is_v0 else request.computed
        return -(-(prompt + request.generated) // self.settings.block_size)
