# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays judges against real servers, all at the same time, in threads.

One loop owns the time and the judges; threads do nothing but one look or one probe each. So a host with
eight silent servers takes one patience, not eight.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import queue
import threading
import time
import typing as t

from . import sharing, vllm_api
from .judging import Judge, Next, ProxyJudge
from .looks import Judgement, Limits, Look, Probe, Step

LOOKS_AT_ONCE = 64
"""So many looks are under way at the same time, however many servers there are."""

FEW = 64
"""Up to so many servers are judged in this process; more of them make another process worth its start."""


@dataclasses.dataclass(frozen=True)
class Target:
    """One server to be checked. kind is backend or proxy."""

    server: vllm_api.Server
    limits: Limits
    kind: str = "backend"


def check(targets: t.Sequence[Target]) -> t.List[Judgement]:
    """Judge all targets at the same time; the judgements come in the order of the targets.

    Many targets are shared out over processes, one for each CPU: reading a thousand pages is work for more than one.
    Raises only for a fault of this program; whatever a server does is a judgement.
    """
    processes = sharing.processes_for(len(targets), FEW)

    def judge(share: t.Sequence[Target]) -> t.List[Judgement]:
        return _Driver(share, LOOKS_AT_ONCE // processes).run()

    return judge(targets) if processes == 1 else sharing.over_processes(processes, judge, targets)


class _Player:
    """One target with its judge. The judge is made when its first look starts."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.judge: t.Union[Judge, ProxyJudge, None] = None
        self.step = Step(0.0, front=False)
        self.looks = 0
        self.looking = False
        self.schedule = 0  # the newest entry in the driver's heap; older ones are void
        self.models: t.Tuple[str, ...] = ()
        self.several_engines = False
        self.judgement: t.Optional[Judgement] = None

    def look(self) -> Look:
        server = self.target.server
        if self.target.kind == "proxy":
            return vllm_api.look_at_proxy(server)
        look = vllm_api.look_at_backend(server, front=self.step.front, earlier=self.looks)
        return dataclasses.replace(look, returned=time.monotonic())

    def send(self, probe: Probe) -> t.Tuple[str, str]:
        server = self.target.server
        model = server.model or (self.models[0] if self.models else None)
        rank = probe.engine if self.several_engines else None
        # Longer than the judge waits for it: an open probe is what it judges by.
        outcome, detail = vllm_api.send_probe(server, model, rank, timeout=3 * self.target.limits.patience + 60)
        if outcome == "absent" and self.models and model not in self.models:
            detail += "; the option model names none of its models"
        return outcome, detail

    def make_judge(self, now: float) -> None:
        limits = self.target.limits
        if self.target.kind == "proxy":
            self.judge = ProxyJudge(limits, now)
        else:
            self.judge = Judge(limits, now, time.time())

    def remember(self, look: Look) -> None:
        self.looks += 1
        self.models = look.models or self.models or (look.page.models if look.page else ())
        if look.page is not None:
            self.several_engines = len(look.page.engines) > 1


class _Driver:
    def __init__(self, targets: t.Sequence[Target], looks_at_once: int) -> None:
        self._looks_at_once = max(1, looks_at_once)
        self._players = [_Player(target) for target in targets]
        self._events: "queue.SimpleQueue[t.Callable[[], None]]" = queue.SimpleQueue()
        self._due: t.List[t.Tuple[float, int, _Player]] = []
        self._tickets = itertools.count(1)
        self._looks = 0
        self._open = len(self._players)

    def run(self) -> t.List[Judgement]:
        for player in self._players:
            self._plan(player, Step(time.monotonic(), front=False))
        while self._open:
            self._start_looks()
            try:
                event = self._events.get(timeout=self._pause())
            except queue.Empty:
                continue
            event()
        return [t.cast(Judgement, player.judgement) for player in self._players]

    def _pause(self) -> t.Optional[float]:
        """Seconds until the next look is due; None where something under way must come back first."""
        if not self._due or self._looks >= self._looks_at_once:
            return None
        return max(0.0, self._due[0][0] - time.monotonic())

    def _plan(self, player: _Player, step: Step) -> None:
        player.step = step
        player.schedule = next(self._tickets)
        heapq.heappush(self._due, (step.look_at, player.schedule, player))

    def _start_looks(self) -> None:
        while self._due and self._looks < self._looks_at_once and self._due[0][0] <= time.monotonic():
            _at, ticket, player = heapq.heappop(self._due)
            if ticket == player.schedule and not player.looking and player.judgement is None:
                self._start_look(player)

    def _start_look(self, player: _Player) -> None:
        if player.judge is None:
            player.make_judge(time.monotonic())
        player.looking = True
        self._looks += 1
        self._in_thread(player.look, lambda look: self._looked(player, look))

    def _looked(self, player: _Player, look: Look) -> None:
        self._looks -= 1
        player.looking = False
        if player.judgement is None:
            player.remember(look)
            self._follow(player, t.cast(Judge, player.judge).look(look))

    def _follow(self, player: _Player, what: Next) -> None:
        if isinstance(what, Judgement):
            player.judgement = what
            self._open -= 1
            return
        for probe in what.probes:
            self._start_probe(player, probe)
        if not player.looking:
            self._plan(player, what)

    def _start_probe(self, player: _Player, probe: Probe) -> None:
        self._in_thread(lambda: player.send(probe), lambda outcome: self._probed(player, probe, outcome))

    def _probed(self, player: _Player, probe: Probe, outcome: t.Tuple[str, str]) -> None:
        if player.judgement is None:
            judge = t.cast(Judge, player.judge)
            self._follow(player, judge.probe(probe, *outcome, at=time.monotonic()))

    def _in_thread(self, work: t.Callable[[], t.Any], then: t.Callable[[t.Any], None]) -> None:
        def run() -> None:
            try:
                result = work()
            except BaseException as error:  # pylint: disable=broad-exception-caught
                fault = error  # our own fault: the loop raises it, or it would wait for ever
                self._events.put(lambda: _raise(fault))
            else:
                self._events.put(lambda: then(result))

        threading.Thread(target=run, daemon=True).start()


def _raise(error: BaseException) -> None:
    raise error
