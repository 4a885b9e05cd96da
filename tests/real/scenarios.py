"""The states a real vLLM is driven through, what is true in each, and which answers are right.

Grouped by the server they need, because a start takes half a minute. Within a
group the order matters only where a state ends the server: that one is last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import model, stage
from .check import Manner
from .lab import API, WORKER, Spec
from .truth import Right

KEY = "a-key-for-the-lab"

# Far longer than a start takes: half of it passes before anything is sent to the silent server.
RESTART_PATIENCE = 300.0

# One probe to an engine that ought to be idle, and none to one that works.
IDLE = Right(("idle/answered",), probes=(1, 1))
BUSY = Right(("busy/progress",), probes=(0, 0))
# A step after idle cannot be told from idle: then one probe waits behind it.
BUSY_OR_JUST_DONE = Right(("busy/progress", "idle/answered"), probes=(0, 1))
STUCK = Right(("stuck/*",), probes=(1, 1))
STUCK_BUSY = Right(("stuck/no_progress",), probes=(1, 1))
STUCK_IDLE = Right(("stuck/no_answer",), probes=(1, 1))
DEAD = Right(("dead/*",), probes=(0, 1))
# Nothing is known of the process behind a closed port where no unit is named.
CLOSED = Right(("dead/refused", "starting/*"), probes=(0, 0))


@dataclass(frozen=True)
class Scenario:
    """One state. `during` happens `after` so many seconds of the check, counted from its first read.

    The servers are young, which alone would make every hang a `stalled`: so they
    count as grown up after one second, unless `startup_grace` says otherwise.
    """

    name: str
    state: str
    truth: str
    right: Right
    enter: stage.State = stage.nothing
    during: Callable[[stage.Stage], None] | None = None
    after: float = 0.0
    key: str | None = None
    check_mode: bool = False
    startup_grace: float = 1.0
    patience: float | None = None
    """Instead of the run's."""

    def manner(self, patience: float) -> Manner:
        """How the module is asked about it in a run with that patience."""
        return Manner(self.patience or patience, self.startup_grace, self.key, self.check_mode)


@dataclass(frozen=True)
class Group:
    """Scenarios of one server. `key` is the one the server asks for."""

    name: str
    spec: Spec
    scenarios: tuple[Scenario, ...]
    key: str | None = None


PLAIN = Group(
    "plain",
    Spec(("--max-num-batched-tokens", "512")),
    (
        Scenario("fresh", "just started, no request ever", "idle", IDLE),
        Scenario("idle", "idle after a request", "idle", IDLE, stage.served_once),
        Scenario(
            "idle-check-mode",
            "idle, asked with --check",
            "idle, not asked",
            Right(("idle/not_probed",), probes=(0, 0)),
            check_mode=True,
        ),
        Scenario("decoding", "3 requests decode", "busy", BUSY, stage.decoding(3)),
        Scenario("crowd", "100 requests decode at once", "busy", BUSY, stage.decoding(100)),
        Scenario("long-prefill", "one long prompt is read in chunks of 512", "busy", BUSY, stage.chunked_prefill),
        Scenario(
            "frozen-busy",
            "engine stopped, 3 requests in flight",
            "stuck",
            STUCK_BUSY,
            stage.together(stage.decoding(3), stage.frozen()),
        ),
        Scenario("thawed", "3 requests decode, after the stopped engine went on", "busy", BUSY, stage.decoding(3)),
        Scenario(
            "frozen-then-thawed",
            "engine stopped while busy, goes on 12 s later",
            "busy",
            Right(("busy/progress", "idle/*"), probes=(1, 1), restarted=False),
            stage.behind_a_relay,
            during=stage.thaw,
            after=12,
            patience=20,
        ),
        Scenario(
            "frozen-prefill",
            "engine stopped inside a long prompt",
            "stuck",
            STUCK_BUSY,
            stage.together(stage.chunked_prefill, stage.frozen()),
        ),
        Scenario(
            "worker-frozen",
            "worker process stopped, 3 requests in flight (the engine core waits for it)",
            "stuck",
            STUCK_BUSY,
            stage.together(stage.decoding(3), stage.frozen(title=WORKER)),
        ),
        Scenario(
            "frozen-young",
            "engine stopped while busy, within startup_grace",
            "stuck, but young",
            Right(("stalled/too_young",), probes=(1, 1)),
            stage.together(stage.decoding(3), stage.frozen()),
            startup_grace=86400,
        ),
        Scenario(
            "frozen-check-mode",
            "engine stopped while busy, asked with --check",
            "stuck, cannot be proven",
            Right(("stalled/not_probed",), probes=(0, 0)),
            stage.together(stage.decoding(3), stage.frozen()),
            check_mode=True,
        ),
        Scenario("frozen-clients-gone", "engine stopped, all clients have left", "stuck", STUCK, stage.frozen_and_left),
        Scenario("frozen-idle", "engine stopped while idle", "stuck", STUCK_IDLE, stage.frozen()),
        Scenario(
            "http-frozen",
            "HTTP process stopped",
            "unresponsive",
            Right(("unresponsive/timeout",), probes=(0, 0)),
            stage.http_frozen,
        ),
        Scenario(
            "restarted",
            "engine stopped while busy, restarted during the check",
            "restarted, idle",
            Right(("idle/answered",), probes=(1, 1), restarted=True),
            stage.behind_a_relay,
            during=stage.restart,
            after=4,
            patience=RESTART_PATIENCE,
        ),
        Scenario(
            "another-server",
            "the address leads to another server during the check",
            "two servers, one address",
            Right(("unknown/behind_proxy",), probes=(0, 1)),
            stage.beside_another,
            during=stage.lead_elsewhere,
            after=4,
        ),
        Scenario("starting", "ended and started again, nothing listens yet", "starting", CLOSED, stage.starting_again),
        Scenario("engine-killed", "engine killed a moment ago", "dead", DEAD, stage.engine_killed),
        Scenario("engine-dead", "engine killed, and the process has ended", "dead", CLOSED, stage.ended),
    ),
)

