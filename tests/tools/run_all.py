"""Run every test there is, and say at the end what did not run and why.

    run_all.py              everything
    run_all.py unit lint    only these parts

The exit code is 0 only if nothing failed; with CI=true (in the environment) whatever did not run counts as failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / ".cache" / "test-results"

UNIT_PROCESSES = ["-n", "auto"]
# What shares hosts or servers stays in one process (tests/integration/conftest.py). One more than there are CPUs, as
# these tests wait for much.
INTEGRATION_PROCESSES = ["-n", str((os.cpu_count() or 1) + 1), "--dist", "loadscope", "--no-loadscope-reorder"]
PARTS: dict[str, list[str]] = {
    "envs": ["make", "envs"],
    "unit": ["pytest", "tests/unit", *UNIT_PROCESSES],
    "integration": ["pytest", "tests/integration", *INTEGRATION_PROCESSES],
    "demo": ["make", "demo"],
    "molecule": ["make", "molecule"],
    "lint": ["make", "--keep-going", "lint"],
    "sanity": ["make", "sanity"],
}
NEEDS_ROOT = ("molecule",)
# These run one after another beside the others, which wait more than they work, and are shown when they are done.
ASIDE = ("envs", "demo", "molecule", "lint", "sanity")
NEED_ENVS = ("integration",)


@dataclass
class Outcome:
    """What became of one part."""

    name: str
    seconds: float = 0.0
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)


def main(names: list[str]) -> int:
    """Run the parts; 0 where nothing failed."""
    chosen = names or list(PARTS)
    outcomes = []
    with ThreadPoolExecutor(max_workers=1) as aside:
        beside = {name: aside.submit(run, name) for name in chosen if name in ASIDE}
        for name in chosen:
            if name in NEED_ENVS and "envs" in beside:
                beside["envs"].result()
            if name not in ASIDE:
                outcomes.append(run(name))
        outcomes += [future.result() for future in beside.values()]
    in_ci = os.environ.get("CI") == "true"
    for line in summary(outcomes):
        print(line)
    failed = sum(len(outcome.failed) + in_ci * len(outcome.not_run) for outcome in outcomes)
    print(f"{sum(outcome.passed for outcome in outcomes)} passed, {failed} failed")
    return 1 if failed else 0


def run(name: str) -> Outcome:
    """Run one part."""
    if name in NEEDS_ROOT and os.geteuid() != 0:
        return Outcome(name, not_run=["its test hosts need root"])
    started = time.monotonic()
    outcome = run_pytest(name) if PARTS[name][0] == "pytest" else run_command(name)
    outcome.seconds = time.monotonic() - started
    return outcome


def run_command(name: str) -> Outcome:
    """A part that is one thing: it passes or it fails. Its output is shown as a whole."""
    done = subprocess.run(PARTS[name], cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"\n=== {name}\n{done.stdout}", flush=True)
    return Outcome(name, passed=int(done.returncode == 0), failed=[f"exit code {done.returncode}"] if done.returncode else [])


def run_pytest(name: str) -> Outcome:
    """A part of many tests, counted from the report that pytest writes."""
    report = RESULTS / f"{name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    print(f"\n=== {name}", flush=True)
    command = [sys.executable, "-m", *PARTS[name], "-q", f"--junit-xml={report}"]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    outcome = read_report(name, report) if report.exists() else Outcome(name)
    if code and not outcome.failed:
        outcome.failed.append(f"pytest ended with exit code {code}")
    return outcome


def read_report(name: str, report: Path) -> Outcome:
    """Count the tests of a report in JUnit's format."""
    outcome = Outcome(name)
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        skipped = case.find("skipped")
        label = f"{case.get('classname')}.{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed.append(label)
        elif skipped is None or skipped.get("type") == "pytest.xfail":
            outcome.passed += 1
        else:
            outcome.not_run.append(f"{label}: {skipped.get('message')}")
    return outcome


def summary(outcomes: list[Outcome]) -> list[str]:
    """A line for each part, then what failed, then what did not run."""
    lines = ["", "=== summary"]
    for outcome in outcomes:
        counts = f"{outcome.passed} passed, {len(outcome.failed)} failed, {len(outcome.not_run)} not run"
        lines.append(f"{outcome.name:<12} {counts}  ({outcome.seconds:.0f} s)")
    lines += [f"FAILED  {outcome.name}: {what}" for outcome in outcomes for what in outcome.failed]
    lines += [f"NOT RUN {outcome.name}: {what}" for outcome in outcomes for what in outcome.not_run]
    if not any(outcome.not_run for outcome in outcomes):
        lines.append("Nothing was left out.")
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
