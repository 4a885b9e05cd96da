"""What it takes to judge many servers from one place, against a client that only reads, and how that grows.

    python tests/benchmarks/controller_mode.py [--servers 10 100 200 1000] [--lines 600 5000 50000]

The bare client is asyncio and nothing else: it makes the same reads (/metrics twice, a quarter of a second apart, and
/version), as many at the same time as the check, and looks at nothing it has read. The plain one makes them with requests
and gives what counts of each page to the parser of prometheus_client, in as many processes and threads as the check: that
much is the price of those two.
"""

from __future__ import annotations

import argparse
import asyncio
import time
import typing as t
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import requests
from common import simulators, spread, table

from ansible_collections.fleetcheck.vllm.plugins.module_utils import driving, exposition, sharing  # isort: skip
from ansible_collections.fleetcheck.vllm.plugins.module_utils.failing import FIRST_GAP  # isort: skip
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import Limits  # isort: skip
from ansible_collections.fleetcheck.vllm.plugins.module_utils.reading import Endpoint  # isort: skip
from ansible_collections.fleetcheck.vllm.plugins.module_utils.vllm_api import Server  # isort: skip

PATIENCE = 10.0


async def read(url: str, path: str, places: asyncio.Semaphore) -> int:
    """GET a path once, to the end."""
    parts = urllib.parse.urlsplit(url)
    async with places:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path.encode())
        size = len(await reader.read(-1))
        writer.close()
        return size


async def read_like_a_check(url: str, places: asyncio.Semaphore) -> None:
    await read(url, "/metrics", places)
    await asyncio.sleep(FIRST_GAP)
    await read(url, "/metrics", places)
    await read(url, "/version", places)


def bare(urls: t.Sequence[str]) -> float:
    """Seconds that the client takes for all servers."""

    async def run() -> None:
        places = asyncio.Semaphore(driving.LOOKS_AT_ONCE)
        await asyncio.gather(*(read_like_a_check(url, places) for url in urls))

    began = time.perf_counter()
    asyncio.run(run())
    return time.perf_counter() - began


def plain(urls: t.Sequence[str]) -> float:
    """Seconds that requests and the parser take for all servers, with no deadline over an exchange and no verdict."""
    processes = sharing.processes_for(len(urls), driving.FEW)

    def read(share: t.Sequence[str]) -> t.List[int]:
        return _read_with_requests(share, driving.LOOKS_AT_ONCE // processes)

    began = time.perf_counter()
    if processes == 1:
        read(urls)
    else:
        sharing.over_processes(processes, read, urls)
    return time.perf_counter() - began


def _read_with_requests(urls: t.Sequence[str], at_once: int) -> t.List[int]:
    """The sizes of what was read last of each server."""

    def get(url: str) -> bytes:
        with requests.Session() as session:  # a new one each time, as a thousand servers share no connection
            session.trust_env = False
            return t.cast(bytes, session.get(url, timeout=10).content)

    def look(url: str) -> None:
        exposition.parse(get(url + "/metrics"))

    def look_again(url: str) -> int:
        look(url)
        return len(get(url + "/version"))

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(look, urls))
        time.sleep(FIRST_GAP)
        return list(pool.map(look_again, urls))


def judged(urls: t.Sequence[str]) -> t.Tuple[float, t.Dict[str, int]]:
    """Seconds that the check takes for all servers, and the verdicts."""
    limits = Limits(patience=PATIENCE, startup_grace=0.0)
    targets = [driving.Target(Server(Endpoint(url)), limits) for url in urls]
    began = time.perf_counter()
    judgements = driving.check(targets)
    taken = time.perf_counter() - began
    words = [judgement.verdict for judgement in judgements]
    return taken, {word: words.count(word) for word in sorted(set(words))}


def by_servers(numbers: t.Sequence[int]) -> t.Iterator[t.Sequence[str]]:
    """A row for each number of servers; the last one again with one in a hundred stuck."""
    with simulators(state="busy") as running, simulators(1, state="frozen-busy") as frozen:
        healthy = [simulator.url for simulator in running]
        for number in numbers:
            yield _row("%d" % number, spread(healthy, number))
        stuck = max(1, numbers[-1] // 100)
        mixed = spread([frozen[0].url], stuck) + spread(healthy, numbers[-1] - stuck)
        yield _row("%d, of which %d stuck (patience %g s)" % (numbers[-1], stuck, PATIENCE), mixed)


def _row(name: str, urls: t.Sequence[str]) -> t.Sequence[str]:
    client, least = bare(urls), plain(urls)
    check, words = judged(urls)
    said = ", ".join("%d %s" % (number, word) for word, number in words.items())
    seconds = ["%.2f s" % taken for taken in (client, least, check)]
    return name, *seconds, "%.2f" % (check / client), "%.2f" % (check / least), said


def by_lines(numbers: t.Sequence[int]) -> t.Iterator[t.Sequence[str]]:
    """A row for each length of a page of /metrics."""
    for number in numbers:
        with simulators(1, state="busy", extra_metrics_lines=max(0, number - 600)) as running:
            endpoint = Endpoint(running[0].url)
            began = time.perf_counter()
            page = [endpoint.get("/metrics", 10) for _again in range(20)][-1]
            reading = (time.perf_counter() - began) / 20
            began = time.perf_counter()
            for _again in range(20):
                exposition.parse(page.body)
            parsing = (time.perf_counter() - began) / 20
            sizes = "%d" % page.body.count(b"\n"), "%.0f kB" % (len(page.body) / 1000)
            yield (*sizes, "%.1f ms" % (reading * 1000), "%.1f ms" % (parsing * 1000), "%.2f" % (parsing / reading))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, nargs="+", default=[10, 100, 200, 1000])
    parser.add_argument("--lines", type=int, nargs="+", default=[600, 5000, 50000])
    options = parser.parse_args()
    heads = ("servers", "bare client", "plain client", "check", "to bare", "to plain", "verdicts")
    table("Many servers from one place", heads, by_servers(options.servers))
    heads = ("lines of /metrics", "size", "read", "parse", "ratio")
    table("Long pages", heads, by_lines(options.lines))


if __name__ == "__main__":
    main()
