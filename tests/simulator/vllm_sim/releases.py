"""What differs between vLLM releases, as far as a reader of the server can see it."""

from __future__ import annotations

from typing import NamedTuple

RELEASES = ("0.8.5-v0", "0.10.2", "0.12.0", "0.25.1", "0.32.0")
DEFAULT = "0.32.0"


class Release(NamedTuple):
    """One release of vLLM, known by its habits rather than by its number."""

    name: str
    rank: int  # place in RELEASES: later is newer

    @property
    def version(self) -> str:
        """The text of GET /version."""
        return self.name.replace("-v0", "")

    @property
    def is_v0(self) -> bool:
        """The old engine: no engine label, nothing but one series before the first request."""
        return self.rank == 0

    @property
    def routes_by_rank(self) -> bool:
        """X-data-parallel-rank names the engine; older releases ignore the header."""
        return self.since("0.12.0")

    @property
    def engines_in_lockstep(self) -> bool:
        """One frozen engine holds up all others."""
        return not self.since("0.12.0")

    @property
    def several_engines_several_processes(self) -> bool:
        """Two engines bring two HTTP processes, and with them the lack of a start time."""
        return self.since("0.25.1")

    @property
    def can_pause(self) -> bool:
        """POST /pause exists."""
        return self.since("0.25.1")

    @property
    def sleep_stops_answers(self) -> bool:
        """A request sent to a sleeping server waits; 0.10.2 went on answering."""
        return self.since("0.12.0")

    @property
    def arrival_preempts_when_kept(self) -> bool:
        """A request sent to a server paused with mode=keep turns running into waiting."""
        return self.since("0.32.0")

    @property
    def dead_engine_status(self) -> int:
        """The status of GET /health after the engine has died."""
        return 503 if self.since("0.12.0") else 500

    @property
    def nested_errors(self) -> bool:
        """Error bodies are {"error": {...}}; before that the same fields without a lid."""
        return self.since("0.10.2")

    def since(self, name: str) -> bool:
        """Whether this release is the named one or a later one."""
        return self.rank >= RELEASES.index(name)


def release(name: str) -> Release:
    """Look a release up by its name; raises ValueError for one that was never looked at."""
    if name not in RELEASES:
        raise ValueError(f"release must be one of {', '.join(RELEASES)}, not {name}")
    return Release(name, RELEASES.index(name))
