# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What discovery says: a list for the check, the evidence beside it, and what stayed in the dark."""

from __future__ import annotations

import typing as t

from ..redacting import shown
from . import finding


def result(found: t.Sequence[finding.Found], host: finding.Host, notes: t.Sequence[str]) -> t.Dict[str, t.Any]:
    """The module's return values."""
    said = [shown(note) for note in notes]
    entries = [_entry(one, host) for one in found if one.usable and one.url]
    if not found:
        said.append("no vLLM server was found on this host")
    return {
        "servers": entries,
        "found": [_details(one, host) for one in found],
        "incomplete": bool(notes) or any(one.evidence.listeners is None and one.candidate for one in found),
        "notes": said,
    }


def _entry(one: finding.Found, host: finding.Host) -> t.Dict[str, t.Any]:
    """One element of the check's option `servers`: no key that it does not know."""
    entry: t.Dict[str, t.Any] = {"url": one.url, "name": _name(one), "kind": "backend"}
    service = one.service
    # A user's unit can be asked for by that user only; for everybody else it would be "not found".
    if service and service.uid in (None, host.uid):
        entry["unit"] = service.name
        entry["scope"] = service.scope
    return entry


def _name(one: finding.Found) -> str:
    if one.service is None:
        return one.url or "vllm"
    return f"{one.service.name}:{one.port}" if one.serving.multi_port else one.service.name


def _details(one: finding.Found, host: finding.Host) -> t.Dict[str, t.Any]:
    service, candidate, serving = one.service, one.candidate, one.serving
    uid = candidate.process.uid if candidate else None
    model = shown(serving.model) if serving.model else None
    names = [shown(name) for name in serving.served_model_names]
    return {
        "url": one.url,
        "checked": bool(one.usable and one.url),
        "unit": service.name if service else None,
        "scope": service.scope if service else None,
        "unit_file": (service.source or service.fragment or None) if service else None,
        "active_state": service.active_state if service else None,
        "enabled": (service.unit_file_state or None) if service else None,
        "running": one.running,
        "pid": candidate.process.pid if candidate else None,
        "user": host.user_names.get(uid, str(uid)) if uid is not None else None,
        "host": shown(serving.host) if serving.host else None,
        "port": one.port,
        "port_from": one.port_from,
        "listening": one.listening,
        "root_path": shown(serving.root_path) if serving.root_path else None,
        "tls": serving.tls,
        "model": model,
        "served_model_names": names or ([model] if model else []),
        "data_parallel_size": serving.data_parallel_size or 1,
        "api_server_count": serving.api_server_count,
        "interpreter": shown(one.evidence.interpreter) if one.evidence.interpreter else None,
        "api_key": _api_key(one),
        "config_file": shown(serving.config) if serving.config else None,
        "container": _container(one),
        "notes": [shown(note) for note in one.notes + _unread(one)],
    }


def _api_key(one: finding.Found) -> t.Optional[bool]:
    """Whether a key is asked for; None where that cannot be ruled out."""
    if one.serving.api_key or (one.service and "VLLM_API_KEY" in dict(one.service.environment)):
        return True
    if one.evidence.variables is not None:
        return "VLLM_API_KEY" in one.evidence.variables
    return None


def _unread(one: finding.Found) -> t.List[str]:
    notes = []
    if one.candidate and one.evidence.listeners is None:
        notes.append("its sockets could not be read: the port is what is written, not what was seen (needs root)")
    if one.candidate and one.evidence.variables is None and not one.serving.api_key:
        notes.append("its environment could not be read: it may ask for an API key (needs root)")
    if one.serving.tls:
        notes.append("it speaks TLS: its certificate may not be made out for the address in the URL")
    return notes


def _container(one: finding.Found) -> t.Optional[t.Dict[str, t.Any]]:
    if one.container is None:
        ident = one.candidate.home.container if one.candidate else None
        return {"engine": None, "image": None, "name": None, "id": ident} if ident else None
    return {
        "engine": one.container.engine,
        "image": shown(one.container.image),
        "name": shown(one.container.name) if one.container.name else None,
        "id": one.candidate.home.container if one.candidate else None,
    }
