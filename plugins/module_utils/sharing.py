# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One piece of work shared out over processes that are forked from this one."""

from __future__ import annotations

import copyreg
import os
import types
import typing as t

if t.TYPE_CHECKING:
    from multiprocessing.connection import Connection

Item = t.TypeVar("Item")
Result = t.TypeVar("Result")
Work = t.Callable[[t.Sequence[Item]], t.List[Result]]


def _view(content: t.Dict[t.Any, t.Any]) -> types.MappingProxyType[t.Any, t.Any]:
    return types.MappingProxyType(content)


# What a process found comes back in frozen records; a view of a dict is all of them that cannot travel by itself.
copyreg.pickle(types.MappingProxyType, lambda view: (_view, (dict(view),)))


def processes_for(number: int, few: int) -> int:
    """How many processes so many items are worth: 1 up to `few` of them, and never more than there are CPUs.

    1 also where processes cannot be forked.
    """
    if number <= few or not hasattr(os, "fork"):
        return 1
    return min(_cpus(), -(-number // few))


def over_processes(processes: int, work: Work[Item, Result], items: t.Sequence[Item]) -> t.List[Result]:
    """Do `work` on a share of the items in each process; the results come in the order of the items.

    To be called before there are threads: a forked process has none of them. Raises what the work raised, and
    RuntimeError where a process ended without a word.
    """
    # Here and not above: a host with a few servers, which has no use for it, would pay for the import in every check.
    import multiprocessing  # noqa: PLC0415  # pylint: disable=import-outside-toplevel

    context = multiprocessing.get_context("fork")
    results: t.List[t.Any] = [None] * len(items)
    running = []
    for number in range(processes):
        ours, theirs = context.Pipe(duplex=False)
        # Every so-many-th item: neighbours in a list are often alike, and then one process would have all the slow ones.
        process = context.Process(target=_work, args=(work, items[number::processes], theirs), daemon=True)
        process.start()
        theirs.close()
        running.append((process, ours))
    for number, (process, ours) in enumerate(running):
        results[number::processes] = _received(ours)
        process.join()
    return results


def _work(work: Work[Item, Result], items: t.Sequence[Item], answer: Connection) -> None:
    try:
        said: t.Tuple[bool, t.Any] = (True, work(items))
    except Exception as error:  # a fault of the work is raised where the work was asked for
        said = (False, error)
    answer.send(said)


def _received(answer: Connection) -> t.List[t.Any]:
    try:
        done, said = answer.recv()
    except EOFError:
        raise RuntimeError("a process of the check was ended before it had its results") from None
    if not done:
        raise said
    return t.cast(t.List[t.Any], said)


def _cpus() -> int:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
