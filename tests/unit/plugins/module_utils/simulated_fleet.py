"""A fleet that lives through several runs: plans, restarts, other people's restarts, recoveries and failures.

What each server truly is is known here, so that every restart by us can be held against it when it happens.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.fleetcheck.vllm.plugins.module_utils import planning, verdicts
from ansible_collections.fleetcheck.vllm.plugins.module_utils.planning import Guards, Plan
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart.budget import Budget

MINUTE = 60.0
DAY = 86400.0
SILENT = ("starting", "dead", "unresponsive", "unknown")  # such a server does not list its models
WAITED_FOR = ("starting", "stalled")
HEALTHY = ("busy", "idle", "serving")

Event = t.Tuple[int, str]
"""The place of a server, and what it becomes: a verdict, `unreachable`, or `restarted` by somebody else."""


@dataclasses.dataclass
class Server:
    """One server. pool: what it truly serves. ours: whether we restarted it and it has not served since."""

    host: str
    unit: str
    pool: str
    kind: str
    state: str
    starts: t.List[float]
    ours: bool = False

    def row(self, place: int) -> t.Dict[str, t.Any]:
        if self.state == "unreachable":
            return {"host": self.host, "place": place, "name": "-", "verdict": "unknown", "reason": "unreachable"}
        return {
            "host": self.host,
            "place": place,
            "name": self.unit,
            "unit": self.unit,
            "kind": self.kind,
            "verdict": self.state,
            "reason": verdicts.REASONS[self.state][0],
            "models": [] if self.state in SILENT else [self.pool],
            "systemd": {"invocation_id": "%s-%s-%d" % (self.host, self.unit, len(self.starts))},
        }

    def become(self, state: str, now: float) -> None:
        if state == "restarted":
            self.starts.append(now)
            state = "starting"
        elif state not in WAITED_FOR:
            self.ours = False  # it serves, or it has been given up
        self.state = state


@dataclasses.dataclass(frozen=True)
class Round:
    """One run. gap: minutes since the run before. before: what happens until then; meanwhile: what happens after the
    plan was made; outcomes: of our restarts, one after another: serves, starting, stalled, or killed (we are)."""

    gap: float
    before: t.Sequence[Event]
    meanwhile: t.Sequence[Event]
    outcomes: t.Sequence[str]


class Fleet:
    """The servers, the clock, and the law."""

    def __init__(self, servers: t.Sequence[Server], named: bool, guards: Guards, budget: Budget) -> None:
        self.servers = list(servers)
        self.pools = {server.host: server.pool for server in servers} if named else {}
        self.guards = guards
        self.budget = budget
        self.now = 100 * DAY
        self.restarts = 0

    def live(self, rounds: t.Sequence[Round]) -> None:
        for one in rounds:
            self.now += one.gap * MINUTE
            self.happen(one.before)
            rows = sorted((server.row(place) for place, server in enumerate(self.servers)), key=_worst_first)
            plan = planning.make_plan(rows, self.pools, self.guards)
            self.hold_to_the_law(plan, rows)
            self.act(plan, one)

    def happen(self, events: t.Sequence[Event]) -> None:
        for place, state in events:
            self.servers[place % len(self.servers)].become(state, self.now)

    def act(self, plan: Plan, one: Round) -> None:
        """One host after another, or several at a time; on each host one server after another."""
        hosts = list(dict.fromkeys(row["host"] for row, _pool in plan.restart))
        outcomes, meanwhile = list(one.outcomes), list(one.meanwhile)
        for at in range(0, len(hosts), self.guards.at_once):
            queues = [[row for row, _ in plan.restart if row["host"] == host] for host in hosts[at:][: self.guards.at_once]]
            while any(queues):
                self.happen([meanwhile.pop(0)] if meanwhile else [])
                went = [row for row in (queue.pop(0) for queue in queues if queue) if self.restart(row)]
                self.hold_pools_to_the_law()
                ends = [outcomes.pop(0) if outcomes else "serves" for _row in went]
                for row, end in zip(went, ends):
                    self.now += 5 * MINUTE
                    state = {"serves": "idle", "killed": "starting"}.get(end, end)
                    for server in self.of_unit(self.servers[row["place"]]):
                        server.become(state, self.now)
                if any(end != "serves" for end in ends):
                    return

    def restart(self, row: t.Mapping[str, t.Any]) -> bool:
        """What the module does: the unit as judged, the budget, the same verdict still; then it goes."""
        server = self.servers[row["place"]]
        if server.row(row["place"]).get("systemd") != row["systemd"] or server.state != row["verdict"]:
            return False
        if self.budget.objection(server.starts, self.now) is not None:
            return False
        self.hold_restart_to_the_law(server)
        self.restarts += 1
        for other in self.of_unit(server):
            other.become("restarted", self.now)
            other.ours = True
        return True

    def of_unit(self, server: Server) -> t.List[Server]:
        return [other for other in self.servers if (other.host, other.unit) == (server.host, server.unit)]

    # The law, written apart from the planner's own rules on purpose

    def hold_to_the_law(self, plan: Plan, rows: t.Sequence[t.Mapping[str, t.Any]]) -> None:
        chosen = [row["place"] for row, _pool in plan.restart]
        assert sorted([*chosen, *(held.row["place"] for held in plan.held)]) == list(range(len(rows))), "one word for each"
        assert len(chosen) <= self.guards.max_per_run
        backends = [row for row in rows if row.get("kind") == "backend" and row["verdict"] != "unknown"]
        sick = [row for row in backends if row["verdict"] in self.guards.verdicts]
        if len(sick) >= self.guards.common_cause_least and len(sick) > len(backends) * self.guards.common_cause_share:
            assert not chosen, "one cause for all"
        hosts = {row["host"] for row in rows}
        judged = {row["host"] for row in rows if row["reason"] != "unreachable"}
        assert not chosen or len(judged) >= self.guards.min_judged_share * len(hosts), "too little is known"
        for place in chosen:
            together = self.of_unit(self.servers[place])
            assert all(other.state not in HEALTHY for other in together), "never a unit that runs a healthy server"
            assert self.servers[place].state != "unresponsive" or self.stand_ins(self.servers[place]), "the last of a pool"

    def stand_ins(self, server: Server) -> t.List[Server]:
        pool = [other for other in self.servers if other.pool == server.pool and other.kind == "backend"]
        return [other for other in pool if other is not server and other.state in HEALTHY]

    def hold_restart_to_the_law(self, server: Server) -> None:
        assert server.state in self.guards.verdicts, "only what the operator named"
        assert server.kind == "backend", "never a proxy"
        lately = [self.now - start for start in server.starts]
        assert all(ago >= self.budget.min_interval for ago in lately), "time between two starts"
        assert sum(ago < self.budget.window for ago in lately) < self.budget.starts, "never more than the budget"

    def hold_pools_to_the_law(self) -> None:
        down = [server for server in self.servers if server.ours and server.state in WAITED_FOR]
        units = {(server.pool, server.host, server.unit) for server in down}
        for pool in {server.pool for server in down}:
            assert len([unit for unit in units if unit[0] == pool]) <= 1, "never two of a pool down by us"


def _worst_first(row: t.Mapping[str, t.Any]) -> int:
    return verdicts.rank(row["verdict"])
