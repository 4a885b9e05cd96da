"""Commands that are not run: what they would print, by the first words of their command line."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import bounded

NO_SUCH_COMMAND = bounded.Unreadable("a command", "no such command", missing=True)
NO_MATCH = bounded.Unreadable("journalctl --no-pager", "ended with code 1")
TIMED_OUT = bounded.Unreadable("a command", "no answer in time")
DENIED = bounded.Unreadable("journalctl --no-pager", "No journal files were opened due to insufficient permissions.")

Script = t.Sequence[t.Tuple[str, t.Union[str, bounded.Reading]]]


def script(monkeypatch: pytest.MonkeyPatch, rows: Script) -> t.List[t.List[str]]:
    """Let bounded.run answer with the first row whose words are all in the command line; returns what is run."""
    ran: t.List[t.List[str]] = []

    def run(argv: t.Sequence[str], *_limits: object, **_more: object) -> bounded.Reading:
        ran.append(list(argv))
        for words, answer in rows:
            if all(word in argv for word in words.split()):
                return bounded.Text(answer) if isinstance(answer, str) else answer
        raise AssertionError("nobody expected %s" % " ".join(argv))

    monkeypatch.setattr(bounded, "run", run)
    return ran
