"""Prometheus' own tools for this folder's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.debian import unpacked

MONITORING = Path(__file__).resolve().parents[3] / "extensions" / "monitoring"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "monitoring: needs Prometheus and its companions, as Debian has them")


@pytest.fixture(scope="session")
def promtool() -> str:
    """The program that checks Prometheus' files."""
    return unpacked("prometheus", "promtool")


@pytest.fixture(scope="session")
def amtool() -> str:
    """The program that checks Alertmanager's files."""
    return unpacked("prometheus-alertmanager", "amtool")
