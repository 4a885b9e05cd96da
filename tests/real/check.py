"""Asks the module about a server as an operator does: with `ansible` on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODULE = "fleetcheck.vllm.vllm_health_info"


class CheckError(RuntimeError):
    """Ansible or the module failed, instead of giving a verdict."""


@dataclass(frozen=True)
class Manner:
    """How the module is asked. Times in seconds."""

    patience: float
    startup_grace: float = 1.0
    key: str | None = None
    check_mode: bool = False


def ask(url: str, manner: Manner) -> dict[str, Any]:
    """Runs the module once and returns its entry of the one server asked for.

    Raises CheckError where there is none.
    """
    server = {"url": url} | ({"api_key": manner.key} if manner.key else {})
    options = {"servers": [server], "patience": manner.patience, "startup_grace": manner.startup_grace}
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "ansible"), "localhost",
            "--inventory", "localhost,",
            "--connection", "local",
            "--extra-vars", json.dumps({"ansible_python_interpreter": sys.executable}),
            "--module-name", MODULE,
            "--args", json.dumps(options),
            *(["--check"] if manner.check_mode else []),
        ],
        cwd=ROOT,  # ansible.cfg is there, and with it the collection
        env=os.environ | {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=manner.patience * 3 + 120,
    )  # fmt: skip
    return parse(done.stdout, done.stderr)


def parse(printed: str, errors: str = "") -> dict[str, Any]:
    """The one server in what `ansible` printed ("localhost | SUCCESS => {…}")."""
    head, arrow, body = printed.partition("=>")
    if not arrow or "SUCCESS" not in head:
        raise CheckError(f"{printed}\n{errors}".strip())
    try:
        return dict(json.loads(body)["servers"][0])
    except (ValueError, KeyError, IndexError) as error:
        raise CheckError(f"not understood ({error!r}): {printed}") from error
