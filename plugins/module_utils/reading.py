# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One HTTP exchange, bounded in time and size.

No proxy is taken from the environment, no redirect is followed, no body is decompressed.
Whatever goes wrong comes back as a Failure with one of the words of KINDS; nothing is raised for
what a server does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import http.client
import io
import queue
import socket
import ssl
import threading
import time
import traceback
import typing as t

REQUESTS_IMPORT_ERROR: t.Optional[str] = None
try:
    import requests
    import urllib3
except ImportError:
    REQUESTS_IMPORT_ERROR = traceback.format_exc()

BODY_LIMIT = 32 * 1024 * 1024
"""The largest body that is read, in bytes. A real page of /metrics has 60 kB to 1 MB."""

KINDS = ("refused", "unreachable", "timeout", "reset", "tls", "name", "too_large", "malformed")
"""What may go wrong before there is an answer."""

_CHUNK = 65536
_UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.ENETDOWN)


@dataclasses.dataclass(frozen=True)
class Answer:
    """A complete answer: the status and the whole body."""

    status: int
    body: bytes
    content_type: str = ""


@dataclasses.dataclass(frozen=True)
class Failure:
    """No complete answer. kind is one of KINDS, detail says more in our own words."""

    kind: str
    detail: str


class _TooLarge(Exception):
    pass


class _CutShort(Exception):
    pass


