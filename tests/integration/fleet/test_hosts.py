"""The test hosts are real: SSH, units, the journal and user services work as on a server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.commands import FleetError
from tests.fleet.fleet import fleet
from tests.fleet.hosts import Host

pytestmark = pytest.mark.systemd

SLEEPER = """[Unit]
Description=Sleeps
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=default.target
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fleet")


@pytest.fixture(scope="module")
def hosts(folder: Path) -> Iterator[dict[str, Host]]:
    with fleet(folder, ["h1", "h2", "h3"]) as running:
        yield running


def ansible(folder: Path, *arguments: str) -> str:
    command = [str(Path(sys.executable).with_name("ansible")), "--inventory", str(folder / "inventory"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_ansible_reaches_every_host(hosts: dict[str, Host], folder: Path) -> None:
    said = ansible(folder, "all", "-m", "ansible.builtin.ping")
    assert sorted(line.split()[0] for line in said.splitlines() if "SUCCESS" in line) == ["h1", "h2", "h3"]


def test_each_host_has_its_own_name_and_address(hosts: dict[str, Host]) -> None:
    assert [host.ssh("hostname").stdout.strip() for host in hosts.values()] == ["h1", "h2", "h3"]
    assert len({host.address for host in hosts.values()}) == 3


def test_ops_may_become_root_and_guest_may_not(hosts: dict[str, Host]) -> None:
    assert hosts["h1"].ssh("sudo -n id -un").stdout.strip() == "root"
    assert hosts["h1"].ssh("sudo -n id -un", user="guest", check=False).returncode != 0


def test_a_restart_is_a_new_invocation_and_the_journal_shows_both_starts(hosts: dict[str, Host]) -> None:
    host = hosts["h1"]
    host.install_unit("sleeper.service", SLEEPER)
    host.run("systemctl", "start", "sleeper.service")
    before = host.unit("sleeper.service", "InvocationID", "MainPID")
    host.ssh("sudo systemctl restart sleeper.service")
    after = host.unit("sleeper.service", "InvocationID", "MainPID")
    assert before["InvocationID"] != after["InvocationID"]
    assert before["MainPID"] != after["MainPID"]
    journal = host.ssh("sudo journalctl --sync && sudo journalctl --unit sleeper.service --output cat").stdout
    assert journal.count("Started sleeper.service") == 2


def test_a_unit_of_one_host_is_none_of_another(hosts: dict[str, Host]) -> None:
    """They would be, if the hosts shared their control groups."""
    for host in hosts.values():
        host.install_unit("same.service", SLEEPER)
        host.run("systemctl", "start", "same.service")
    hosts["h2"].run("systemctl", "stop", "same.service", timeout=10)
    states = [host.unit("same.service", "ActiveState")["ActiveState"] for host in hosts.values()]
    assert states == ["active", "inactive", "active"]


def test_user_units_run_without_a_login(hosts: dict[str, Host]) -> None:
    host = hosts["h2"]
    host.keep_user_units("guest")
    host.write("/home/guest/.config/systemd/user/sleeper.service", SLEEPER)
    host.run_as("guest", "systemctl", "--user", "daemon-reload")
    host.run_as("guest", "systemctl", "--user", "start", "sleeper.service")
    assert host.run_as("guest", "systemctl", "--user", "is-active", "sleeper.service").stdout.strip() == "active"
    host.run("journalctl", "--sync")
    assert "Started sleeper.service" in host.run_as("guest", "journalctl", "--user-unit=sleeper.service").stdout


def test_a_host_without_its_cable_cannot_be_reached_but_works_on(hosts: dict[str, Host]) -> None:
    host = hosts["h3"]
    host.cut_network()
    try:
        with pytest.raises(FleetError, match="no end"):
            host.ssh("true", timeout=2)
        assert host.run("true").returncode == 0
    finally:
        host.restore_network()
    assert host.ssh("true", timeout=30).returncode == 0


def test_files_go_in_and_come_out(hosts: dict[str, Host], tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_text("content\n")
    hosts["h1"].copy_folder(tmp_path, "/opt/copied")
    hosts["h1"].write("/opt/copied/script", "#!/bin/sh\necho ran\n", mode="0755")
    assert hosts["h1"].read("/opt/copied/inner/file") == "content\n"
    assert hosts["h1"].run("/opt/copied/script").stdout == "ran\n"
