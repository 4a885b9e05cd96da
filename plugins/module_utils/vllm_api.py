# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""vLLM's HTTP interface: which paths are asked, and what their answers mean.

/metrics, /health and /version need no key; /v1/* may. /is_paused and /is_sleeping are there in development mode only,
and without that mode nobody can pause a server over HTTP or put it to sleep.
"""

from __future__ import annotations

import dataclasses
import json
import time
import typing as t

from . import exposition, systemd
from .looks import Look
from .reading import Answer, Endpoint, Failure

Monotonic = t.Callable[[], float]

# A probe is the cheapest request each kind of model takes. The first path that exists is used.
_PROBES: t.Tuple[t.Tuple[str, t.Mapping[str, t.Any]], ...] = (
    ("/v1/completions", {"prompt": "1", "max_tokens": 1, "temperature": 0}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "1"}], "max_tokens": 1, "temperature": 0}),
    ("/v1/embeddings", {"input": "1"}),
    ("/pooling", {"input": "1"}),
)
_RANK_HEADER = "X-data-parallel-rank"
_NO_SUCH_PATH = (404, 405, 501)
_NOT_TAKEN = (400, 415, 422)  # the front end refuses this request for good: nothing is learnt of the engine


@dataclasses.dataclass(frozen=True)
class Server:
    """One server to be checked: where it is, how to talk to it, and its systemd unit where known.

    timeout: deadline of one read in seconds. model: the name to probe, None for the first one served.
    """

    endpoint: Endpoint
    timeout: float = 10.0
    unit: t.Optional[str] = None
    scope: str = "system"
    model: t.Optional[str] = None


def look_at_backend(server: Server, front: bool, earlier: int, monotonic: Monotonic = time.monotonic) -> Look:
    """Read /metrics and, with front, what the front end and systemd say.

    earlier: how many looks came before. The first one asks for the unit, the second one for the version: between the
    first two reads nothing else is asked, or two servers that take turns behind one address would look like one.
    """
    started = monotonic()
    read = server.endpoint.get("/metrics", server.timeout)
    look = Look(started=started, finished=monotonic(), front=front, **_metrics(read))
    if earlier == 0 or front:
        look = dataclasses.replace(look, **_unit(server))
    if earlier == 1 and look.page is not None:
        look = dataclasses.replace(look, version=_version(server))
    if not front or look.failure in _NOBODY_THERE:
        return look
    look = dataclasses.replace(look, **_front_end(server))
    return dataclasses.replace(look, sleeping=_flag(server, "is_sleeping")) if _hides_sleep(look) else look


# Whoever did not answer /metrics at all is not asked three questions more.
_NOBODY_THERE = ("refused", "unreachable", "timeout", "reset", "tls", "name", "malformed")


def look_at_proxy(server: Server, monotonic: Monotonic = time.monotonic) -> Look:
    """Ask a proxy for its models, and nothing else."""
    started = monotonic()
    read = server.endpoint.get("/v1/models", server.timeout)
    look = Look(started=started, finished=monotonic(), front=True, **_unit(server))
    if isinstance(read, Failure):
        return dataclasses.replace(look, failure=read.kind, detail=read.detail)
    names = _model_list(read)
    if names is None:
        failed: t.Dict[str, t.Any] = _status_failure(read.status) or {"failure": "malformed", "detail": "no list of models"}
        return dataclasses.replace(look, **failed)
    return dataclasses.replace(look, models=names[0])


def send_probe(
    server: Server, model: t.Optional[str], rank: t.Optional[str], timeout: float
) -> t.Tuple[str, str]:
    """Send one short request and wait for it: an outcome of PROBE_OUTCOMES and its detail.

    rank: the engine to name where there are several. timeout: seconds, longer than the probe is awaited.
    """
    headers = {} if rank is None else {_RANK_HEADER: rank}
    name = {} if model is None else {"model": model}
    outcome = ("absent", "HTTP 404")
    for path, body in _PROBES:
        answer = server.endpoint.post(path, {**name, **body}, timeout, headers)
        outcome = _probe_outcome(answer)
        if not _is_wrong_path(answer):
            break
    return outcome


def _probe_outcome(answer: t.Union[Answer, Failure]) -> t.Tuple[str, str]:
    if isinstance(answer, Failure):
        return ("unanswered" if answer.kind == "timeout" else "lost"), answer.detail
    detail = "HTTP %d" % answer.status
    code = _error_code(answer)
    if code is not None:
        return "absent", "%s with the error %d" % (detail, code)
    if answer.status == 200:
        return "answered", detail
    return ("absent" if answer.status in _NO_SUCH_PATH + _NOT_TAKEN else "rejected"), detail


def _is_wrong_path(answer: t.Union[Answer, Failure]) -> bool:
    """Whether another path may be the one that this server takes a probe on."""
    return isinstance(answer, Answer) and (answer.status in _NO_SUCH_PATH or _error_code(answer) is not None)


def _error_code(answer: Answer) -> t.Optional[int]:
    """The code of an error that is sent with the status 200; None where it is none.

    Older releases say so where a path does not fit the model (/v1/completions of an embedding model): the front end
    speaks there, not the engine. See vllm-project/vllm issue 16831.
    """
    said = _json(answer)
    if not isinstance(said, dict):
        return None
    error = said if said.get("object") == "error" else said.get("error")
    if not isinstance(error, dict):
        return None
    code = error.get("code")
    return code if isinstance(code, int) else 400


def _metrics(read: t.Union[Answer, Failure]) -> t.Dict[str, t.Any]:
    if isinstance(read, Failure):
        return {"failure": read.kind, "detail": read.detail}
    failed = _status_failure(read.status)
    if failed is not None:
        return failed
    if "html" in read.content_type.lower():
        return {"failure": "no_series", "detail": "/metrics is a web page"}
    try:
        page = exposition.parse(read.body)
    except exposition.Unparseable as error:
        return {"failure": "unparseable", "detail": str(error)}
    return {"page": page, "detail": "" if page.is_vllm else "/metrics has no vllm: series"}


def _status_failure(status: int) -> t.Optional[t.Dict[str, str]]:
    if status == 200:
        return None
    if 300 <= status < 400:
        kind = "redirected"
    else:
        kind = {401: "unauthorized", 403: "unauthorized", 404: "absent"}.get(status, "error")
    return {"failure": kind, "detail": "HTTP %d" % status}


def _unit(server: Server) -> t.Dict[str, t.Any]:
    if server.unit is None:
        return {}
    try:
        return {"unit": systemd.show(server.unit, server.scope)}
    except systemd.SystemctlError as error:
        return {"unit_error": str(error)}


def _front_end(server: Server) -> t.Dict[str, t.Any]:
    health = server.endpoint.get("/health", server.timeout)
    models = server.endpoint.get("/v1/models", server.timeout)
    found: t.Dict[str, t.Any] = {
        "health": health.status if isinstance(health, Answer) else None,
        "models_status": models.status if isinstance(models, Answer) else None,
        "paused": _flag(server, "is_paused"),
    }
    names = _model_list(models)
    if names is not None:
        found["models"], found["models_by_vllm"] = names
    return found


def _hides_sleep(look: Look) -> bool:
    """Whether the metrics do not show who sleeps: releases before 0.12 have no engine_sleep_state.

    The others are not asked, as the answer to /is_sleeping comes from the engine: a frozen one takes all of the time-out.
    """
    return look.page is not None and look.page.is_vllm and all(one.asleep is None for one in look.page.engines.values())


def _flag(server: Server, name: str) -> t.Optional[bool]:
    """What the endpoint of this name says under this name; None where it does not say."""
    said = _json(server.endpoint.get("/" + name, server.timeout))
    return said.get(name) is True if isinstance(said, dict) else None


def _version(server: Server) -> t.Optional[str]:
    said = _json(server.endpoint.get("/version", server.timeout))
    version = said.get("version") if isinstance(said, dict) else None
    return version[:100] if isinstance(version, str) and version.isprintable() else None


def _model_list(read: t.Union[Answer, Failure]) -> t.Optional[t.Tuple[t.Tuple[str, ...], bool]]:
    """The names of the base models (adapters have a parent), and whether vLLM says that it owns them."""
    said = _json(read)
    entries = said.get("data") if isinstance(said, dict) else None
    if not isinstance(entries, list):
        return None
    base = [entry for entry in entries if isinstance(entry, dict) and not entry.get("parent")]
    names = tuple(entry["id"] for entry in base if _is_name(entry.get("id")))[:20]
    return names, any(entry.get("owned_by") == "vllm" for entry in base)


def _is_name(said: t.Any) -> bool:
    """Whether it is text that can be written down: JSON may hold half a character, which Ansible takes from no module.

    Not cut if it is long: a probe must name the model in full.
    """
    try:
        return isinstance(said, str) and 0 < len(said.encode("utf-8")) <= exposition.LONGEST_LINE
    except UnicodeEncodeError:
        return False


def _json(read: t.Union[Answer, Failure]) -> t.Any:
    if isinstance(read, Failure) or read.status != 200:
        return None
    try:
        return json.loads(read.body.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
