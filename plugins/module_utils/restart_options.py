# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the parameters of vllm_unit_restart to an order, and what its diff shows."""

from __future__ import annotations

import typing as t

from . import options, reading, vllm_api
from .options import OptionError
from .restart import pause
from .restart.budget import Budget
from .restart.restarting import Order, Outcome
from .verdicts import RESTARTABLE

ARGUMENT_SPEC: t.Dict[str, t.Any] = {
    "server": {
        "type": "dict",
        "required": True,
        "options": {**options.SERVER_SPEC, "unit": {"type": "str", "required": True}},
    },
    "verdict": {"type": "str", "choices": list(RESTARTABLE), "default": "stuck"},
    "invocation_id": {"type": "str", "required": True},
    "last_sample": {"type": "dict"},
    "min_interval": {"type": "float", "default": 1800.0},
    "max_starts": {"type": "int", "default": 2},
    "window": {"type": "float", "default": 86400.0},
    **{name: options.ARGUMENT_SPEC[name] for name in ("timeout", "validate_certs", "ca_path")},
}


def order(params: t.Mapping[str, t.Any]) -> Order:
    """The order that the parameters make. Raises OptionError."""
    server = params["server"]
    if server["kind"] != "backend":
        raise OptionError("server.kind", server["kind"], "only a backend is restarted, never a proxy")
    options.check_connection(params)
    for name, least in (("min_interval", 0.0), ("window", 60.0)):
        options.check_seconds(name, params[name], least)
    if params["max_starts"] < 1:
        raise OptionError("max_starts", params["max_starts"], "it must be a number of starts, 1 or more")
    core = vllm_api.Server(
        endpoint=reading.Endpoint(
            options.base_url("server.url", server["url"]),
            options.api_key("server.api_key", server["api_key"]),
            options.verify(params),
        ),
        timeout=params["timeout"],
        unit=options.unit_name("server.unit", server["unit"]),
        scope=server["scope"],
        model=server["model"],
    )
    return Order(
        server=core,
        verdict=params["verdict"],
        invocation_id=params["invocation_id"],
        last_sample=_sample(params["last_sample"]),
        budget=Budget(params["min_interval"], params["max_starts"], params["window"]),
        state_dir=pause.user_state() if server["scope"] == "user" else pause.SYSTEM_STATE,
    )


def _sample(said: t.Optional[t.Mapping[str, t.Any]]) -> t.Optional[t.Mapping[str, t.Any]]:
    if said and not _is_sample(said):
        right = "it must be what vllm_health_info returned as last_sample, whole"
        raise OptionError("last_sample", sorted(map(str, said)), right)
    return said


def _is_sample(said: t.Mapping[str, t.Any]) -> bool:
    """Whether all is there that a last look compares."""
    engines = said.get("engines")
    if "process_start_time" not in said or not isinstance(engines, dict):
        return False
    frozen = said.get("frozen_engines") or []
    whole = [
        isinstance(one, dict) and isinstance(one.get("counters"), dict) and {"running", "kv_cache_usage"} <= set(one)
        for one in engines.values()
    ]
    return all(whole) and isinstance(frozen, list) and all(label in engines for label in frozen)


def diff(what: Order, outcome: Outcome) -> t.Dict[str, str]:
    """The change as Ansible's diff mode shows it. In a dry run the new invocation is not known."""
    return {
        "before": "%s: invocation %s, %s\n" % (what.unit, what.invocation_id, what.verdict),
        "after": "%s: invocation %s, restarted\n" % (what.unit, outcome.invocation_id or "(a new one)"),
    }
