# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts to a Pushgateway, one group for each host."""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import ssl
import typing as t
import urllib.error
import urllib.parse
import urllib.request

from . import metrics

try:
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import push_to_gateway, pushadd_to_gateway
except ImportError:
    pass  # metrics.PROMETHEUS_IMPORT_ERROR tells

JOB = "vllm_fleetcheck"
RESTARTS_JOB = "vllm_fleetcheck_restarts"
_SHOWN_BYTES = 200

Headers = t.Sequence[t.Tuple[str, str]]


class WrongOption(ValueError):
    """An option has a value that cannot be right."""


class NotPushed(RuntimeError):
    """The Pushgateway did not take a group; the message says why."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Credentials go where the operator said, and nowhere else."""

    def redirect_request(self, *arguments: t.Any) -> None:
        return None


class Gateway:
    """A Pushgateway. timeout: seconds for one push."""

    def __init__(
        self,
        url: str,
        username: t.Optional[str] = None,
        password: t.Optional[str] = None,
        timeout: float = 10.0,
        validate_certs: bool = True,
        ca_path: t.Optional[str] = None,
    ) -> None:
        self._url = _checked(url)
        self._timeout = timeout
        self._authorization = None
        if username is not None:
            credentials = "%s:%s" % (username, password or "")
            self._authorization = "Basic " + base64.b64encode(credentials.encode("utf-8")).decode("ascii")
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=_tls(validate_certs, ca_path)),
            _NoRedirect(),
        )

    def push(self, host: str, measures: t.Sequence[metrics.Measure], checked_at: float) -> None:
        """Replace what is known of a host, and add the restarts that were made. Raises NotPushed."""
        self._send(push_to_gateway, JOB, metrics.of_check(measures, checked_at), {"instance": host})
        for (server, result), when in metrics.restarts_of(measures, checked_at).items():
            registry = metrics.of_restarts({(server, result): when}, CollectorRegistry(), by_server=False)
            self._send(pushadd_to_gateway, RESTARTS_JOB, registry, {"instance": host, "server": server})

    def _send(self, how: t.Callable[..., None], job: str, registry: "CollectorRegistry", group: t.Mapping[str, str]) -> None:
        try:
            how(self._url, job, registry, grouping_key=group, timeout=self._timeout, handler=self._handler)
        except urllib.error.HTTPError as error:
            raise NotPushed("HTTP %d %s" % (error.code, _shown(error))) from error
        except (OSError, http.client.HTTPException) as error:
            raise NotPushed(str(getattr(error, "reason", None) or error)) from error

    def _handler(self, url: str, method: str, timeout: t.Optional[float], headers: Headers, data: bytes) -> t.Callable[[], None]:
        def send() -> None:
            request = urllib.request.Request(url, data=data, method=method, headers=dict(headers))
            if self._authorization:
                request.add_unredirected_header("Authorization", self._authorization)
            self._opener.open(request, timeout=timeout).close()

        return send


def _checked(url: str) -> str:
    try:
        parts = urllib.parse.urlsplit(url)
        name, _port = (parts.hostname or "").encode("idna"), parts.port
    except ValueError:
        raise _no_address(url) from None
    if parts.username is not None or parts.password is not None:
        raise WrongOption("url must not hold a user or password; use username and password")
    if parts.scheme not in ("http", "https") or not name or parts.query or parts.fragment:
        raise _no_address(url)
    return url


def _no_address(url: str) -> WrongOption:
    shown = "one with a user or password" if "@" in url else "'%s'" % url
    return WrongOption("url is %s: give the address of a Pushgateway, such as http://pushgateway:9091" % shown)


def _tls(validate_certs: bool, ca_path: t.Optional[str]) -> ssl.SSLContext:
    try:
        is_folder = ca_path is not None and os.path.isdir(ca_path)
        context = ssl.create_default_context(cafile=None if is_folder else ca_path, capath=ca_path if is_folder else None)
    except OSError as error:
        raise WrongOption("ca_path is '%s', which cannot be used: %s" % (ca_path, error)) from error
    if not validate_certs:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _shown(error: urllib.error.HTTPError) -> str:
    body = b""
    with contextlib.suppress(OSError, http.client.HTTPException):
        body = error.read(_SHOWN_BYTES)
    return " ".join(body.decode("utf-8", "replace").split()) or str(error.reason)