LONG_STEP = Group(
    "long-step",
    Spec(("--max-num-batched-tokens", str(model.CONTEXT))),
    (
        Scenario("long-step", "first step after idle, one step of many seconds", "busy", BUSY_OR_JUST_DONE, stage.one_long_step),
        Scenario(
            "long-step-busy",
            "a step of many seconds beside 2 requests that decode",
            "busy",
            Right(("busy/progress",), probes=(0, 1)),
            stage.together(stage.decoding(2), stage.one_long_step),
        ),
        # Last: the compiling goes on after its client has left, and takes a core away from what follows.
        Scenario(
            "compiling",
            "one request waits for its grammar to be compiled, nothing moves",
            "healthy",
            Right(("busy/progress", "idle/stale_gauges"), probes=(1, 1)),
            stage.compiling,
        ),
    ),
)

QUEUE = Group(
    "queue",
    Spec(("--max-num-seqs", "1", "--api-key", KEY)),
    (
        Scenario("key-given", "idle, asks for an API key, key given", "idle", IDLE, key=KEY),
        Scenario(
            "key-missing",
            "idle, asks for an API key, none given",
            "idle, cannot be known",
            Right(("unknown/unauthorized",), probes=(0, 1)),
        ),
        Scenario("queued", "1 runs, 3 wait, key given", "busy", BUSY, stage.decoding(4), key=KEY),
        Scenario("queued-no-key", "1 runs, 3 wait, no key given", "busy", BUSY, stage.decoding(4)),
        Scenario(
            "frozen-queued",
            "engine stopped, 1 runs, 3 wait, key given",
            "stuck",
            STUCK_BUSY,
            stage.together(stage.decoding(4), stage.frozen()),
            key=KEY,
        ),
        Scenario(
            "frozen-queued-no-key",
            "engine stopped, 1 runs, 3 wait, no key given",
            "stuck, cannot be proven",
            Right(("unknown/unauthorized", "stalled/probe_rejected"), probes=(0, 1)),
            stage.together(stage.decoding(4), stage.frozen()),
        ),
    ),
    key=KEY,
)

TWO_ENGINES = Group(
    "two-engines",
    Spec(("--data-parallel-size", "2")),
    (
        Scenario("dp2-fresh", "two engines, just started", "idle", Right(("idle/answered",), probes=(1, 2))),
        Scenario("dp2-busy", "two engines, both decode", "busy", BUSY, stage.decoding(4)),
        Scenario("dp2-one-busy", "two engines, one decodes", "busy", BUSY, stage.decoding(2, rank=0)),
        Scenario(
            "dp2-one-frozen-busy",
            "two engines at work, one stopped",
            "stuck",
            STUCK_BUSY,
            stage.together(stage.decoding(4), stage.frozen(1)),
        ),
        Scenario(
            "dp2-one-frozen-idle",
            "two idle engines, one stopped",
            "stuck",
            Right(("stuck/no_answer",), probes=(1, 2)),
            stage.frozen(1),
        ),
        Scenario(
            "dp2-thawed", "two engines, both went on, idle", "idle", Right(("idle/answered",), probes=(1, 2)), stage.served_once
        ),
        Scenario("dp2-one-killed", "one of two engines killed a moment ago", "dead", DEAD, stage.engine_killed),
    ),
)