class _Encoded(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """The base URL of one server and how to talk to it.

    url has no trailing slash. api_key, where given, goes along as a bearer token.
    verify is what requests calls so: whether, or with which CA file or folder, certificates are checked.
    """

    url: str
    api_key: t.Optional[str] = dataclasses.field(default=None, repr=False)
    verify: t.Union[bool, str] = True

    def get(self, path: str, timeout: float) -> t.Union[Answer, Failure]:
        """GET url + path; timeout is the deadline of the whole exchange in seconds."""
        return self._bounded("GET", path, timeout, None, {})

    def post(
        self, path: str, body: t.Mapping[str, t.Any], timeout: float, headers: t.Mapping[str, str]
    ) -> t.Union[Answer, Failure]:
        """POST a JSON body to url + path; timeout as in get()."""
        return self._bounded("POST", path, timeout, body, headers)

    def _bounded(
        self, method: str, path: str, timeout: float, body: t.Optional[t.Mapping[str, t.Any]], headers: t.Mapping[str, str]
    ) -> t.Union[Answer, Failure]:
        # Timeouts of sockets start anew with every byte, and a name look-up has none: only a second
        # thread can keep one deadline over all of it. One that comes too late ends by itself.
        box: "queue.Queue[t.Union[Answer, Failure]]" = queue.Queue()
        deadline = time.monotonic() + timeout
        threading.Thread(
            target=lambda: box.put(self._exchange(method, path, deadline, body, headers)), daemon=True
        ).start()
        try:
            return box.get(timeout=timeout)
        except queue.Empty:
            return Failure("timeout", "no complete answer within %g s" % timeout)

    def _exchange(
        self, method: str, path: str, deadline: float, body: t.Optional[t.Mapping[str, t.Any]], headers: t.Mapping[str, str]
    ) -> t.Union[Answer, Failure]:
        sent = {"Accept-Encoding": "identity", "Connection": "close", **headers}
        if self.api_key is not None:
            sent["Authorization"] = "Bearer %s" % self.api_key
        try:
            # An adapter and no session: that would read a redirect's whole body, even where it does not follow it,
            # and ask the environment for proxies and a .netrc.
            with contextlib.closing(requests.adapters.HTTPAdapter()) as adapter:
                if self.verify is False:
                    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
                response = adapter.send(
                    requests.Request(method, self.url + path, json=body, headers=sent).prepare(),
                    stream=True,
                    timeout=max(0.001, deadline - time.monotonic()),
                    verify=self.verify,
                )
                with response:
                    return Answer(
                        response.status_code, _read_body(response, deadline), response.headers.get("Content-Type", "")
                    )
        except Exception as error:  # whatever a hostile server provokes in the layers below is an outcome
            return _failure(error)


def _read_body(response: "requests.Response", deadline: float) -> bytes:
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise _Encoded()
    original = response.raw._original_response  # pylint: disable=protected-access
    if original is not None and original.fp is not None:
        original.fp = io.BufferedReader(_Bounded(original.fp, deadline))
    parts = []
    while True:
        # raw.read() and not iter_content(): the latter reads the length of a chunk without any limit.
        part = response.raw.read(_CHUNK, decode_content=False)
        if not part:
            break
        parts.append(part)
    body = b"".join(parts)
    _refuse_short_body(response, len(body))
    return body


class _Bounded(io.RawIOBase):
    """The rest of an answer as it comes off the connection: so many bytes of it, and none after the deadline.

    http.client believes whatever the server says: at a chunk of the length -1 it reads on, all into one piece, until
    the connection ends, and it skips any number of trailers.
    """

    def __init__(self, stream: t.Any, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline
        self._left = BODY_LIMIT

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: t.Any) -> int:
        size: int = self._stream.readinto1(buffer)
        self._left -= size
        if self._left < 0:
            raise _TooLarge()
        if time.monotonic() > self._deadline:
            raise socket.timeout()
        return size

    def close(self) -> None:
        self._stream.close()
        super().close()


def _refuse_short_body(response: "requests.Response", size: int) -> None:
    announced = response.headers.get("Content-Length", "")
    if announced.isdigit() and "Transfer-Encoding" not in response.headers and size < int(announced):
        raise _CutShort()


def _failure(error: BaseException) -> Failure:
    for cause in _causes(error):
        known = _known_failure(cause)
        if known is not None:
            return known
    if isinstance(error, requests.exceptions.SSLError):  # urllib3 1.26 has an error of its own for a wrong name
        return Failure("tls", "no trusted TLS connection")
    return Failure("malformed", "not an HTTP answer (%s)" % type(error).__name__)


def _known_failure(cause: BaseException) -> t.Optional[Failure]:
    kind_and_detail = next((words for types, words in _WORDS if isinstance(cause, types)), None)
    if kind_and_detail is not None:
        return Failure(*kind_and_detail)
    if isinstance(cause, OSError) and cause.errno in _UNREACHABLE:
        return Failure("unreachable", "no route to the host")
    return None


# The first fitting row wins, so an exception stands above its base class.
_WORDS: t.Tuple[t.Tuple[t.Tuple[t.Type[BaseException], ...], t.Tuple[str, str]], ...] = (
    ((_TooLarge,), ("too_large", "a body of more than %d MiB" % (BODY_LIMIT // 1024 // 1024))),
    ((_CutShort, http.client.IncompleteRead), ("reset", "the connection was closed in the middle of the answer")),
    ((_Encoded,), ("malformed", "an encoded body that was not asked for")),
    ((ssl.SSLCertVerificationError,), ("tls", "the certificate is not valid for this name or not trusted")),
    ((ssl.SSLError,), ("tls", "the TLS handshake failed")),
    ((socket.gaierror, UnicodeError), ("name", "no address is known for it")),
    ((socket.timeout, TimeoutError), ("timeout", "no answer in time")),
    ((ConnectionRefusedError,), ("refused", "connection refused")),
    ((http.client.RemoteDisconnected,), ("reset", "the connection was closed without an answer")),
    ((ConnectionError,), ("reset", "the connection was reset")),
    ((http.client.HTTPException,), ("malformed", "not an HTTP answer")),
)


def _causes(error: BaseException) -> t.Iterator[BaseException]:
    """The error and all errors it was made of: requests and urllib3 keep them in four places."""
    todo, seen = [error], set()
    while todo:
        cause = todo.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        nested = (*cause.args, getattr(cause, "reason", None), cause.__cause__, cause.__context__)
        todo.extend(item for item in nested if isinstance(item, BaseException))
