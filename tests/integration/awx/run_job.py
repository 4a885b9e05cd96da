"""Run one job with ansible-runner, as AWX's worker does:  run_job.py ARGUMENTS.json EVENTS.jsonl

Runs in the environment of ansible-runner, which need not be that of the tests. The first ansible-playbook in PATH does the work.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import ansible_runner


def main(arguments: str, events: str) -> int:
    """Run; the events go to a file, a line each, and the exit code is that of ansible-playbook."""
    with Path(events).open("w", encoding="utf-8") as file:

        def keep(event: dict) -> bool:
            file.write(json.dumps(event) + "\n")
            return False

        result = ansible_runner.run(event_handler=keep, **json.loads(Path(arguments).read_text(encoding="utf-8")))
    print(json.dumps({"status": result.status, "rc": result.rc}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
