# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What passes between the judge and whoever plays it: looks and probe outcomes in, steps or a judgement out.

All times are seconds of one monotonic clock, passed in; none is looked up.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .exposition import Page, Sample
from .systemd import UnitFacts

FAILED_LOOKS = (
    "refused",
    "unreachable",
    "timeout",
    "reset",
    "tls",
    "name",
    "too_large",
    "malformed",
    "unparseable",
    "redirected",
    "unauthorized",
    "absent",
    "error",
    "no_series",
)
"""Why a look brought no page of vLLM's metrics: the kinds of reading.py, and what an answer can be instead."""

PROBE_OUTCOMES = ("answered", "absent", "rejected", "lost", "unanswered")
"""answered: by the engine. absent: no endpoint takes a probe (404). rejected: an HTTP error from the front end.
lost: the connection broke. unanswered: nothing came before the time-out, which says no more than an open probe."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """The thresholds of one server, in seconds. probe: whether a probe may be sent at all."""

    patience: float = 120.0
    startup_grace: float = 900.0
    probe: bool = True


@dataclasses.dataclass(frozen=True)
class Look:
    """One look at a server.

    started, finished: of the read of /metrics. returned: when the whole look was done.
    page, or failure (one of FAILED_LOOKS) with its detail.
    front: whether the rest was asked for. It is None where it was not, or not answered: health, the status of
    /health; models, the served models, where models_status is 200; paused, from /is_paused; sleeping, from
    /is_sleeping; unit, from systemctl; version, from /version.
    """

    started: float
    finished: float
    returned: float = 0.0
    page: t.Optional[Page] = None
    failure: t.Optional[str] = None
    detail: str = ""
    front: bool = False
    health: t.Optional[int] = None
    models: t.Optional[t.Tuple[str, ...]] = None
    models_status: t.Optional[int] = None
    models_by_vllm: bool = False
    paused: t.Optional[bool] = None
    sleeping: t.Optional[bool] = None
    unit: t.Optional[UnitFacts] = None
    unit_error: t.Optional[str] = None
    version: t.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Probe:
    """A probe to be sent: to which engine of which process (generation counts the processes seen in one check)."""

    engine: str
    generation: int


@dataclasses.dataclass(frozen=True)
class Step:
    """What the judge wants next: a look at the time look_at (front: with the front end's other endpoints and the
    unit), and probes to be sent now."""

    look_at: float
    front: bool
    probes: t.Tuple[Probe, ...] = ()


@dataclasses.dataclass(frozen=True)
class EngineEvidence:
    """What was seen of one engine. interval: seconds between the two samples that decided; tokens: generated between
    them; signs: the series that moved, with their change; silent_for: seconds without any; probe: what became of
    the probe ("open" or one of PROBE_OUTCOMES); probe_for: seconds it took, or has been open; reads: of this process."""

    engine: str
    sample: Sample
    interval: float
    tokens: t.Optional[float]
    signs: t.Mapping[str, float]
    silent_for: float
    probe: t.Optional[str] = None
    probe_detail: str = ""
    probe_for: float = 0.0
    reads: int = 0


@dataclasses.dataclass(frozen=True)
class Judgement:
    """The verdict on one server, with what it rests on.

    reads: good reads of /metrics; failed: failed ones; probes: number sent; elapsed: seconds since the first look;
    detail: what went wrong, in our own words, in the last failing_tries looks over failing_for seconds; age: of the
    process in seconds, where known.
    """

    verdict: str
    reason: str
    elapsed: float
    limits: Limits
    engines: t.Tuple[EngineEvidence, ...] = ()
    reads: int = 0
    failed: int = 0
    probes: int = 0
    restarted_meanwhile: bool = False
    detail: str = ""
    failing_for: float = 0.0
    failing_tries: int = 0
    age: t.Optional[float] = None
    page: t.Optional[Page] = None
    unit: t.Optional[UnitFacts] = None
    unit_error: t.Optional[str] = None
    models: t.Tuple[str, ...] = ()
    version: t.Optional[str] = None
