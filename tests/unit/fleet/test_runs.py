"""The record of a run is enough to take it down, and tells when nobody wants it any more."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fleet import runs
from tests.fleet.commands import FleetError
from tests.fleet.runs import HostRecord, Process, Run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    registry = tmp_path / "registry"
    monkeypatch.setattr(runs, "REGISTRY", registry)
    registry.mkdir()
    folder = tmp_path / "run"
    folder.mkdir()
    host = HostRecord("h1", "10.77.0.2", "10.77.0.1", "fleet-abc-h1", "flabc-1")
    return Run("abc", folder, Path("/rootfs"), runs.own_process(), [host])


def ended_process() -> Process:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        process = Process.of(child.pid)
        assert process.alive
    return process


def test_a_record_is_read_back_as_it_was(run: Run) -> None:
    runs.save(run)
    assert runs.load(run.folder) == run
    assert runs.known() == [run]


def test_a_forgotten_run_is_unknown(run: Run) -> None:
    runs.save(run)
    runs.forget(run)
    assert runs.load(run.folder) is None
    assert runs.known() == []


def test_a_run_without_an_owner_is_wanted(run: Run) -> None:
    assert not replace(run, owner=None).abandoned


def test_a_run_is_wanted_while_its_owner_lives(run: Run) -> None:
    assert not run.abandoned
    assert replace(run, owner=ended_process()).abandoned


def test_a_run_whose_folder_is_gone_is_abandoned(run: Run) -> None:
    run.folder.rmdir()
    assert run.abandoned


def test_a_later_process_with_the_same_number_is_another_one() -> None:
    mine = runs.own_process()
    assert mine.alive
    assert not replace(mine, started=mine.started + 1).alive


def test_a_process_that_is_not_there_cannot_be_an_owner() -> None:
    with pytest.raises(FleetError, match="no process"):
        Process.of(ended_process().pid)
