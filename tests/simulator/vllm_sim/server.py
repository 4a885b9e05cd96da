"""One simulated server: its engines, its page, its faults and its counts, apart from HTTP."""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from .counts import Counts
from .engine import ENGINE_DIED, SERVER_STOPPED, Engine
from .exposition import HttpStatistics, Page, PageSettings
from .faults import Faults
from .load import Load
from .releases import Release
from .requests import Request
from .scheduler import EngineSettings


class UnknownEngineError(ValueError):
    """There is no engine of that number."""


@dataclass(frozen=True)
class ServerSettings:
    """Everything a server is started with, but for the port."""

    engine: EngineSettings
    model_names: tuple = ("simulated",)
    loras: tuple = ()
    engines: int = 1
    api_servers: int = 1
    api_key: str = ""
    root_path: str = ""
    dev_mode: bool = True
    log_stats: bool = True
    track_load: bool = False
    extra_metrics_lines: int = 0
    log_path: str = ""

    @property
    def release(self) -> Release:
        """The release it imitates."""
        return self.engine.release

    @property
    def several_processes(self) -> bool:
        """Whether more than one HTTP process answers, as far as the metrics show it."""
        many_engines = self.engines > 1 and self.release.several_engines_several_processes
        return self.api_servers > 1 or many_engines


@dataclass
class Gate:
    """The HTTP side's brake: while it is shut, connections are accepted and nothing answers."""

    shut: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)

    def set(self, shut: bool) -> None:
        """Shut or open it."""
        with self.changed:
            self.shut = shut
            self.changed.notify_all()

    def wait(self, gone: threading.Event) -> bool:
        """Wait until it is open; False if the client went away meanwhile."""
        with self.changed:
            self.changed.wait_for(lambda: not self.shut or gone.is_set())
        return not gone.is_set()


class Server:
    """A server that can be restarted in place: the engines, the page and the counters are new then."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.counts = Counts(settings.log_path)
        self.faults = Faults()
        self.gate = Gate()
        self.load = Load(self)
        self._turn = itertools.count()
        self._start_engines()

    def _start_engines(self) -> None:
        settings = self.settings
        self.died_at: float | None = None  # monotonic; when an engine was killed
        self.dead_status = settings.release.dead_engine_status
        self.dead_health_after = 0.0
        self.engines = [Engine(number, settings.engine) for number in range(settings.engines)]
        self.http = HttpStatistics()
        page = PageSettings(
            settings.release, settings.model_names[0], settings.several_processes, settings.log_stats,
            settings.extra_metrics_lines, settings.engine.block_size, settings.engine.blocks)
        self.page = Page(page, [engine.stats for engine in self.engines], self.http)
        for engine in self.engines:
            engine.start()

    def restart(self) -> None:
        """What a restart of the process comes to: open requests fail, all numbers begin at zero."""
        self.load.stop()
        for engine in self.engines:
            engine.kill(SERVER_STOPPED)
        self.gate.set(shut=False)
        self._start_engines()

    def metrics(self) -> str:
        """The page, read between two steps."""
        with ExitStack() as stack:
            for engine in self.engines:
                stack.enter_context(engine.changed)
            return self.page.text()

    def engine(self, number: int) -> Engine:
        """The engine of that number."""
        if not 0 <= number < len(self.engines):
            raise UnknownEngineError(f"there is no engine {number}, only 0 to {len(self.engines) - 1}")
        return self.engines[number]

    def choose_engine(self, rank: int | None) -> Engine:
        """The engine for a request: the one it names, else the one with the fewest open requests."""
        if rank is not None and self.settings.release.routes_by_rank:
            return self.engine(rank)
        turn = next(self._turn)
        count = len(self.engines)
        return min(self.engines, key=lambda engine: (engine.open_requests(), (engine.number - turn) % count))

    def submit(self, request: Request, rank: int | None = None) -> Engine:
        """Hand a request to an engine and say which; raises UnknownEngineError."""
        engine = self.choose_engine(rank)
        engine.submit(request)
        return engine

    def freeze(self, number: int | None = None) -> None:
        """Freeze one engine or all; where engines go in step, freezing one freezes all."""
        for engine in self._held_by(number):
            engine.freeze()

    def thaw(self, number: int | None = None) -> None:
        """Undo freeze()."""
        for engine in self._held_by(number):
            engine.thaw()

    def _held_by(self, number: int | None) -> list[Engine]:
        if number is None or self.settings.release.engines_in_lockstep:
            return self.engines
        return [self.engine(number)]

    def kill_engine(self, health_after: float = 0.0, status: int | None = None) -> None:
        """An engine dies, which takes the others down with it; /health says so after `health_after` seconds."""
        self.load.stop()
        for engine in self.engines:
            engine.kill(ENGINE_DIED)
        self.dead_health_after = health_after
        self.dead_status = status or self.dead_status
        self.died_at = time.monotonic()

    def health_status(self) -> int:
        """The status of GET /health: 200 for a frozen engine, an error only for a dead one."""
        if self.died_at is None or time.monotonic() - self.died_at < self.dead_health_after:
            return 200
        return self.dead_status

    def is_paused(self) -> bool:
        """What GET /is_paused says."""
        return any(engine.paused for engine in self.engines)

    def is_sleeping(self) -> bool:
        """What GET /is_sleeping says."""
        return any(engine.sleep_level for engine in self.engines)

    def truth(self) -> dict:
        """What is really the case."""
        return {"engines": [engine.truth() for engine in self.engines], "http_frozen": self.gate.shut,
                "started_at": self.page.started_at, "load": self.load.size}
