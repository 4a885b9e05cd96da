"""Let promtool say what it thinks of rules and of what they see."""

from __future__ import annotations

import json
import os
import subprocess
import typing as t
from pathlib import Path

SECONDS = 300

# Most of what promtool works at is memory that it gives back between the rules; it is not kept for long here.
ENVIRONMENT = {**os.environ, "GOGC": "800"}


def run(*command: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command with all that it said."""
    return subprocess.run(
        [str(word) for word in command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=SECONDS, check=False, env=ENVIRONMENT,
    )  # fmt: skip


def rule_tests(file: Path, rules: Path, tests: t.Sequence[t.Mapping[str, t.Any]], interval: str = "15s") -> Path:
    """A file of tests for promtool; JSON is YAML."""
    file.write_text(json.dumps({"rule_files": [str(rules)], "evaluation_interval": interval, "tests": tests}))
    return file
