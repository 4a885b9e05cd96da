"""Requests that clients hold open at a server."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
import string
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from . import lab

GENERATE = "/v1/completions"
EMBED = "/v1/embeddings"


@dataclass(frozen=True)
class Work:
    """One request: so many tokens in, so many out."""

    prompt: int = 32
    output: int = 30000
    rank: int | None = None
    path: str = GENERATE
    choices: int = 0
    """So many texts of 200 letters are allowed as the answer: compiling that takes the longer, the more there are."""

    def body(self, seed: int) -> bytes:
        """Its JSON. The prompt is made of random tokens, or the prefix cache would do the work."""
        tokens = random.Random(seed).choices(range(256), k=self.prompt)
        if self.path == EMBED:
            return json.dumps({"model": lab.MODEL, "input": tokens}).encode()
        body = {
            "model": lab.MODEL,
            "prompt": tokens,
            "max_tokens": self.output,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
        }
        if self.choices:
            body["structured_outputs"] = {"choice": [_letters(number) for number in range(self.choices)]}
        return json.dumps(body).encode()


def _letters(number: int) -> str:
    """A text of 200 letters that no other number has."""
    return "".join(random.Random(number).choices(string.ascii_lowercase, k=200))


class Client(threading.Thread):
    """Sends one request after another until it is told to hang up."""

    def __init__(self, server: lab.Place, work: Work, key: str | None = None, repeat: bool = False) -> None:
        super().__init__(daemon=True)
        self._connection = http.client.HTTPConnection(server.address, server.port, timeout=600)
        self._work = work
        self._headers = headers(key, work.rank)
        self._repeat = repeat
        self._left = False
        self.sent = 0
        self.accepted = threading.Event()

    def run(self) -> None:
        """Reads the answers and throws them away; a broken connection is the end."""
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            while not self._left and (self._repeat or not self.sent):
                self.sent += 1
                body = self._work.body(seed=random.randrange(2**32))
                self._connection.request("POST", self._work.path, body, self._headers)
                answer = self._connection.getresponse()
                self.accepted.set()
                while answer.read(65536):
                    pass

    def hang_up(self) -> None:
        """Closes the connection as a client that leaves."""
        self._left = True
        with contextlib.suppress(OSError, AttributeError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self.join(timeout=10)
        self._connection.close()


def headers(key: str | None, rank: int | None) -> dict[str, str]:
    """The headers of a request, with the key and the engine it is meant for."""
    chosen = {"Content-Type": "application/json"}
    if key:
        chosen["Authorization"] = f"Bearer {key}"
    if rank is not None:
        chosen["X-data-parallel-rank"] = str(rank)
    return chosen


@contextlib.contextmanager
def clients(server: lab.Place, *works: Work, key: str | None = None, repeat: bool = False) -> Iterator[list[Client]]:
    """Keeps one client per piece of work at the server, and hangs all of them up at the end."""
    crowd = [Client(server, work, key, repeat) for work in works]
    for client in crowd:
        client.start()
    try:
        yield crowd
    finally:
        for client in crowd:
            client.hang_up()


def lasting(server: lab.Place, seconds: float, growth: float, longest: int) -> int:
    """Finds how long a prompt must be for its prefill to last `seconds` here.

    CPUs differ tenfold, so it is measured: the prompt grows until one is slow enough.
    Raises LabError where the longest prompt that fits is still too fast.
    """
    length = 2000.0
    while length <= longest:
        took = _prefill_seconds(server, int(length))
        if took >= seconds:
            return int(length)
        length *= growth
    raise lab.LabError(f"even a prompt of {longest} tokens is read in less than {seconds:.0f} s; use a larger model")


def _prefill_seconds(server: lab.Place, length: int) -> float:
    """How long one token behind a prompt of that length takes."""
    started = time.monotonic()
    with clients(server, Work(prompt=length, output=1)) as crowd:
        crowd[0].join()
    return time.monotonic() - started
