"""Reports to be shown."""

AT = "2026-11-29T22:00:00Z"


def row(verdict="busy", host="gpu-01", name="vllm.service", **more):
    """A server as a report has it."""
    healthy = {"busy": True, "idle": True, "serving": True, "stuck": False, "dead": False}.get(verdict)
    reason = {"busy": "progress", "idle": "answered", "stuck": "no_progress", "dead": "refused"}.get(verdict, "")
    return {
        "host": host,
        "name": name,
        "url": "http://127.0.0.1:8000",
        "unit": name,
        "kind": "backend",
        "verdict": verdict,
        "reason": reason,
        "healthy": healthy,
        "message": "2 running, 0 waiting",
        "engines": [engine()],
        "reads": 2,
        "probes": 0,
        "elapsed": 0.27,
        "vllm_version": "0.32.0",
        "models": ["llama-70b"],
        "systemd": None,
        **more,
    }


def engine(label="0", **more):
    """An engine as a report has it."""
    numbers = {"running": 2.0, "waiting": 0.0, "kv_cache_usage": 0.5, "tokens_per_second": 214.0, "silent_for": 0.0}
    return {"engine": label, **numbers, **more}


def unreachable(host="gpu-01"):
    """A host that could not be reached."""
    return {
        "host": host, "name": "-", "verdict": "unknown", "reason": "unreachable", "healthy": None,
        "message": "No route to host", "engines": [],
    }


def fleet(*rows, at=AT):
    """A report."""
    return {"schema": 1, "checked_at": at, "healthy": True, "counts": {}, "hosts": {}, "servers": list(rows)}


def run(minute, *rows):
    """An earlier report, so many minutes past nine, as the lookup returns it."""
    servers = [{key: one[key] for key in ("host", "name", "verdict")} for one in rows]
    return {"checked_at": f"2026-11-29T21:{minute:02d}:00Z", "servers": servers}
