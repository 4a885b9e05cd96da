"""The shared root file system is built once, whole or not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fleet import rootfs
from tests.fleet.commands import FleetError

# Stands in for the real one: the last argument is the folder to fill.
BUILDER = """#!/bin/sh
echo built >>"{journal}"
for last; do :; done
mkdir "$last"
sleep 0.05
{ending}
"""


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mmdebstrap that makes an empty folder; each of its runs adds a line to this file."""
    return install_builder(tmp_path, monkeypatch, "exit 0")


def install_builder(folder: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> Path:
    journal = folder / "journal"
    program = folder / "bin" / "mmdebstrap"
    program.parent.mkdir()
    program.write_text(BUILDER.format(journal=journal, ending=ending))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return journal


def test_a_root_is_built_only_once(tmp_path: Path, journal: Path) -> None:
    assert rootfs.ensure(tmp_path / "cache") == rootfs.ensure(tmp_path / "cache")
    assert journal.read_text() == "built\n"


def test_two_that_start_at_once_build_one_root(tmp_path: Path, journal: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(rootfs.ensure, [tmp_path / "cache"] * 2)
    assert first == second
    assert first.is_dir()
    assert journal.read_text() == "built\n"


def test_a_failed_build_leaves_no_root_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_builder(tmp_path, monkeypatch, "echo 'no such suite' >&2; exit 25")
    with pytest.raises(FleetError, match="no such suite"):
        rootfs.ensure(tmp_path / "cache")
    assert list((tmp_path / "cache").glob("rootfs-*")) == []


def test_what_an_interrupted_build_left_is_no_root(tmp_path: Path, journal: Path) -> None:
    interrupted = tmp_path / "cache" / f"rootfs-{rootfs.recipe_hash()}.building"
    (interrupted / "etc").mkdir(parents=True)
    assert list(rootfs.ensure(tmp_path / "cache").iterdir()) == []
    assert journal.read_text() == "built\n"


def test_another_recipe_is_another_root(monkeypatch: pytest.MonkeyPatch) -> None:
    before = rootfs.recipe_hash()
    monkeypatch.setattr(rootfs, "PACKAGES", (*rootfs.PACKAGES, "tmux"))
    assert rootfs.recipe_hash() != before


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(FleetError, match="need iproute2, mmdebstrap, openssh-client, systemd-container, util-linux"):
        rootfs.ensure_tools()


def test_an_ordinary_user_is_told_that_root_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(FleetError, match="need root"):
        rootfs.ensure_tools()
