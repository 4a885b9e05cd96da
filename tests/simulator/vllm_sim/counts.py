"""What was asked of the simulator and what became of it: the evidence that tests assert on."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter

COMPLETION_PATHS = ("/v1/completions", "/v1/chat/completions")
POOLING_PATHS = ("/v1/embeddings", "/pooling")
GENERATION_PATHS = COMPLETION_PATHS + POOLING_PATHS

# Outcomes of a generation request, as counted and as written to the log.
FINISHED = "finished"
REJECTED = "rejected"  # answered with an error before the engine saw it
CLIENT_GONE = "client_gone"
FAILED = "failed"  # was open when the engine died or the server stopped
ABORTED = "aborted"  # ended by a pause with mode=abort


class Counts:
    """Requests by method and path, completions, probes and outcomes.  Control requests are not counted."""

    def __init__(self, log_path: str = "") -> None:
        self._lock = threading.Lock()
        self._log = open(log_path, "a", encoding="utf-8", buffering=1) if log_path else None  # noqa: SIM115
        self._open: dict[int, dict] = {}
        self._number = 0
        self.reset()

    def reset(self) -> None:
        """Start again at zero; requests that are open stay open."""
        with self._lock:
            self.connections = 0
            self.body_bytes = 0
            self.requests: Counter = Counter()
            self.received: Counter = Counter()
            self.outcomes: Counter = Counter()

    def connection(self) -> None:
        """Count a connection that was accepted."""
        with self._lock:
            self.connections += 1

    def request(self, method: str, path: str) -> None:
        """Count one HTTP request."""
        with self._lock:
            self.requests[f"{method} {path}"] += 1

    def answered(self, size: int) -> None:
        """Count the bytes of a body that was sent as a whole; streams are not counted."""
        with self._lock:
            self.body_bytes += size

    def begin(self, path: str, body: dict) -> int:
        """A generation request has come in; returns the number to end it with."""
        limit = body.get("max_tokens", body.get("max_completion_tokens"))
        probe = path in COMPLETION_PATHS and limit == 1
        with self._lock:
            self._number += 1
            self.received["completions" if path in COMPLETION_PATHS else "embeddings"] += 1
            self.received["probes"] += probe
            entry = {"request": self._number, "path": path, "probe": probe, "max_tokens": limit,
                     "stream": bool(body.get("stream")), "start": time.time()}
            self._open[self._number] = entry
            self._write({"event": "start", **entry})
            return self._number

    def end(self, number: int, outcome: str, status: int | None = None) -> None:
        """A generation request is over.  Ending it twice counts once: the first outcome is the true one."""
        with self._lock:
            entry = self._open.pop(number, None)
            if entry is None:
                return
            self.outcomes[outcome] += 1
            self._write({"event": "end", **entry, "end": time.time(), "outcome": outcome, "status": status})

    def fail_open_requests(self) -> None:
        """The server stops: whatever is open has failed."""
        for number in list(self._open):
            self.end(number, FAILED)

    def as_dict(self) -> dict:
        """All counts, with the CPU time of the process in seconds."""
        with self._lock:
            return {
                "connections": self.connections,
                "body_bytes": self.body_bytes,
                "requests": dict(self.requests),
                "completions": self.received["completions"],
                "embeddings": self.received["embeddings"],
                "probes": self.received["probes"],
                "open": len(self._open),
                "finished": self.outcomes[FINISHED],
                "rejected": self.outcomes[REJECTED],
                "client_gone": self.outcomes[CLIENT_GONE],
                "aborted": self.outcomes[ABORTED],
                "failed_in_flight": self.outcomes[FAILED],
                "cpu_seconds": round(time.process_time(), 3),
            }

    def _write(self, entry: dict) -> None:
        if self._log:
            self._log.write(json.dumps(entry) + "\n")
