# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether what hosts answered is what the module returns."""

from __future__ import annotations

import re
import typing as t

from ..module_utils.verdicts import VERDICTS

_NUMBERS = ("reads", "probes", "elapsed", "process_start_time")
_NUMBERS_OF_ENGINES = (
    "running",
    "waiting",
    "steps",
    "tokens",
    "tokens_per_second",
    "kv_cache_usage",
    "silent_for",
)
_IS_REASON = re.compile("[a-z_]{1,40}").fullmatch


def is_server(server: t.Any) -> bool:
    """Whether this is what M(fleetcheck.vllm.vllm_health_info) returns of a server.

    A host may answer nonsense, and an API key that is an ordinary word is hidden wherever it stands, in numbers too.
    """
    return (
        isinstance(server, t.Mapping)
        and all(key in server for key in ("name", "healthy", "message", "engines"))
        and server.get("verdict") in VERDICTS
        and bool(_IS_REASON(str(server.get("reason"))))
        and _are_numbers(server, _NUMBERS)
        and isinstance(server["engines"], (list, tuple))
        and all(isinstance(engine, t.Mapping) and _are_numbers(engine, _NUMBERS_OF_ENGINES) for engine in server["engines"])
    )


def _are_numbers(row: t.Mapping[str, t.Any], names: t.Iterable[str]) -> bool:
    return all(isinstance(row.get(name), (int, float, type(None))) for name in names)
