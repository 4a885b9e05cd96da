# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signs of life: what differs between two samples of one engine, and whether they are of one process."""

from __future__ import annotations

import typing as t

from .exposition import Page, Sample


def signs_of_life(before: Sample, after: Sample) -> t.Dict[str, float]:
    """The series that only a working engine moves, with the change of each; empty where nothing moved.

    A change of waiting is not among them: arrivals move it. A series that one of the samples lacks says nothing,
    but for running: servers with several API processes export it with the first request.
    """
    signs = {
        name: value - before.counters[name]
        for name, value in after.counters.items()
        if value > before.counters.get(name, value)
    }
    if after.running is not None and after.running != (before.running or 0):
        signs["num_requests_running"] = after.running - (before.running or 0)
    if before.kv_cache_usage is not None and after.kv_cache_usage is not None:
        change = after.kv_cache_usage - before.kv_cache_usage
        if change != 0:
            signs["kv_cache_usage_perc"] = change
    return signs


def continues(before: Page, after: Page) -> bool:
    """Whether after can be a later page of the same process: equal start times where exported, no counter fell.

    A counter that is gone fell, too: V0 exports none before the first request of a new process.
    """
    if None not in (before.start_time, after.start_time) and before.start_time != after.start_time:
        return False
    shared = before.engines.keys() & after.engines.keys()
    return not any(_fell(before.engines[label], after.engines[label]) for label in shared)


def _fell(before: Sample, after: Sample) -> bool:
    return any(after.counters.get(name, -1.0) < value for name, value in before.counters.items())
