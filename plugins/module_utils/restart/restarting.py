# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One restart on the host: every guard, the evidence and the restart itself in one go, so that nothing comes between.

The order is the order of the guards: a lock, the unit as it was judged, whether it runs the server at all, a pause, the
budget, the GPUs, and a last look. Any of them may say no; then nothing is changed, and the word and the sentence say why.
The evidence can take a minute, in which a person or the server itself may have changed everything: what can change is
asked once more after it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import time
import typing as t

from .. import systemd, vllm_api
from . import evidence, gpu, last_look, locking, ownership, pause
from .budget import Budget, JournalError, starts

# What systemctl says to a user who may not restart the unit.
_DENIED = re.compile(r"access denied|authentication|not permitted|permission", re.IGNORECASE)

RESTART_TIMEOUT = 900.0
"""Seconds `systemctl restart` may take: a unit may stop only when its TimeoutStopSec kills it."""


@dataclasses.dataclass(frozen=True)
class Order:
    """What is to be restarted, and what it was judged by.

    invocation_id and last_sample: as the check returned them. state_dir: the folder of locks, pause mark and evidence.
    """

    server: vllm_api.Server
    verdict: str
    invocation_id: str
    last_sample: t.Optional[t.Mapping[str, t.Any]]
    budget: Budget
    state_dir: str

    @property
    def unit(self) -> str:
        """The unit's name."""
        return t.cast(str, self.server.unit)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What was done. skipped_because: a word where nothing was, else empty. message: one sentence.

    down_since: Unix seconds at which the restart began. missing_evidence: a sentence each.
    """

    changed: bool
    message: str
    skipped_because: str = ""
    evidence: t.Optional[str] = None
    missing_evidence: t.Tuple[str, ...] = ()
    invocation_id: t.Optional[str] = None
    active_state: t.Optional[str] = None
    down_since: t.Optional[float] = None
    seconds: t.Optional[float] = None


class _No(Exception):
    """A guard says no: a word and a sentence."""

    def __init__(self, word: str, sentence: str) -> None:
        super().__init__(sentence)
        self.word = word


def restart(order: Order, dry_run: bool) -> Outcome:
    """Restart the unit if every guard agrees. With dry_run the guards are asked, but nothing is written or restarted."""
    try:
        # One unit may be asked for under several names, and must have one lock.
        order = dataclasses.replace(order, server=dataclasses.replace(order.server, unit=_full_name(order)))
        if dry_run:
            _ask_guards(order)
            return Outcome(True, "%s would be restarted" % order.unit)
        with contextlib.ExitStack() as held:
            _lock(order, held)
            facts = _ask_guards(order)
            return _restart(order, facts)
    except _No as no:
        return Outcome(False, "%s was left alone: %s" % (order.unit, no), no.word)


def _full_name(order: Order) -> str:
    try:
        return systemd.full_name(order.unit, order.server.scope)
    except systemd.SystemctlError as error:
        raise _No("unit_unreadable", str(error)) from None


def _lock(order: Order, held: contextlib.ExitStack) -> None:
    try:
        # Open to all: whoever checks the host must see the pause mark. What is kept of a server is not.
        os.makedirs(order.state_dir, exist_ok=True)
        os.chmod(order.state_dir, 0o755)  # whatever the umask is
        held.enter_context(locking.lock(os.path.join(order.state_dir, order.unit.replace("/", "_") + ".lock")))
    except locking.Held:
        raise _No("locked", "another run is about to restart it") from None
    except OSError as error:
        sentence = "the folder %s cannot be used (%s)" % (order.state_dir, error.strerror)
        raise _No("not_permitted", sentence) from None


def _ask_guards(order: Order) -> systemd.UnitFacts:
    facts = _unit_as_judged(order)
    _refuse_another_server(order, facts)
    _refuse_pause(order)
    _refuse_over_budget(order, facts)
    _refuse_lost_gpu()
    _refuse_recovered(order)
    # The guards took seconds: somebody else may have restarted it in them.
    return _unit_as_judged(order)


def _ask_again(order: Order) -> None:
    _refuse_recovered(order)
    _refuse_pause(order)
    _unit_as_judged(order)


def _unit_as_judged(order: Order) -> systemd.UnitFacts:
    try:
        facts = systemd.show(order.unit, order.server.scope)
    except systemd.SystemctlError as error:
        raise _No("unit_unreadable", str(error)) from None
    if facts.load_state != "loaded":
        raise _No("unit_unreadable", "systemd says the unit is %s" % (facts.load_state or "not known"))
    if facts.invocation_id != order.invocation_id:
        raise _No("restarted_already", "it was restarted by somebody else since it was judged")
    if facts.active_state not in ("active", "inactive", "failed"):
        raise _No("unit_changing", "it is %s just now" % facts.active_state)
    if order.verdict != "dead" and facts.active_state != "active":
        raise _No("recovered", "the unit is %s, so it is not this unit that was judged %s" % (facts.active_state, order.verdict))
    return facts


def _refuse_another_server(order: Order, facts: systemd.UnitFacts) -> None:
    objection = ownership.objection(order.server.endpoint.url, order.unit, order.server.scope)
    if objection is None and order.verdict == "dead" and facts.active_state == "active":
        objection = ownership.elsewhere(order.server, order.unit)
    if objection is not None:
        raise _No("wrong_unit", objection)


def _refuse_pause(order: Order) -> None:
    mark = pause.current(time.time(), order.state_dir)
    if mark is not None:
        raise _No("paused", str(mark))


def _refuse_over_budget(order: Order, facts: systemd.UnitFacts) -> None:
    now = time.time()
    last = None if facts.started is None else now - (time.monotonic() - facts.started)
    try:
        known = starts(order.unit, order.server.scope, now - order.budget.horizon, facts.invocation_id, last)
    except JournalError as error:
        raise _No("quarantined", "%s, so its starts cannot be counted; a person must look" % error) from None
    objection = order.budget.objection(known, now)
    if objection is not None:
        word, sentence = objection
        raise _No(word, sentence + ("; a person must look" if word == "quarantined" else ""))


def _refuse_lost_gpu() -> None:
    objection = gpu.objection()
    if objection is not None:
        raise _No("gpu_lost", "%s, and a restart does not cure a lost GPU" % objection)


def _refuse_recovered(order: Order) -> None:
    objection = last_look.objection(order.verdict, order.last_sample, order.server)
    if objection is not None:
        raise _No("recovered", objection)


def _restart(order: Order, facts: systemd.UnitFacts) -> Outcome:
    began = time.time()
    base = os.path.join(order.state_dir, "evidence")
    folder = os.path.join(base, evidence.folder_name(order.unit, began))
    verdict = {"verdict": order.verdict, "invocation_id": order.invocation_id, "last_sample": order.last_sample}
    missing = tuple(
        evidence.collect(folder, order.unit, order.server.scope, facts.main_pid, order.server.endpoint, verdict)
    )
    evidence.prune(base, order.unit)
    kept = folder if os.path.isdir(folder) else None
    try:
        _ask_again(order)
    except _No as no:
        return Outcome(False, "%s was left alone: %s" % (order.unit, no), no.word, kept, missing)
    down_since, error = time.time(), ""
    try:
        systemd.systemctl(order.server.scope, ["restart", "--", order.unit], RESTART_TIMEOUT)
    except systemd.SystemctlError as failed:
        error = str(failed)
    said = _said(order, facts, error)
    if said.changed:
        said = dataclasses.replace(said, down_since=down_since, seconds=time.time() - down_since)
    return dataclasses.replace(said, evidence=kept, missing_evidence=missing)


def _said(order: Order, before: systemd.UnitFacts, error: str) -> Outcome:
    try:
        after: t.Optional[systemd.UnitFacts] = systemd.show(order.unit, order.server.scope)
    except systemd.SystemctlError as failed:
        after, error = None, error or str(failed)
    if error and after is not None and _is_untouched(before, after, error):
        return Outcome(False, "%s could not be restarted: %s" % (order.unit, error), "not_permitted")
    return Outcome(
        True,
        "%s was restarted, but: %s" % (order.unit, error) if error else "%s was restarted" % order.unit,
        invocation_id=after.invocation_id if after else None,
        active_state=after.active_state if after else None,
    )


def _is_untouched(before: systemd.UnitFacts, after: systemd.UnitFacts, error: str) -> bool:
    """Whether systemd did nothing. A unit that was down and is down may also have failed to start."""
    same = (after.invocation_id, after.active_state) == (before.invocation_id, before.active_state)
    return same and (after.active_state == "active" or _DENIED.search(error) is not None)
