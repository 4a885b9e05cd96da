"""Test hosts for this folder's tests."""

from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "systemd: boots real systemd hosts in containers (needs root)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests, with the reason, where containers cannot be made."""
    if os.geteuid() != 0:
        for item in items:
            if item.get_closest_marker("systemd"):
                item.add_marker(pytest.mark.skip(reason="test hosts need root"))
