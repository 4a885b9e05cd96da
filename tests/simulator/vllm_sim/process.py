"""The process around a server: its port, its end, and its restart in place."""

from __future__ import annotations

import os
import threading
from typing import Any

from .listener import Listener
from .server import Server


class Process:
    """Ends the process for good, or lets the server look like a new one."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.listener: Listener | None = None
        self.ends_with_next_request = False

    def exit(self, code: int = 0) -> None:
        """End now.  Open requests go into the log as failed; threads are not waited for."""
        self.server.counts.fail_open_requests()
        os._exit(code)

    def exit_later(self, seconds: float, code: int = 0) -> None:
        """End in a while."""
        timer = threading.Timer(seconds, self.exit, (code,))
        timer.daemon = True
        timer.start()

    def restart(self, down: float = 0.0, keep: Any = None) -> None:
        """Be a new process after `down` seconds with the port shut.  `keep` is the one connection not cut."""
        self.server.restart()
        if self.listener is None:
            return
        if down <= 0:
            self.listener.cut_connections(keep)
            return
        self.listener.close(keep)
        self.listener.hold()
        timer = threading.Timer(down, self.listener.listen)
        timer.daemon = True
        timer.start()
