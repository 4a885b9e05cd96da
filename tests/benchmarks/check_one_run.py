"""How long the check takes from the first read to the verdict, and what it asks of the server meanwhile.

    python tests/benchmarks/check_one_run.py [--runs 50] [--patience 10]

Prints one table, made against simulated servers on this machine in one run. The time of two bare reads of /metrics,
a quarter of a second apart, stands in the first row: the others are also given as a ratio to it.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import statistics
import sys
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "playbooks" / "collections")]

from ansible_collections.fleetcheck.vllm.plugins.module_utils import driving  # noqa: E402
from ansible_collections.fleetcheck.vllm.plugins.module_utils.failing import FIRST_GAP  # noqa: E402
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import Judgement, Limits  # noqa: E402
from ansible_collections.fleetcheck.vllm.plugins.module_utils.reading import Endpoint  # noqa: E402
from ansible_collections.fleetcheck.vllm.plugins.module_utils.vllm_api import Server  # noqa: E402

from tests.simulator.running import Simulator  # noqa: E402


class Row(t.NamedTuple):
    """One line of the table: seconds of each run, requests of one run, and what was said."""

    name: str
    seconds: t.List[float]
    requests: float
    verdict: str


def requests_of(simulators: t.Sequence[Simulator]) -> int:
    """HTTP requests they have counted; questions about the counts are not among them."""
    return sum(sum(simulator.counts()["requests"].values()) for simulator in set(simulators))


def measure(name: str, simulators: t.Sequence[Simulator], runs: int, limits: Limits) -> Row:
    """Run the check so often and keep the time it took for all servers together."""
    targets = [driving.Target(Server(Endpoint(simulator.url)), limits) for simulator in simulators]
    before, seconds = requests_of(simulators), []
    judgements: t.List[Judgement] = []
    for _run in range(runs):
        began = time.perf_counter()
        judgements = driving.check(targets)
        seconds.append(time.perf_counter() - began)
    asked = requests_of(simulators) - before
    return Row(name, seconds, asked / runs, ", ".join(sorted({judgement.verdict for judgement in judgements})))


def bare_reads(simulator: Simulator, runs: int) -> Row:
    """The least that could be done: two reads and the distance between them, nothing parsed."""
    endpoint, seconds = Endpoint(simulator.url), []
    for _run in range(runs):
        began = time.perf_counter()
        endpoint.get("/metrics", 10)
        time.sleep(FIRST_GAP)
        endpoint.get("/metrics", 10)
        seconds.append(time.perf_counter() - began)
    return Row("two bare reads, 0.25 s apart", seconds, 2, "-")


def rows(runs: int, patience: float) -> t.Iterator[Row]:
    """All lines of the table, each against servers of its own."""
    limits = Limits(patience=patience, startup_grace=0.0)
    with Simulator(state="busy", step_seconds=0.02) as simulator:
        yield bare_reads(simulator, runs)
        yield measure("busy, a step every 20 ms", [simulator], runs, limits)
    with Simulator(state="idle", step_seconds=0.02) as simulator:
        yield measure("idle", [simulator], runs, limits)
    with Simulator(state="frozen-busy") as simulator:
        yield measure("stuck, patience %g s" % patience, [simulator], 3, limits)
    with contextlib.ExitStack() as stack:
        # Eight processes, each checked eight times over at once: 64 processes would measure the simulator.
        some = [stack.enter_context(Simulator(state="busy", step_seconds=0.02)) for _number in range(8)]
        yield measure("64 busy servers in one run", some * 8, max(3, runs // 10), limits)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--patience", type=float, default=10.0)
    options = parser.parse_args()
    print("| server | verdict | runs | median s | slowest s | requests a run | ratio |\n|---|---|---|---|---|---|---|")
    bare: t.Optional[float] = None
    for row in rows(options.runs, options.patience):
        median = statistics.median(row.seconds)
        bare = bare or median
        cells = (row.name, row.verdict, len(row.seconds), median, max(row.seconds), row.requests, median / bare)
        print("| %s | %s | %d | %.3f | %.3f | %.1f | %.2f |" % cells, flush=True)


if __name__ == "__main__":
    main()
