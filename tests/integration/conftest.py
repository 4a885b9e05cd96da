"""What all tests on real hosts share: their marker, why they are left out, and how they are played side by side.

With pytest-xdist (`-n 2 --dist loadscope --no-loadscope-reorder`) tests that share servers or hosts stay in one process.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.integration.restart.side_by_side import Players


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "systemd: boots real systemd hosts in containers (needs root)")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Share out folders and files, not tests."""
    return _ByPlace(config, log)


class _ByPlace(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        path = Path(nodeid.split("::", maxsplit=1)[0])
        return str(path.parent if _share_hosts(path) else path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, and skip tests on hosts, with the reason, where containers cannot be made."""
    items.sort(key=lambda item: not _share_hosts(item.path))
    if os.geteuid() != 0:
        for item in items:
            if item.get_closest_marker("systemd"):
                item.add_marker(pytest.mark.skip(reason="test hosts need root"))


# These share hosts over all their files. They wait more than they work, so they start first.
_SHARE_HOSTS = ("audit", "heal", "restart")


def _share_hosts(path: Path) -> bool:
    return path.parent.name in _SHARE_HOSTS


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Play the tests that have a stage side by side; here each is only waited for."""
    players = pyfuncitem.funcargs.get("stage")
    if not isinstance(players, Players):
        return None
    players.outcome_of(pyfuncitem)
    return True
