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

_LISTED = re.compile(r"GPU \d+: ")


def objection() -> t.Optional[str]:
    """Why the GPUs cannot be relied on, as a sentence, or None. A host without nvidia-smi is not asked."""
    listed = bounded.run(["nvidia-smi", "-L"], TIMEOUT)
    if isinstance(listed, bounded.Unreadable):
        return None if listed.missing else "nvidia-smi does not answer (%s)" % listed.why
    if listed.cut or not all(_LISTED.match(line.lstrip()) for line in listed.text.splitlines() if line.strip()):
        return "nvidia-smi does not list the GPUs"
    return _kernel_objection()


def _kernel_objection() -> t.Optional[str]:
    messages = bounded.run(KERNEL_COMMAND, TIMEOUT)
    if isinstance(messages, bounded.Unreadable):
        return None if messages.why == "ended with code 1" else "the kernel's messages cannot be read (%s)" % messages.why
    found = _LOST.search(messages.text)
    return None if found is None else "the kernel reports Xid %s since the last boot" % found.group(1)
