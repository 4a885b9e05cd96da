# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about one systemd unit, from one `systemctl show`.

Times are seconds of CLOCK_MONOTONIC, which systemd and Python's time.monotonic() share: they are
right even where somebody sets the wall clock.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import typing as t

UNIT_NAME = re.compile(r"[A-Za-z0-9:_.@\\][A-Za-z0-9:_.@\\-]*")
"""What a name of a unit may look like (systemd.unit(5)); it never starts with a dash."""

_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "InvocationID",
    "MainPID",
    "NRestarts",
    "ExecMainStartTimestampMonotonic",
    "ActiveEnterTimestampMonotonic",
)


class SystemctlError(Exception):
    """systemctl is not there, did not answer in time, or answered with an error."""


@dataclasses.dataclass(frozen=True)
class UnitFacts:
    """What `systemctl show` says. main_pid and restarts: 0 where there are none.

    started: when the main process started, seconds of CLOCK_MONOTONIC; None where it never did.
    """

    load_state: str
    active_state: str
    sub_state: str
    invocation_id: str
    main_pid: int
    restarts: int
    started: t.Optional[float]


def systemctl(scope: str, arguments: t.Sequence[str], timeout: float) -> str:
    """Run systemctl for the system's or the user's manager and return what it prints. Raises SystemctlError."""
    command = ["systemctl", "--user"] if scope == "user" else ["systemctl"]
    environment = dict(os.environ, LC_ALL="C", SYSTEMD_COLORS="0", SYSTEMD_PAGER="")
    # Absent without a login session, and `systemctl --user` finds its manager by it alone.
    environment.setdefault("XDG_RUNTIME_DIR", "/run/user/%d" % os.geteuid())
    try:
        done = subprocess.run(
            [*command, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SystemctlError("systemctl did not answer within %g s" % timeout) from None
    except OSError as error:
        raise SystemctlError("systemctl could not be run: %s" % error.strerror) from None
    if done.returncode != 0:
        raise SystemctlError(done.stderr.strip()[:300] or "systemctl ended with code %d" % done.returncode)
    return done.stdout


def show(unit: str, scope: str = "system", timeout: float = 5.0) -> UnitFacts:
    """Read the facts of a unit; scope is system or user, timeout in seconds. Raises SystemctlError."""
    return parse(systemctl(scope, ["show", "--property=" + ",".join(_PROPERTIES), "--", unit], timeout))


def full_name(unit: str, scope: str = "system", timeout: float = 5.0) -> str:
    """The one name a unit has in the journal, whatever it is called: vllm, vllm.service or an alias. Raises SystemctlError."""
    shown = systemctl(scope, ["show", "--property=Id", "--", unit], timeout)
    return shown.strip().partition("=")[2] or unit


def parse(text: str) -> UnitFacts:
    """Parse the output of `systemctl show` (lines of Name=value; an older systemd leaves out what it does not know)."""
    found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    started = _number(found.get("ExecMainStartTimestampMonotonic")) or _number(
        found.get("ActiveEnterTimestampMonotonic")
    )
    return UnitFacts(
        load_state=found.get("LoadState", ""),
        active_state=found.get("ActiveState", ""),
        sub_state=found.get("SubState", ""),
        invocation_id=found.get("InvocationID", ""),
        main_pid=_number(found.get("MainPID")),
        restarts=_number(found.get("NRestarts")),
        started=started / 1e6 if started else None,
    )


def _number(text: t.Optional[str]) -> int:
    return int(text) if text and text.isdigit() else 0
