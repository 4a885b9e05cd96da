"""What counts as right, and whether an answer does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True)
class Right:
    """The answers that agree with a truth.

    `answers` are patterns of "verdict/reason"; `probes` the fewest and the most
    requests that may have been sent; `restarted` is compared where it is not None.
    """

    answers: tuple[str, ...]
    probes: tuple[int, int]
    restarted: bool | None = None


@dataclass(frozen=True)
class Outcome:
    """What the module said of one server, and how many requests the server itself saw meanwhile."""

    verdict: str
    reason: str
    probes: int
    elapsed: float
    message: str
    restarted: bool
    seen: int = 0

    @property
    def answer(self) -> str:
        """Verdict and reason as one word."""
        return f"{self.verdict}/{self.reason}"


def outcome(server: Mapping[str, Any], seen: int = 0) -> Outcome:
    """Takes from the module's entry of one server what is compared and shown."""
    return Outcome(
        verdict=server["verdict"],
        reason=server["reason"],
        probes=server["probes"],
        elapsed=server["elapsed"],
        message=server["message"],
        restarted=server["restarted_meanwhile"],
        seen=seen,
    )


def contradictions(right: Right, got: Outcome) -> list[str]:
    """In what an answer is wrong; an empty list where it is right."""
    found = []
    if not any(fnmatchcase(got.answer, pattern) for pattern in right.answers):
        found.append(f"said {got.answer}, right is {' or '.join(right.answers)}")
    least, most = right.probes
    if not least <= got.probes <= most:
        found.append(f"sent {got.probes} probes, right is {least if least == most else f'{least} to {most}'}")
    if got.seen > got.probes:
        found.append(f"the server answered {got.seen} requests that no client sent, the module owns up to {got.probes}")
    if right.restarted is not None and got.restarted != right.restarted:
        found.append(f"restarted_meanwhile is {str(got.restarted).lower()}")
    return found
