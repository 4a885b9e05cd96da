"""What the benchmarks share: simulated servers, an inventory over them, tables."""

from __future__ import annotations

import contextlib
import json
import pathlib
import resource
import subprocess
import sys
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "playbooks" / "collections")]

from tests.simulator.running import Simulator  # noqa: E402  (the path comes first)

PROCESSES = 8
"""So many simulators stand for all servers: a thousand processes would measure themselves."""

ANSIBLE = pathlib.Path(sys.executable).with_name("ansible-playbook")


@contextlib.contextmanager
def simulators(number: int = PROCESSES, **options: t.Any) -> t.Iterator[t.List[Simulator]]:
    """Start simulators with the same options."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Simulator(**options)) for _number in range(number)]


def server_cpu(running: t.Sequence[Simulator]) -> float:
    """CPU seconds that the simulators have used so far."""
    return sum(simulator.counts()["cpu_seconds"] for simulator in running)


def spread(urls: t.Sequence[str], number: int) -> t.List[str]:
    """So many URLs, each server as often as the others."""
    return [urls[at % len(urls)] for at in range(number)]


def inventory(folder: pathlib.Path, urls: t.Sequence[str]) -> pathlib.Path:
    """An inventory of one host for each URL, all of them on this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["[vllm]", *("host%04d vllm_servers='%s'" % (at, json.dumps([{"url": url}])) for at, url in enumerate(urls))]
    lines += ["[vllm:vars]", "ansible_connection=local", "ansible_host=127.0.0.1"]
    lines += ["ansible_python_interpreter=%s" % sys.executable, ""]
    (folder / "hosts").write_text("\n".join(lines))
    return folder


class Spent(t.NamedTuple):
    """Seconds on the clock and of the CPU, of a command and all that it started."""

    wall: float
    cpu: float


def spent(command: t.Sequence[t.Any]) -> Spent:
    """Run a command to its end."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 2):  # 2: the check itself found something
        raise SystemExit(done.stdout + done.stderr)
    return Spent(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def table(title: str, heads: t.Sequence[str], rows: t.Iterable[t.Sequence[str]]) -> None:
    """Print a table for the README as its rows come."""
    print("\n%s\n\n| %s |\n|%s" % (title, " | ".join(heads), "---|" * len(heads)), flush=True)
    for row in rows:
        print("| %s |" % " | ".join(row), flush=True)
