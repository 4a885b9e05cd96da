"""A browser for this folder's tests."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest

from tests.integration.debian import installed
from tests.integration.report.browser import Browser

PICTURES = Path(__file__).resolve().parents[3] / ".cache" / "test-results" / "page"
"""Where the screenshots are left, to be looked at."""


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "chromium: renders in a real Chromium")


@pytest.fixture(scope="session")
def browser() -> t.Iterator[Browser]:
    """One Chromium for all tests."""
    started = Browser(installed("chromium", "chromium", "fonts-dejavu-core"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def pictures() -> Path:
    """The folder of the screenshots."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    return PICTURES
