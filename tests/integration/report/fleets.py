"""Fleets to look at: a bad night, a quiet one, and one whose servers were named by an enemy."""

from __future__ import annotations

import typing as t

AT = "2026-11-29T22:00:00Z"
CHAT = "vllm@chat.service"
UNIT = {"active_state": "active", "sub_state": "running", "restarts": 0, "started_at": "2026-11-29T08:12:44Z"}
EVIDENCE = "/var/lib/fleetcheck/evidence/vllm@chat.service/2026-11-29T21-57-01Z"
HEALTHY = {"busy": True, "idle": True, "serving": True, "stuck": False, "dead": False}

HOSTILE = (
    "<script>window.ran=1;document.title='ran'</script>",
    "<img src=x onerror=window.ran=1>",
    '"><svg onload=window.ran=1>',
    "</style></title><style>*{display:none}</style>",
    "<iframe srcdoc='<script>parent.ran=1</script>'>",
    "{{ lookup('ansible.builtin.pipe', 'id') }}",
    "a-name-without-any-place-to-break-it-" * 3,
    "W" * 100,
)

Row = t.Dict[str, t.Any]


def engine(label: str, running: float, waiting: float, usage: float, rate: float, silent: float = 0.0) -> Row:
    """One engine of a report."""
    return {
        "engine": label, "running": running, "waiting": waiting, "kv_cache_usage": usage, "tokens_per_second": rate,
        "silent_for": silent,
    }


def row(host: str, name: str, verdict: str, reason: str, message: str, engines: t.Sequence[Row] = (), **more: t.Any) -> Row:
    """One server of a report."""
    return {
        "host": host, "name": name, "url": "http://127.0.0.1:8000", "unit": None, "kind": "backend", "verdict": verdict,
        "reason": reason, "healthy": HEALTHY.get(verdict), "message": message, "engines": list(engines), "reads": 2,
        "probes": 0, "elapsed": 0.27, "vllm_version": "0.32.0", "models": ["llama-3.3-70b-instruct"], "systemd": None, **more,
    }


def working(number: int) -> Row:
    """A server with something to do, each another amount."""
    engines = [
        engine(str(rank), (number * 7 + rank) % 13, number % 3 * 4, (number * 37 + rank * 11) % 97 / 100, 100 + number)
        for rank in range(2 if number % 8 == 5 else 1)
    ]
    message = "9 running, 8 waiting, 107 tokens in 0.5 s (214 tokens/s); no request was sent"
    return row(f"gpu-{number}", CHAT, "busy", "progress", message, engines)


def report(*rows: Row) -> Row:
    """A report of these servers."""
    return {"schema": 1, "checked_at": AT, "healthy": False, "counts": {}, "hosts": {}, "servers": list(rows)}


def quiet_night() -> Row:
    """A fleet in which all is well."""
    return report(
        *(working(number) for number in range(12, 30)),
        row("gpu-30", "vllm@pool.service", "idle", "answered", "0 running, 0 waiting; a one-token request was answered in 0.04 s",
            [engine("0", 0.0, 0.0, 0.0, 0.0)]),
        row("lb-1", "https://llm.example.com", "serving", "models_listed",
            "it lists 3 models; a proxy is asked for nothing else"),
    )


def bad_night() -> Row:
    """A fleet in which something of everything is the matter."""
    return report(
        row("gpu-07", CHAT, "stuck", "no_progress",
            "12 running, 37 waiting, nothing moved in 14 reads over 121 s, and a one-token request was not answered for 61 s",
            [engine("0", 12.0, 37.0, 0.93, 0.0, 121.0)], unit=CHAT, systemd=UNIT, reads=14, probes=1, elapsed=121.4,
            action="quarantined", evidence=EVIDENCE,
            action_message="it was restarted 2 times in the last 24 hours, and that did not help: a person must look"),
        row("gpu-03", CHAT, "dead", "unit_failed", "vllm@chat.service is failed (failed), restarted 5 times by systemd",
            unit=CHAT, systemd={**UNIT, "active_state": "failed", "sub_state": "failed", "restarts": 5}, models=[]),
        {"host": "gpu-11", "name": "-", "verdict": "unknown", "reason": "unreachable", "healthy": None, "engines": [],
         "message": "Failed to connect to the host via ssh: ssh: connect to host gpu-11 port 22: No route to host"},
        row("gpu-09", CHAT, "starting", "not_listening_yet",
            "vllm@chat.service is active, but does not answer yet (refused; startup grace 900 s)", unit=CHAT, systemd=UNIT),
        row("gpu-02", CHAT, "stuck", "no_answer",
            "0 running, 0 waiting, nothing moved in 14 reads over 121 s, and a one-token request was not answered for 121 s",
            [engine("0", 0.0, 0.0, 0.21, 0.0)], unit=CHAT, systemd=UNIT, action="restarted", verdict_before="stuck",
            verdict_after="idle", seconds_down=94.2, evidence=EVIDENCE, action_message="it answered 81 s after its start"),
        *quiet_night()["servers"],
    )  # fmt: skip


def earlier() -> Row:
    """The 29 runs before, as the lookup returns them."""
    return {
        "reports": [_earlier_run(number) for number in range(29)],
        "left_out": [{"file": "vllm-2025.json", "why": "its schema is 0, not 1"}],
    }


def _earlier_run(number: int) -> Row:
    hour, minute = divmod(19 * 60 + 35 + number * 5, 60)
    verdicts = {
        "gpu-07": "unknown" if number == 9 else "busy" if number < 25 else "stuck",
        "gpu-03": "busy" if number < 28 else "dead",
        "gpu-02": "idle" if number < 27 else "stuck",
    }
    rows = [
        {"host": one["host"], "name": one["name"], "verdict": verdicts.get(one["host"], one["verdict"])}
        for one in bad_night()["servers"]
        if one["host"] != "gpu-11"
    ]
    rows.append({"host": "gpu-11", **({"name": CHAT, "verdict": "busy"} if number < 20 else {"name": "-", "verdict": "unknown"})})
    return {"checked_at": f"2026-11-29T{hour:02d}:{minute:02d}:00Z", "servers": rows}


def hostile() -> Row:
    """A fleet in which every text is an attack."""
    return report(
        *(
            row(text, text, verdict, text, text, [engine(text, 1e12, 2.0, 7.0, 1e9, 121.0), engine("1", 0.0, 0.0, 0.5, 0.0)],
                unit=text, url=text, models=[text], action=text, action_message=text, evidence=text,
                systemd={**UNIT, "active_state": text})
            for text in HOSTILE
            for verdict in ("stuck", "busy")
        )
    )  # fmt: skip
