"""Earlier reports are read from a folder, and what is none is said to be none."""

import errno
import json
import os
import pathlib

import pytest
from ansible_collections.fleetcheck.vllm.plugins.plugin_utils import earlier

ROW = {"host": "gpu-01", "name": "vllm.service", "verdict": "busy", "message": "x"}


def write(folder, name, **data):
    path = folder / name
    path.write_text(json.dumps({"schema": 1, "checked_at": "2026-11-29T22:00:00Z", "servers": [ROW], **data}))
    return path


def test_of_a_report_only_its_verdicts_are_kept(tmp_path):
    write(tmp_path, "a.json")
    assert earlier.earlier_reports(tmp_path) == {
        "reports": [{"checked_at": "2026-11-29T22:00:00Z", "servers": [{"host": "gpu-01", "name": "vllm.service", "verdict": "busy"}]}],
        "left_out": [],
    }


def test_the_verdict_after_a_restart_is_the_one_that_counts(tmp_path):
    write(tmp_path, "a.json", servers=[{**ROW, "verdict": "stuck", "verdict_after": "idle"}])
    assert earlier.earlier_reports(tmp_path)["reports"][0]["servers"][0]["verdict"] == "idle"


def test_a_folder_that_does_not_exist_holds_none(tmp_path):
    assert earlier.earlier_reports(tmp_path / "none") == {"reports": [], "left_out": []}


def test_only_the_newest_files_are_read(tmp_path):
    for number in range(earlier.NEWEST + 5):
        os.utime(write(tmp_path, f"{number}.json", checked_at=str(number)), (number, number))
    read = [report["checked_at"] for report in earlier.earlier_reports(tmp_path)["reports"]]
    assert read == [str(number) for number in range(5, earlier.NEWEST + 5)]


def test_other_files_folders_and_links_are_not_looked_at(tmp_path):
    (tmp_path / "page.html").write_text("x")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "link.json").symlink_to("/etc/passwd")
    assert earlier.earlier_reports(tmp_path) == {"reports": [], "left_out": []}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("\xff", "it is no JSON"),
        ("[]", "it is no report of a fleet"),
        ("{}", "it is no report of a fleet"),
        ('{"schema": 2}', "its schema is 2, not 1"),
        ('{"schema": "<b>"}', "its schema is '<b>', not 1"),
        ('{"schema": 1}', "it lacks checked_at or servers"),
        ('{"schema": 1, "checked_at": "x", "servers": [7]}', "one of its servers is no server"),
        ('{"schema": 1, "checked_at": "x", "servers": [{}]}', "one of its servers has no host, name or verdict"),
    ],
)
def test_a_file_that_is_no_report_is_left_out_with_the_reason(tmp_path, content, why):
    (tmp_path / "a.json").write_bytes(content.encode("latin-1"))
    assert earlier.earlier_reports(tmp_path) == {"reports": [], "left_out": [{"file": "a.json", "why": why}]}


def test_a_file_that_is_too_large_is_left_out(tmp_path):
    (tmp_path / "a.json").write_text(" " * (earlier.MOST_BYTES + 1))
    assert earlier.earlier_reports(tmp_path)["left_out"] == [{"file": "a.json", "why": "it is larger than 8 MiB"}]


def test_a_file_that_may_not_be_read_is_left_out(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    write(tmp_path, "a.json")
    monkeypatch.setattr(pathlib.Path, "open", refuse)
    assert earlier.earlier_reports(tmp_path)["left_out"] == [{"file": "a.json", "why": "it cannot be read: Permission denied"}]
