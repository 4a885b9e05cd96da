# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the GPUs of a host answer. A lost GPU is not cured by a restart of what uses it."""

from __future__ import annotations

import re
import typing as t

from .. import bounded

TIMEOUT = 15.0
"""Seconds nvidia-smi may take. It answers in one or two; on a lost GPU it can hang for ever."""

# NVIDIA's error numbers: the GPU has fallen off the bus; it needs a reset of the node.
_LOST = re.compile(r"NVRM: Xid \(.*?\): (79|154)\b")
KERNEL_COMMAND = [
    "journalctl", "--no-pager", "--quiet", "--dmesg", "--boot", "--output", "short-iso", "--grep", "NVRM: Xid",
]  # fmt: skip
"""What the NVIDIA driver has complained of since the host booted. It ends with 1 where there is nothing."""

# Messages of the first process are always there for whoever may read those of the system.
_READABLE_COMMAND = ["journalctl", "--no-pager", "--quiet", "--output", "cat", "--lines", "1", "_PID=1"]

# A card, or a part of one that has been divided (MIG).
_LISTED = re.compile(r"\s*(?:GPU \d+: |MIG .*\bDevice\s+\d+: )")


def objection() -> t.Optional[str]:
    """Why the GPUs cannot be relied on, as a sentence, or None.

    A host without nvidia-smi need not have a GPU: there it is no matter if the kernel's messages cannot be read.
    """
    listed = bounded.run(["nvidia-smi", "-L"], TIMEOUT)
    has_gpus = isinstance(listed, bounded.Text) or not listed.missing
    unlisted = _unlisted(listed) if has_gpus else None
    if unlisted is not None:
        return unlisted
    kernel = bounded.run(KERNEL_COMMAND, TIMEOUT)
    found = _LOST.search(kernel.text) if isinstance(kernel, bounded.Text) else None
    if found is not None:
        return "the kernel reports Xid %s since the last boot" % found.group(1)
    return _unreadable(kernel) if has_gpus else None


def _unlisted(listed: bounded.Reading) -> t.Optional[str]:
    if isinstance(listed, bounded.Unreadable):
        return "nvidia-smi does not answer (%s)" % listed.why
    lines = [line for line in listed.text.splitlines() if line.strip()]
    complete = lines and not listed.cut and all(_LISTED.match(line) for line in lines)
    return None if complete else "nvidia-smi does not list the GPUs"


def _unreadable(kernel: bounded.Reading) -> t.Optional[str]:
    """Why nothing is known of the kernel's messages, or None where there was no complaint."""
    if isinstance(kernel, bounded.Text):
        return "the kernel's messages are too long or too slow to be read" if kernel.cut else None
    if kernel.why != "ended with code 1":
        return "the kernel's messages cannot be read (%s)" % kernel.why
    # The same code comes where nothing matches and where this user sees nothing.
    any_message = bounded.run(_READABLE_COMMAND, TIMEOUT)
    if isinstance(any_message, bounded.Text) and any_message.text.strip():
        return None
    return "the kernel's messages cannot be read by this user"
