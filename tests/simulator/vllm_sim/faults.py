"""Wrong answers on demand: late, with another status, cut off, or not at all."""

from __future__ import annotations

import threading
from dataclasses import dataclass

MODES = ("", "garbage", "html", "truncated", "empty", "silent", "reset", "redirect", "drip")

HTML = b"<!doctype html><html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>\n"
GARBAGE = bytes(range(256)) * 16


@dataclass
class Fault:
    """What is wrong with the answers of one path.

    `delay` in seconds comes before anything else; `status` alone replaces the answer by an error; `mode` says how
    the answer is spoilt; `times` is for how many requests (None: until cleared).
    """

    path: str
    delay: float = 0.0
    status: int = 0
    mode: str = ""
    location: str = "http://127.0.0.1:1/elsewhere"  # where a redirect points to
    times: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(filter(None, MODES))}, not {self.mode}")


class Faults:
    """The faults that are switched on, by path."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_path: dict[str, Fault] = {}

    def set(self, fault: Fault) -> None:
        """Switch one on; it replaces an earlier one for the same path."""
        with self._lock:
            self._by_path[fault.path] = fault

    def clear(self, path: str | None = None) -> None:
        """Switch one off, or all."""
        with self._lock:
            if path is None:
                self._by_path.clear()
            else:
                self._by_path.pop(path, None)

    def take(self, path: str) -> Fault | None:
        """The fault for the request at hand, which uses up one of its `times`."""
        with self._lock:
            fault = self._by_path.get(path)
            if fault is None:
                return None
            if fault.times is not None:
                fault.times -= 1
                if fault.times <= 0:
                    del self._by_path[path]
            return fault
