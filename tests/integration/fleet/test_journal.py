"""A planted past is read like one that happened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.fleet import journal
from tests.fleet.fleet import fleet
from tests.fleet.hosts import Host

pytestmark = pytest.mark.systemd

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with fleet(tmp_path_factory.mktemp("fleet"), ["h1"]) as hosts:
        yield hosts["h1"]


def entries(host: Host, *options: str) -> list[dict[str, str]]:
    shown = host.run("journalctl", "--output=json", "--no-pager", "--quiet", *options).stdout
    return [json.loads(line) for line in shown.splitlines()]


def test_starts_of_yesterday_are_starts_of_the_unit(host: Host) -> None:
    times = [NOW - timedelta(minutes=10), NOW - timedelta(days=1), NOW - timedelta(days=8)]
    journal.plant(host, [journal.started("past.service", at) for at in times])
    found = entries(host, "--unit=past.service")
    assert [int(entry["__REALTIME_TIMESTAMP"]) for entry in found] == [
        int(at.timestamp() * 1e6) for at in sorted(times)
    ]
    assert len({entry["INVOCATION_ID"] for entry in found}) == 3
    assert len(entries(host, "--unit=past.service", "--since=-2h")) == 1


def test_a_real_start_has_the_same_fields(host: Host) -> None:
    journal.plant(host, [journal.started("both.service", NOW - timedelta(hours=3))])
    host.install_unit("both.service", "[Service]\nExecStart=/bin/sleep infinity\n")
    host.run("systemctl", "start", "both.service")
    host.run("journalctl", "--sync")
    past, present = entries(host, "--unit=both.service", "JOB_TYPE=start", "JOB_RESULT=done")
    assert set(past) <= set(present)
    same = ("_PID", "_COMM", "MESSAGE_ID", "UNIT", "_TRANSPORT", "_BOOT_ID")
    assert {name: past[name] for name in same} == {name: present[name] for name in same}


def test_the_kernel_has_said_it_in_this_boot(host: Host) -> None:
    journal.plant(host, [journal.kernel("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", NOW)])
    assert "Xid" in host.run("journalctl", "--dmesg", "--boot", "--no-pager").stdout
