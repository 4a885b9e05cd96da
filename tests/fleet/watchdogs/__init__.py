"""Everything that can restart a vLLM unit, to be planted on a host, and what only looks like it.

None of it acts by itself within the time of a test.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..commands import FleetError
from ..hosts import Host

HERE = Path(__file__).parent
UNIT_SECONDS = 30


def planted() -> list[dict[str, Any]]:
    """What an audit must find of plant(): kind, name, action and place (file:line) of all but the job of at."""
    found: list[dict[str, Any]] = json.loads((HERE / "planted.json").read_text())
    return found


def plant(host: Host) -> None:
    """Put every kind of watchdog on a host whose server is vllm.service."""
    host.copy_folder(HERE / "planted", "/")
    host.run("chown", "-R", "ops:", "/home/ops", "/var/spool/cron/crontabs/ops")
    host.run("chmod", "600", "/var/spool/cron/crontabs/ops")
    host.run("chmod", "1730", "/var/spool/cron/crontabs")
    host.run("sh", "-c", "cd /; echo 'systemctl restart vllm' | at now + 3 hours")
    timers = [f"vllm-check-{minutes}.timer" for minutes in (5, 10, 15, 30)]
    start(host, "llm.target", "gpu-prep.service", "monit.service", "llm-docker.service", *timers)
    start(host, "vllm-bounce.path", "vllm-watch.service")
    host.keep_user_units("ops")
    host.run_as("ops", "systemctl", "--user", "enable", "--now", "mine.timer")


def plant_decoys(host: Host) -> None:
    """Put there what has to do with vLLM and restarts nothing of it."""
    host.copy_folder(HERE / "decoys", "/")
    start(host, "metrics.timer", "vllm-exporter.service")


def start(host: Host, *units: str) -> None:
    """Start units, those that can be also at boot."""
    host.run("systemctl", "daemon-reload")
    for unit in units:
        host.run("systemctl", "enable", unit, check=False)
        host.run("systemctl", "start", unit)
    await_true(lambda: host.run("systemctl", "is-active", *units, check=False).returncode == 0)


def await_true(condition: Callable[[], bool], seconds: float = UNIT_SECONDS) -> None:
    """Return when the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise FleetError("that did not come true")
        time.sleep(0.1)
