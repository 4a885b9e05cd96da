#!/usr/bin/env python3
"""Keeps requests in flight at a vLLM server and writes down what became of each one, as JSON lines.

Runs inside a test host, as ``vllm-load.service``. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
import urllib.error
import urllib.request

# Far longer than any test: a request at a frozen server stays open, as an impatient user's would not.
TIMEOUT_SECONDS = 3600
# After a failure, so that a server that is down is not asked in a tight loop.
PAUSE_SECONDS = 0.2


def ask(url: str, tokens: int) -> str:
    """Send one request and wait for its end; "ok", or what went wrong."""
    body = json.dumps({"model": "simulated", "prompt": "Count.", "max_tokens": tokens}).encode()
    request = urllib.request.Request(f"{url}/v1/completions", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            complete = json.load(answer)["choices"][0]["finish_reason"] is not None
        return "ok" if complete else "cut off"
    except (OSError, ValueError, KeyError, IndexError) as error:
        return f"{type(error).__name__}: {error}"


def keep_asking(options: argparse.Namespace, number: int) -> None:
    """One request after another, without end. Lengths differ, so that not all end at the same moment."""
    while True:
        started = time.time()
        outcome = ask(options.url, options.tokens + 10 * number)
        line = json.dumps({"start": started, "end": time.time(), "outcome": outcome})
        with open(options.log, "a", encoding="utf-8") as log:
            log.write(line + "\n")
        if outcome != "ok":
            time.sleep(PAUSE_SECONDS)


def main() -> None:
    """Ask until ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--requests", type=int, default=4, help="kept in flight at the same time")
    parser.add_argument("--tokens", type=int, default=100, help="asked for by the shortest request")
    parser.add_argument("--log", required=True, help="file that the outcomes are added to")
    options = parser.parse_args()
    askers = [threading.Thread(target=keep_asking, args=(options, number)) for number in range(options.requests)]
    for asker in askers:
        asker.start()


if __name__ == "__main__":
    main()
