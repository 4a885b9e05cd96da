"""Hosts end completely: in order, after a failed boot, and after whoever started them was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fleet import fleet, network, rootfs, runs
from tests.fleet.commands import FleetError
from tests.fleet.runs import HostRecord

from .leftovers import leftovers

pytestmark = pytest.mark.systemd

REPOSITORY = Path(__file__).resolve().parents[3]
# Starts a host as a test does, says so, and waits to be killed. With "early" it stops before anything has booted.
OWNER = """
import sys, time
from pathlib import Path
from tests.fleet import fleet, machines
if sys.argv[2] == "early":
    boot = machines.boot
    def boot_and_hang(run, host):
        boot(run, host)
        print("up", flush=True)
        time.sleep(600)
    machines.boot = boot_and_hang
with fleet.fleet(Path(sys.argv[1]), ["h1", "h2"]):
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A run's folder; whatever a failed test leaves up in it is taken down."""
    yield tmp_path
    fleet.down(tmp_path)


@pytest.fixture
def killed_owner(folder: Path) -> Callable[[str], str]:
    """Starts hosts in another process, kills that, and returns the id of the run it leaves behind."""

    def start_and_kill(when: str) -> str:
        command = [sys.executable, "-c", OWNER, str(folder), when]
        owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        owner.stdout.close()
        return run_id(folder)

    return start_and_kill


def run_id(folder: Path) -> str:
    run = runs.load(folder)
    assert run is not None
    return run.id


def test_nothing_is_left_of_hosts_that_are_down(folder: Path) -> None:
    running = fleet.up(folder, ["h1", "h2", "h3"])
    run = run_id(folder)
    running["h1"].ssh("true")
    assert leftovers(run), "the search for leftovers finds nothing even while the hosts are up"
    assert fleet.down(folder)
    assert leftovers(run) == []
    assert not fleet.down(folder)


def test_a_shared_connection_does_not_outlive_the_hosts(folder: Path) -> None:
    fleet.up(folder, ["h1"])
    run = run_id(folder)
    ansible = str(Path(sys.executable).with_name("ansible"))
    ping = [ansible, "--inventory", str(folder / "inventory"), "all", "-m", "ansible.builtin.ping"]
    subprocess.run(ping, check=True, capture_output=True)
    assert any("mux" in found for found in leftovers(run)), "ansible did not share its connection"
    fleet.down(folder)
    assert leftovers(run) == []


@pytest.mark.parametrize("when", ["early", "late"])
def test_hosts_of_a_killed_owner_are_swept_away(killed_owner: Callable[[str], str], when: str) -> None:
    run = killed_owner(when)
    assert leftovers(run)
    fleet.sweep()
    assert leftovers(run) == []


def test_hosts_of_a_living_owner_are_left_alone(folder: Path) -> None:
    with fleet.fleet(folder, ["h1"]) as running:
        fleet.sweep()
        assert running["h1"].run("true").returncode == 0


def test_a_failed_boot_leaves_nothing_and_shows_the_console(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[HostRecord] = []
    real = network.create

    def remember(host: HostRecord) -> None:
        seen.append(host)
        real(host)

    monkeypatch.setattr(network, "create", remember)
    monkeypatch.setattr(rootfs, "ensure", lambda: folder / "no-root-here")
    (folder / "no-root-here" / "etc" / "ssh").mkdir(parents=True)
    (folder / "no-root-here" / "etc" / "ssh" / "ssh_host_ed25519_key.pub").write_text("ssh-ed25519 AAAA")
    with pytest.raises(FleetError, match=r"host h1 did not start: .*no-root-here"):
        fleet.up(folder, ["h1"])
    assert leftovers(seen[0].machine.split("-")[1]) == []


def test_two_runs_at_once_do_not_meet(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    with fleet.fleet(folder, ["h1"]) as ours, fleet.fleet(other, ["h1"]) as theirs:
        assert ours["h1"].address != theirs["h1"].address
        ours["h1"].write("/tmp/mark", "ours")
        with pytest.raises(FleetError, match="No such file"):
            theirs["h1"].read("/tmp/mark")
        fleet.down(other)
        assert ours["h1"].read("/tmp/mark") == "ours"
