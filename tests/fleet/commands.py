"""Running a command on this machine, with an error that shows what the command said."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

Done = subprocess.CompletedProcess[str]


class FleetError(Exception):
    """What stands in the way of the test hosts, in a sentence for a person."""


def run(command: Sequence[str], *, stdin: bytes | None = None, timeout: float = 60, check: bool = True) -> Done:
    """Run a command to its end and return what it printed, as text.

    Raises FleetError when it is missing, takes longer than ``timeout`` seconds, or (with ``check``) fails.
    """
    try:
        done = subprocess.run(
            list(command),
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise FleetError(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise FleetError(f"no end after {timeout:g} s: {' '.join(command)}") from error
    result = Done(done.args, done.returncode, _text(done.stdout), _text(done.stderr))
    if check and result.returncode != 0:
        said = (result.stderr.strip() or result.stdout.strip() or "nothing")[-2000:]
        raise FleetError(f"exit code {result.returncode} from: {' '.join(command)}\nit said: {said}")
    return result


def _text(output: bytes) -> str:
    return output.decode(errors="replace")


def missing(programs: Sequence[str]) -> list[str]:
    """Those of the programs that are not installed."""
    return [program for program in programs if shutil.which(program) is None]
