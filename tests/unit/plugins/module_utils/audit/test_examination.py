"""An audit of a machine that cannot be asked says so; it never finds nothing in silence."""

from __future__ import annotations

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import bounded
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit import examination
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit.examination import Asked


@pytest.fixture
def deaf(monkeypatch):
    """No command answers, and no file can be read."""
    monkeypatch.setattr(bounded, "run", lambda argv, **_more: bounded.Unreadable(argv[0], "no answer in time"))
    monkeypatch.setattr(bounded, "read_file", lambda path, **_more: bounded.Unreadable(path, "not permitted"))
    monkeypatch.setattr(bounded, "list_directory", lambda path, **_more: bounded.Unreadable(path, "not permitted"))


@pytest.mark.usefixtures("deaf")
def test_nothing_readable():
    look = examination.Examination(30, 600)
    found = look.unit(Asked("vllm.service"))
    assert found["incomplete"] is True
    assert found["restart_count"] is None
    assert "its restarts are not known (no answer in time)" in found["summary"]
    assert found["summary"].endswith("not everything could be read")
    assert "the units of the system could not be read: no answer in time" in look.notes
    assert "/etc/crontab: not permitted" in look.notes
    assert "/var/spool/cron/crontabs: not permitted" in look.notes


def test_an_unknown_user_is_an_error():
    with pytest.raises(ValueError, match="knows no user"):
        examination.now_asked([{"unit": "a", "scope": "user", "user": "nobody-of-this-name"}])


def test_units_of_the_option():
    asked, notes = examination.now_asked(
        [{"unit": "a.service", "scope": "system", "port": 8001}, {"unit": "b.service", "scope": "user", "user": "root"}]
    )
    assert asked == [Asked("a.service", None, (8001,)), Asked("b.service", 0, ())]
    assert notes == []
