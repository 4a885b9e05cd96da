"""What all tests on real hosts share: their marker, why they are left out, and how they are played side by side."""

from __future__ import annotations

import os

import pytest

from tests.integration.restart.side_by_side import Players


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "systemd: boots real systemd hosts in containers (needs root)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests, with the reason, where containers cannot be made."""
    if os.geteuid() != 0:
        for item in items:
            if item.get_closest_marker("systemd"):
                item.add_marker(pytest.mark.skip(reason="test hosts need root"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Play the tests that have a stage side by side; here each is only waited for."""
    players = pyfuncitem.funcargs.get("stage")
    if not isinstance(players, Players):
        return None
    players.outcome_of(pyfuncitem)
    return True
