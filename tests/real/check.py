"""Asks the module about a server as an operator does: with `ansible` on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODULE = "fleetcheck.vllm.vllm_health_info"


class CheckError(RuntimeError):
    """Ansible or the module failed, instead of giving a verdict."""


def ask(url: str, patience: float, key: str | None = None) -> dict[str, Any]:
    """Runs the module once and returns its entry of the one server asked for.

    The server counts as grown up after one second: the states are made by hand,
    and a young process would only be called `stalled`.
    """
    server = {"url": url} | ({"api_key": key} if key else {})
    arguments = {"servers": [server], "patience": patience, "startup_grace": 1}
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "ansible"), "localhost",
            "--inventory", "localhost,",
            "--connection", "local",
            "--extra-vars", json.dumps({"ansible_python_interpreter": sys.executable}),
            "--module-name", MODULE,
            "--args", json.dumps(arguments),
        ],
        cwd=ROOT,  # ansible.cfg is there, and with it the collection
        env=os.environ | {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=patience * 3 + 120,
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
