"""An engine core: a thread that steps, a queue in front of it, and the brakes that tests pull."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from .requests import Request, report_end, report_first_token, report_next_token
from .scheduler import EngineSettings, Scheduler
from .statistics import Statistics

ENGINE_DIED = "engine_died"
SERVER_STOPPED = "server_stopped"
FAILURES = (ENGINE_DIED, SERVER_STOPPED)


class Engine(threading.Thread):
    """Steps while there is something to do; reports its numbers after each step, and only then.

    Everything that reaches it (requests, aborts) goes through an inbox that is looked at between two steps, so a
    frozen engine notices nothing: not that a request came, not that a client left.
    """

    def __init__(self, number: int, settings: EngineSettings) -> None:
        super().__init__(name=f"engine-{number}", daemon=True)
        self.number = number
        self.settings = settings
        self.stats = Statistics(settings.release)
        self.changed = threading.Condition()
        self.steps = 0
        self.frozen = False
        self.paused = ""  # "", "abort", "wait" or "keep"
        self.sleep_level = 0
        self.admits = True  # False: nothing is taken out of the queue
        self.stale_running: int | None = None  # what num_requests_running says instead of the truth
        self.alive = True
        self._stepping = False
        self._orders: list = []
        self._halt = threading.Event()
        self._inbox: deque = deque()
        self._scheduler = Scheduler(settings)
        self._open: set = set()

    # What others ask of it -----------------------------------------------------------------------------------

    def submit(self, request: Request) -> None:
        """Hand a request over; it is admitted when the engine gets round to it."""
        with self.changed:
            if not self.alive:
                request.end(ENGINE_DIED)
                return
            self._open.add(request)
            self._inbox.append(request)
            self.changed.notify_all()

    def abort(self, request: Request) -> None:
        """Drop a request whose client has gone; the gauges show it after the next step."""
        with self.changed:
            request.gone = True
            self._open.discard(request)
            self._inbox.append(None)
            self.changed.notify_all()

    def freeze(self) -> None:
        """Stand still from now on, in the middle of a step if need be: a hang."""
        self._set(frozen=True)

    def thaw(self) -> None:
        """Go on exactly where freeze() struck."""
        self._set(frozen=False)

    def pause(self, mode: str) -> None:
        """Pause like POST /pause: abort what there is, wait for what runs, or keep everything as it stands."""
        def order() -> None:
            self.paused = mode
            if mode == "abort":
                self._abort_all()

        self._between_steps(order)

    def resume(self) -> None:
        """End a pause."""
        self._set(paused="")

    def sleep(self, level: int) -> None:
        """Sleep at level 1 or 2, or wake at level 0.  The sleep state is shown without a step."""
        def order() -> None:
            self.stats.set_sleep(level)
            self.sleep_level = level

        self._between_steps(order)

    def admit(self, admits: bool) -> None:
        """Open or close the way from the queue into the batch."""
        self._set(admits=admits)

    def make_stale(self, running: int | None) -> None:
        """Let num_requests_running say this number whatever the truth is; None ends it."""
        with self.changed:
            self.stale_running = running
            self._publish_gauges()

    def kill(self, reason: str = ENGINE_DIED) -> None:
        """Die: every request that is open fails, the numbers stay."""
        with self.changed:
            self.alive = False
            for request in list(self._open):
                request.end(reason)
            self._open.clear()
            self.changed.notify_all()
        self._halt.set()

    def truth(self) -> dict:
        """What is really the case, whatever the metrics say."""
        with self.changed:
            return {
                "engine": self.number, "alive": self.alive, "frozen": self.frozen, "paused": self.paused,
                "sleep_level": self.sleep_level, "steps": self.steps, "open": len(self._open),
                "running": len(self._scheduler.running), "waiting": len(self._scheduler.waiting), "unseen": len(self._inbox),
            }

    def open_requests(self) -> int:
        """How many requests it owes an answer."""
        return len(self._open)

    def _between_steps(self, order: Callable[[], None]) -> None:
        """Carry out an order, after the step that goes on if there is one, and return when that is done.

        A frozen engine gets round to it when it thaws; that is not waited for.
        """
        with self.changed:
            self._orders.append(order)
            if not self._stepping:
                self._carry_out_orders()
            self.changed.wait_for(lambda: order not in self._orders or self.frozen or not self.alive)

    def _carry_out_orders(self) -> None:
        while self._orders:
            self._orders.pop(0)()
        self.changed.notify_all()

    def _set(self, **values: Any) -> None:
        with self.changed:
            for name, value in values.items():
                setattr(self, name, value)
            self.changed.notify_all()

    # The thread ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Step until killed."""
        while self._await_work():
            plan, seconds = self._begin_step()
            self._halt.wait(seconds)
            self._end_step(plan)

    def _await_work(self) -> bool:
        with self.changed:
            while self.alive:
                if not self.frozen:
                    news = self._read_inbox()
                    if self._can_step():
                        return True
                    if news and not self.sleep_level:
                        self._publish_gauges()
                self.changed.wait()
        return False

    def _read_inbox(self) -> bool:
        news = bool(self._inbox)
        arrivals = [request for request in self._inbox if request is not None and not request.gone]
        self._inbox.clear()
        self._scheduler.drop_gone()
        self._scheduler.enqueue(arrivals)
        if arrivals and self.paused == "keep" and self.settings.release.arrival_preempts_when_kept:
            self._scheduler.preempt(len(self._scheduler.running))
        return news

    def _can_step(self) -> bool:
        asleep = self.sleep_level and self.settings.release.sleep_stops_answers
        if asleep or self.paused in ("abort", "keep"):
            return False
        return bool(self._scheduler.running or (self._scheduler.waiting and self._may_admit()))

    def _may_admit(self) -> bool:
        return self.admits and not self.paused

    def _begin_step(self) -> tuple[list, float]:
        with self.changed:
            self._stepping = True
            if self._may_admit():
                self._scheduler.admit()
            plan, seconds = self._scheduler.plan_step()
            return plan, seconds if self.steps else seconds + self.settings.first_step_seconds

    def _end_step(self, plan: list) -> None:
        with self.changed:
            while self.frozen and self.alive:
                self.changed.wait()
            if not self.alive:
                return
            self._compute(plan)
            self._scheduler.make_room()
            self._scheduler.drop_gone()
            self.steps += 1
            self._publish_scheduling()
            self._publish_gauges()
            self._stepping = False
            self._carry_out_orders()

    def _compute(self, plan: list) -> None:
        now = time.monotonic()
        output = prompt = 0
        for request, tokens in plan:
            if request.gone:
                continue
            if request.prefilled:
                self._decode(request, now)
                output += 1
                continue
            request.computed += tokens
            if request.prefilled or self.settings.release.is_v0:
                # V0 counts a prompt chunk by chunk, V1 as a whole once its first token is there.
                counted = tokens if self.settings.release.is_v0 else request.prompt_tokens
                self._count_prompt(counted)
                prompt += counted
            if request.prefilled:
                output += self._finish_prefill(request, now)
        self.stats.add("generation_tokens_total", output)
        if output or prompt:
            self.stats.observe("iteration_tokens_total", output + prompt)

    def _count_prompt(self, tokens: int) -> None:
        self.stats.add("prompt_tokens_total", tokens)
        self.stats.add("prompt_tokens_by_source_total", tokens, "local_compute")

    def _finish_prefill(self, request: Request, now: float) -> int:
        """The end of a prompt brings the first token; returns how many came: 0 for an embedding."""
        if not request.first_token_at:
            report_first_token(self.stats, request, now)
        if request.pooling:
            self._finish(request, "stop", now)
            return 0
        request.generated += 1
        self._after_token(request, now)
        return 1

    def _decode(self, request: Request, now: float) -> None:
        request.generated += 1
        report_next_token(self.stats, request, now)
        self._after_token(request, now)

    def _after_token(self, request: Request, now: float) -> None:
        if request.stream:
            request.outbox.put(1)
        if request.generated >= request.max_tokens:
            self._finish(request, request.ends_with, now)
        elif request.prompt_tokens + request.generated >= self.settings.max_model_len:
            self._finish(request, "length", now)

    def _finish(self, request: Request, reason: str, now: float) -> None:
        report_end(self.stats, request, reason, now)
        self._open.discard(request)
        request.end(reason)

    def _abort_all(self) -> None:
        now = time.monotonic()
        for request in list(self._open):
            self._finish(request, "abort", now)
        self._scheduler.drop_gone()
        self._publish_gauges()

    # What it reports -----------------------------------------------------------------------------------------

    def _publish_scheduling(self) -> None:
        scheduler, self.stats.published = self._scheduler, True
        self.stats.add("prefix_cache_queries_total", scheduler.queried_tokens)
        self.stats.add("gpu_prefix_cache_queries_total", scheduler.queried_tokens)
        self.stats.add("num_preemptions_total", scheduler.preemptions)
        scheduler.queried_tokens = scheduler.preemptions = 0
        self.stats.last_step_at = time.time()

    def _publish_gauges(self) -> None:
        running, waiting = len(self._scheduler.running), len(self._scheduler.waiting)
        usage = self._scheduler.kv_usage()
        if self.settings.pooling:  # measured: a pooling server says 0 at any load
            running, waiting, usage = 0, 0, 0.0
        if self.stale_running is not None:
            running = self.stale_running
        self.stats.set("num_requests_running", running)
        self.stats.set("num_requests_waiting", waiting)
        self.stats.set("num_requests_waiting_by_reason", waiting, "capacity")
        self.stats.set("kv_cache_usage_perc", usage)
        self.stats.set("gpu_cache_usage_perc", usage)
