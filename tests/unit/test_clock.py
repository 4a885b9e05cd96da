"""Times of Ansible carry no zone: timestamp() takes each for a local one."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACES = [path for folder in ("roles", "playbooks", "extensions") for path in (ROOT / folder).rglob("*.yml")]


@pytest.mark.parametrize("path", [path for path in PLACES if "timestamp()" in path.read_text(encoding="utf-8")], ids=str)
def test_unix_seconds_are_taken_from_a_local_time(path):
    text = path.read_text(encoding="utf-8")
    assert text.count(".timestamp()") == text.count("now().timestamp()")
