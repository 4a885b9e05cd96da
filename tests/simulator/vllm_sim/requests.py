"""One request on its way through an engine, and what the engine reports about it."""

from __future__ import annotations

import itertools
import queue
import time
from dataclasses import dataclass, field

from .statistics import Statistics

_numbers = itertools.count(1)


@dataclass(eq=False)
class Request:
    """A completion (or, with `pooling`, an embedding) as the engine sees it.

    `outbox` carries what happens to it: the number of new tokens as an int for a request that streams, and at
    the end a reason as a str: stop, length or abort, or one of the failures in FAILURES.
    """

    prompt_tokens: int = 8
    max_tokens: int = 16
    stream: bool = False
    pooling: bool = False
    ends_with: str = "length"
    chunk_tokens: int | None = None  # prompt tokens computed in one step; None: the engine's own limit
    chunk_seconds: float = 0.0  # how long a step takes that computes a part of this prompt
    number: int = field(default_factory=lambda: next(_numbers))
    outbox: queue.SimpleQueue = field(default_factory=queue.SimpleQueue)

    computed: int = 0
    generated: int = 0
    preemptions: int = 0
    gone: bool = False  # aborted or ended: the engine drops it
    arrived_at: float = field(default_factory=time.monotonic)
    admitted_at: float = 0.0
    first_token_at: float = 0.0
    last_token_at: float = 0.0

    @property
    def prefilled(self) -> bool:
        """Whether the whole prompt has been computed."""
        return self.computed >= self.prompt_tokens

    def end(self, reason: str) -> None:
        """Tell whoever waits for it that it is over."""
        self.gone = True
        self.outbox.put(reason)


def report_first_token(stats: Statistics, request: Request, now: float) -> None:
    """Count a prompt, which V1 does only when its first token is there."""
    request.first_token_at = request.last_token_at = now
    stats.observe("time_to_first_token_seconds", now - request.arrived_at)


def report_next_token(stats: Statistics, request: Request, now: float) -> None:
    """Count one more token of a request that decodes."""
    gap = now - request.last_token_at
    request.last_token_at = now
    stats.observe("inter_token_latency_seconds", gap)
    stats.observe("time_per_output_token_seconds", gap)


def report_end(stats: Statistics, request: Request, reason: str, now: float) -> None:
    """Count a request that has come to its end inside the engine."""
    stats.add("request_success_total", 1, reason)
    first_token_at = request.first_token_at or now
    admitted_at = request.admitted_at or now
    decode_seconds = now - first_token_at
    for name, value in (
        ("request_prompt_tokens", request.prompt_tokens),
        ("request_generation_tokens", request.generated),
        ("request_max_num_generation_tokens", request.generated),
        ("request_params_n", 1),
        ("request_params_max_tokens", request.max_tokens),
        ("request_time_per_output_token_seconds", decode_seconds / max(1, request.generated - 1)),
        ("e2e_request_latency_seconds", now - request.arrived_at),
        ("request_queue_time_seconds", admitted_at - request.arrived_at),
        ("request_inference_time_seconds", now - admitted_at),
        ("request_prefill_time_seconds", first_token_at - admitted_at),
        ("request_decode_time_seconds", decode_seconds),
        ("request_num_preemptions", request.preemptions),
        ("request_prefill_kv_computed_tokens", request.prompt_tokens),
    ):
        stats.observe(name, value)
