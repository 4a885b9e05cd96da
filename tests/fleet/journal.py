"""A past for a host: entries of other days, and of a kernel that a container does not have, put into its journal.

Commands on the host, such as ``journalctl --unit``, cannot tell them from entries that journald wrote.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime

from .hosts import Host

# What systemd puts into the entry "Started ..." of a unit (systemd.journal-fields and the message catalogue).
_STARTED = "39f53479d3a045ac8e11786248231fbf"

Entry = Mapping[str, str]


def started(unit: str, at: datetime, invocation: str | None = None) -> Entry:
    """systemd says that it has started a unit."""
    return {
        "__REALTIME_TIMESTAMP": _microseconds(at),
        "_TRANSPORT": "journal",
        "_PID": "1",
        "_UID": "0",
        "_COMM": "systemd",
        "_SYSTEMD_UNIT": "init.scope",
        "SYSLOG_IDENTIFIER": "systemd",
        "PRIORITY": "6",
        "UNIT": unit,
        "INVOCATION_ID": invocation or secrets.token_hex(16),
        "JOB_TYPE": "start",
        "JOB_RESULT": "done",
        "MESSAGE_ID": _STARTED,
        "MESSAGE": f"Started {unit}.",
    }


def kernel(message: str, at: datetime) -> Entry:
    """The kernel says something, such as that a GPU was lost."""
    return {
        "__REALTIME_TIMESTAMP": _microseconds(at),
        "_TRANSPORT": "kernel",
        "SYSLOG_IDENTIFIER": "kernel",
        "PRIORITY": "3",
        "MESSAGE": message,
    }


def plant(host: Host, entries: Iterable[Entry]) -> None:
    """Add entries to the journal of a host, in any order; they belong to its present boot."""
    boot = host.read("/proc/sys/kernel/random/boot_id").strip().replace("-", "")
    machine = host.read("/etc/machine-id").strip()
    ordered = sorted(entries, key=lambda entry: int(entry["__REALTIME_TIMESTAMP"]))
    text = "".join(_exported(entry, number, boot) for number, entry in enumerate(ordered, 1))
    target = f"/var/log/journal/{machine}/planted-{secrets.token_hex(4)}.journal"
    host.run("/lib/systemd/systemd-journal-remote", f"--output={target}", "-", stdin=text.encode())


def _exported(entry: Entry, number: int, boot: str) -> str:
    """One entry in the journal's export format. The monotonic time only has to rise."""
    fields = {**entry, "__MONOTONIC_TIMESTAMP": str(number), "_BOOT_ID": boot}
    return "".join(f"{name}={value}\n" for name, value in fields.items()) + "\n"


def _microseconds(at: datetime) -> str:
    return str(int(at.timestamp() * 1_000_000))
