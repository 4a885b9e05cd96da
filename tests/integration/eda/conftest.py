"""The marker of these tests."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "eda: the rulebook in a real ansible-rulebook")
