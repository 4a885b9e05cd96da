# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of a verdict: what may be said of a server, which is worse, which is healthy."""

from __future__ import annotations

import typing as t

# Worst first. The value says whether the server is healthy; None means that nothing is known either way.
_HEALTHY: t.Dict[str, t.Optional[bool]] = {
    "stuck": False,
    "dead": False,
    "unresponsive": False,
    "stalled": False,
    "unknown": None,
    "starting": None,
    "paused": None,
    "sleeping": None,
    "busy": True,
    "idle": True,
    "serving": True,
}

VERDICTS: t.Tuple[str, ...] = tuple(_HEALTHY)
"""Every verdict, worst first."""

REASONS: t.Dict[str, t.Tuple[str, ...]] = {
    "stuck": ("no_progress", "not_admitted", "no_answer"),
    "dead": ("refused", "engine_dead", "unit_inactive", "unit_failed"),
    "unresponsive": ("timeout",),
    "stalled": ("too_young", "probe_rejected", "not_probed", "reads_lost"),
    "unknown": (
        "no_metrics",
        "not_vllm",
        "unauthorized",
        "metrics_error",
        "unparseable",
        "behind_proxy",
        "keeps_restarting",
        "unit_not_found",
        "name_not_resolved",
        "unreachable",
        "tls_error",
        "redirected",
    ),
    "starting": ("unit_activating", "unit_deactivating", "not_listening_yet"),
    "paused": ("scheduler_paused",),
    "sleeping": ("sleep_mode",),
    "busy": ("progress",),
    "idle": ("answered", "not_probed", "stale_gauges"),
    "serving": ("models_listed",),
}
"""The reasons each verdict may have."""


RESTARTABLE = ("stuck", "dead", "unresponsive")
"""The verdicts that may be restarted, if the operator says so: a last look beside the engine can confirm them."""


def rank(verdict: str) -> int:
    """Position of a verdict in the order worst first (0 is the worst)."""
    return VERDICTS.index(verdict)


def worst(verdicts: t.Iterable[str]) -> str:
    """The worst of one or more verdicts. Raises ValueError when there is none, or one is not a verdict."""
    return min(verdicts, key=rank)


def healthy(verdict: str) -> t.Optional[bool]:
    """True or False where the verdict says so, None where it leaves the matter open."""
    return _HEALTHY[verdict]


def counts(verdicts: t.Iterable[str]) -> t.Dict[str, int]:
    """How often each verdict occurs, worst first, absent ones left out."""
    seen = list(verdicts)
    return {verdict: seen.count(verdict) for verdict in VERDICTS if verdict in seen}
