"""What a check costs the server that is watched, against a chat request of one token.

    python tests/benchmarks/cost.py [--runs 20]

The full server has 12 requests running and 40 waiting, and users who send the next one when one is answered. Whoever
comes while a generation of the watchdog waits or runs is served one place later for it; a read takes no place.
"""

from __future__ import annotations

import argparse
import time
import typing as t

from common import server_cpu, simulators, table

from ansible_collections.fleetcheck.vllm.plugins.module_utils import driving  # isort: skip
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import Limits  # isort: skip
from ansible_collections.fleetcheck.vllm.plugins.module_utils.reading import Answer, Endpoint  # isort: skip
from ansible_collections.fleetcheck.vllm.plugins.module_utils.vllm_api import Server  # isort: skip
from tests.simulator.running import Simulator  # isort: skip

CHAT = {"model": "simulated", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
TIME_LIMIT = 45.0
SUCCESS = b"vllm:request_success_total"


def check(simulator: Simulator) -> str:
    target = driving.Target(Server(Endpoint(simulator.url)), Limits(patience=10, startup_grace=0.0))
    return driving.check([target])[0].verdict


def chat(simulator: Simulator) -> str:
    """The watchdog that this project is not: one chat request with a time limit."""
    try:
        status, _body = simulator.post("/v1/chat/completions", CHAT, timeout=TIME_LIMIT)
    except OSError:
        return "false alarm after %g s" % TIME_LIMIT
    return "answered" if status == 200 else "HTTP %d" % status


def finished(simulator: Simulator) -> float:
    """Requests that the engine has finished so far, whoever sent them."""
    page = Endpoint(simulator.url).get("/metrics", 10)
    assert isinstance(page, Answer)
    return sum(float(line.rsplit(b" ", 1)[1]) for line in page.body.splitlines() if line.startswith(SUCCESS))


def rows(runs: int) -> t.Iterator[t.Sequence[str]]:
    """A row for each state and way."""
    for state in ("idle", "busy", "queued"):
        for way, ask in (("check", check), ("chat request of one token", chat)):
            with simulators(1, state=state) as running:
                yield _row(state, way, ask, running[0], 2 if (state, ask) == ("queued", chat) else runs)


def _row(state: str, way: str, ask: t.Callable[[Simulator], str], simulator: Simulator, runs: int) -> t.Sequence[str]:
    time.sleep(1.0)  # the load comes up
    quiet = server_cpu([simulator])
    time.sleep(2.0)
    rate = (server_cpu([simulator]) - quiet) / 2.0
    before = finished(simulator)
    simulator.control("reset-counts")
    cpu, began, said = server_cpu([simulator]), time.perf_counter(), ""
    for _run in range(runs):
        said = ask(simulator)
    taken = time.perf_counter() - began
    extra = max(0.0, server_cpu([simulator]) - cpu - rate * taken)
    counts = simulator.counts()
    generated = counts["completions"] / runs
    # The users' own requests are not sent over HTTP here. As many come as are answered.
    users = finished(simulator) - before - counts["completions"]
    delayed = max(0, users) / runs if state == "queued" and generated else 0
    return (
        state,
        way,
        said,
        "%.1f" % (sum(counts["requests"].values()) / runs),
        "%.1f" % generated,
        "%.0f kB" % (counts["body_bytes"] / 1000 / runs),
        "%.0f" % delayed,
        "%.2f s" % (taken / runs),
        "%.0f ms" % (1000 * extra / runs),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    heads = ("server", "what", "says", "HTTP requests", "generations", "bytes", "users delayed", "takes", "server CPU")
    table("What it costs the server", heads, rows(parser.parse_args().runs))


if __name__ == "__main__":
    main()