TWO_APIS = Group(
    "two-apis",
    Spec(("--api-server-count", "2")),
    (
        Scenario("api2-fresh", "two HTTP processes, just started", "idle", IDLE),
        Scenario("api2-busy", "two HTTP processes, 4 requests decode", "busy", BUSY, stage.decoding(4)),
        Scenario("api2-idle", "two HTTP processes, idle after work", "idle", IDLE, stage.served_once),
        Scenario(
            "api2-frozen-busy",
            "two HTTP processes, engine stopped, 4 in flight",
            "stuck",
            STUCK_BUSY,
            stage.together(stage.decoding(4), stage.frozen()),
        ),
        Scenario(
            "api2-one-frozen",
            "one of two HTTP processes stopped, idle",
            "idle",
            IDLE,
            stage.frozen(1, API),
        ),
        Scenario("api2-frozen-idle", "two HTTP processes, engine stopped while idle", "stuck", STUCK_IDLE, stage.frozen()),
    ),
)

SLEEPING = Right(("sleeping/sleep_mode",), probes=(0, 0))
PAUSED = Right(("paused/scheduler_paused",), probes=(0, 0))

DEVELOPMENT = Group(
    "development",
    Spec(("--max-num-seqs", "2"), {"VLLM_SERVER_DEV_MODE": "1"}),
    (
        Scenario("sleeping", "put to sleep", "sleeping", SLEEPING, stage.posted("/sleep?level=1", "/wake_up")),
        Scenario("awake", "woken up again", "idle", IDLE, stage.served_once),
        Scenario("paused-idle", "paused while idle", "paused", PAUSED, stage.posted("/pause?mode=keep", "/resume")),
        Scenario(
            "paused-busy",
            "paused with 2 running and 2 waiting",
            "paused",
            PAUSED,
            stage.together(stage.decoding(4), stage.posted("/pause?mode=keep", "/resume")),
        ),
        Scenario(
            "paused-draining",
            "paused, what runs may end",
            "paused",
            Right(("paused/scheduler_paused", "busy/progress"), probes=(0, 0)),
            stage.together(stage.decoding(4), stage.posted("/pause?mode=wait", "/resume")),
        ),
        Scenario(
            "frozen-development",
            "engine stopped, 2 run, 2 wait; /is_paused is there",
            "stuck",
            STUCK_BUSY,
            stage.together(stage.decoding(4), stage.frozen()),
        ),
    ),
)

POOLING = Group(
    "pooling",
    Spec(("--runner", "pooling")),
    (
        Scenario("pooling-idle", "pooling model, idle", "idle", IDLE),
        Scenario("pooling-busy", "pooling model under full load", "busy", BUSY, stage.embedding(6)),
        Scenario(
            "pooling-frozen",
            "pooling model, engine stopped under load",
            "stuck",
            STUCK,
            stage.together(stage.embedding(6), stage.frozen()),
        ),
    ),
)

SILENT = Group(
    "no-log-stats",
    Spec(("--disable-log-stats",)),
    (
        Scenario(
            "no-log-stats",
            "started with --disable-log-stats",
            "idle, cannot be known",
            Right(("unknown/no_metrics",), probes=(0, 0)),
        ),
    ),
)

GROUPS = (PLAIN, LONG_STEP, QUEUE, TWO_ENGINES, TWO_APIS, DEVELOPMENT, POOLING, SILENT)


def chosen(names: set[str]) -> list[tuple[Group, list[Scenario]]]:
    """The groups with the scenarios asked for by their own name or their group's; all where none is named.

    Raises ValueError naming what is neither.
    """
    known = {group.name for group in GROUPS} | {scenario.name for group in GROUPS for scenario in group.scenarios}
    if names - known:
        raise ValueError(f"no such scenario or group: {', '.join(sorted(names - known))}")
    picked = []
    for group in GROUPS:
        wanted = [one for one in group.scenarios if not names or names & {group.name, one.name}]
        if wanted:
            picked.append((group, wanted))
    return picked
