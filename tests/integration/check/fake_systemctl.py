"""A stand-in for systemctl on PATH, for states of a unit that a server under test cannot be brought into."""

from __future__ import annotations

import pathlib
import textwrap

SCRIPT = textwrap.dedent(
    """\
    #!/bin/sh
    # The last argument is the unit: its facts lie in a file of that name.
    for unit; do :; done
    cat "{folder}/$unit.show" 2>/dev/null || printf 'LoadState=not-found\\nActiveState=inactive\\nSubState=dead\\n'
    """
)


def install(folder: pathlib.Path) -> pathlib.Path:
    """Write the script into folder/bin and return that folder, for PATH."""
    binaries = folder / "bin"
    binaries.mkdir(parents=True, exist_ok=True)
    script = binaries / "systemctl"
    script.write_text(SCRIPT.format(folder=folder))
    script.chmod(0o755)
    return binaries


def put(folder: pathlib.Path, unit: str, active: str, sub: str, started: float = 1.0, restarts: int = 0) -> None:
    """Say what `systemctl show` prints of a unit. started: seconds of CLOCK_MONOTONIC."""
    facts = {
        "LoadState": "loaded",
        "ActiveState": active,
        "SubState": sub,
        "InvocationID": "0123456789abcdef0123456789abcdef",
        "MainPID": "4711" if active == "active" else "0",
        "NRestarts": str(restarts),
        "ExecMainStartTimestampMonotonic": str(int(started * 1e6)),
    }
    (folder / (unit + ".show")).write_text("".join("%s=%s\n" % row for row in facts.items()))
