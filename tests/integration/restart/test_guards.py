"""Each guard says no on a real host, for the reason that it is there for.

A server that hangs stays as it is until it is restarted: it is judged once, and then one thing after another speaks
against its restart.
"""

from datetime import UTC, datetime, timedelta

import pytest

from tests.fleet import journal
from tests.fleet.simulator import SimulatedServer
from tests.integration.restart.stage import NO_BUDGET, STATE, Result, Stage

pytestmark = pytest.mark.systemd

CARDS = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5a4b3c2d-0000-1111-2222-333344445555)"
LOST = "Unable to determine the device handle for gpu 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU"
FELL_OFF = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."


def hung(stage: Stage) -> Result:
    """A server that hangs with requests in flight, as it was judged."""
    stage.server.start("--state", "frozen-busy")
    return stage.judge()


def refused(stage: Stage, judged: Result, word: str, **options: object) -> str:
    """The module leaves the server alone, for this reason; what it says of it."""
    done = stage.restart(judged, **options)
    assert (done["changed"], done["skipped_because"]) == (False, word), done["message"]
    assert stage.server.invocation() == judged["systemd"]["invocation_id"]
    assert not any("/evidence/" in path for path in stage.kept())
    return str(done["message"])


# The unit


def test_the_unit_of_another_server_is_left_alone(stage: Stage) -> None:
    """The inventory has the unit of one server and the URL of another."""
    hung(stage)
    other = SimulatedServer(stage.host, f"{stage.unit.removesuffix('.service')}-other.service", 8001)
    other.start("--state", "idle")
    try:
        mixed_up = {"unit": other.unit}
        done = stage.restart(stage.judge(server=mixed_up), server=mixed_up)
        assert (done["changed"], done["skipped_because"]) == (False, "wrong_unit"), done["message"]
        assert f"port 8000 of this host belongs to {stage.unit}, not to {other.unit}" in done["message"]
        assert other.counts()["failed_in_flight"] == 0
    finally:
        stage.host.run("systemctl", "stop", other.unit)


# The budget


def test_starts_by_anyone_are_counted_with_those_of_the_last_day(stage: Stage) -> None:
    judged = hung(stage)
    just_now = refused(stage, judged, "too_soon", min_interval=1800, max_starts=2)
    assert "it was started 0 minutes ago, and 30 minutes must lie between two starts" in just_now
    happened(stage, hours=25)
    assert stage.restart(judged, check=True, min_interval=0, max_starts=2)["changed"]
    # This is a second watchdog.
    happened(stage, minutes=10)
    said = refused(stage, judged, "quarantined", min_interval=0, max_starts=2)
    assert "it was started 2 times in the last 24 hours, and 2 is the limit; a person must look" in said
    assert stage.restart(judged, check=True, min_interval=0, max_starts=3)["changed"]
    assert stage.restart(judged, check=True, min_interval=0, max_starts=2, window=500)["changed"]


def happened(stage: Stage, **time: float) -> None:
    """Somebody started the unit so long ago."""
    journal.plant(stage.host, [journal.started(stage.unit, datetime.now(UTC) - timedelta(**time))])


def test_a_second_watchdog_restarts_it_before_it_is_judged(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    stage.host.run("systemd-run", "--quiet", "--wait", "systemctl", "restart", stage.unit)
    stage.server.await_models()
    judged = stage.judge()
    assert "started 2 times" in refused(stage, judged, "quarantined", min_interval=0, max_starts=2)
    refused(stage, judged, "too_soon", min_interval=1800, max_starts=3)


def test_a_start_that_takes_long_is_found_in_the_journal(stage: Stage) -> None:
    """systemd calls it started long after its process has begun."""
    stage.configure("[Service]\nExecStartPost=/bin/sleep 7\n")
    assert stage.restart(hung(stage), check=True)["changed"]


def test_where_the_journal_keeps_nothing_the_budget_is_used_up(stage: Stage) -> None:
    stage.spoilt = True
    set_up_journald(stage, "Storage=volatile")
    # In memory is as good as on disk, as far as it reaches.
    assert stage.restart(hung(stage), check=True)["changed"]
    stage.host.run("sh", "-c", "rm -rf /var/log/journal/* /run/log/journal/*")
    set_up_journald(stage, "Storage=none")
    assert "so its starts cannot be counted; a person must look" in refused(stage, stage.judge(), "quarantined", **NO_BUDGET)


def set_up_journald(stage: Stage, setting: str) -> None:
    stage.host.write("/etc/systemd/journald.conf.d/test.conf", f"[Journal]\n{setting}\n")
    stage.host.run("systemctl", "restart", "systemd-journald")


# The GPUs


def test_a_gpu_that_is_lost_is_not_cured_by_a_restart(stage: Stage) -> None:
    judged = hung(stage)
    for script, reason in (
        (f"echo '{CARDS}'\necho '{LOST}'\nexit 15", "nvidia-smi does not list the GPUs"),
        ("echo 'No devices were found'\nexit 6", "nvidia-smi does not list the GPUs"),
        ("trap '' TERM\nsleep 600", "nvidia-smi does not answer (no answer in time)"),
    ):
        install(stage, "nvidia-smi", script)
        assert reason in refused(stage, judged, "gpu_lost")
    install(stage, "nvidia-smi", f"echo '{CARDS}'")
    assert stage.restart(judged)["changed"]
    assert CARDS in stage.evidence()["nvidia-smi.txt"]


def test_the_kernel_has_seen_the_gpu_fall_off_the_bus(stage: Stage) -> None:
    stage.spoilt = True
    judged = hung(stage)
    journal.plant(stage.host, [journal.kernel(FELL_OFF, datetime.now(UTC) - timedelta(minutes=3))])
    assert "Xid 79" in refused(stage, judged, "gpu_lost")
    install(stage, "nvidia-smi", f"echo '{CARDS}'")
    assert "Xid 79" in refused(stage, judged, "gpu_lost")


def install(stage: Stage, name: str, script: str) -> None:
    stage.host.write(f"/usr/local/bin/{name}", f"#!/bin/sh\n{script}\n", "0755")


# The pause mark


def test_a_pause_keeps_it_as_it_is_until_it_expires(stage: Stage) -> None:
    judged = hung(stage)
    mark = f"{STATE}/pause.json"
    for content, said in (
        ('{"who": "ann", "why": "new driver", "until": null}', "paused by ann until it is removed: new driver"),
        ('{"who": "ann", "why": "new driver", "until": "2999-01-01T00:00:00Z"}', "until 2999-01-01T00:00:00Z"),
        ("do not touch!", "the mark cannot be understood"),
        ("", "the mark cannot be understood"),
    ):
        stage.host.write(mark, content)
        assert said in refused(stage, judged, "paused")
    stage.host.run("sh", "-c", f"rm {mark} && mkdir {mark}")
    assert "the mark cannot be read" in refused(stage, judged, "paused")
    stage.host.run("rmdir", mark)
    stage.host.write(mark, '{"who": "ann", "why": "new driver", "until": "2020-01-01T00:00:00Z"}')
    assert stage.restart(judged)["changed"]


# The disk


def test_a_disk_that_is_full_does_not_keep_the_server_down(stage: Stage) -> None:
    judged = hung(stage)
    stage.host.run("mkdir", "-p", f"{STATE}/evidence")
    stage.host.run("mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "tmpfs", f"{STATE}/evidence")
    done = stage.restart(judged)
    assert done["changed"], done["message"]
    assert any("No space left on device" in sentence for sentence in done["missing_evidence"])
    assert stage.starts() == 2


def test_a_disk_without_room_for_a_folder_does_not_either(stage: Stage) -> None:
    judged = hung(stage)
    stage.host.run("mkdir", "-p", STATE)
    # Room for the folder itself and the lock.
    stage.host.run("mount", "-t", "tmpfs", "-o", "nr_inodes=2,mode=755", "tmpfs", STATE)
    done = stage.restart(judged)
    assert done["changed"], done["message"]
    assert (done["evidence"], len(done["missing_evidence"])) == (None, 1)


def test_only_the_newest_ten_are_kept(stage: Stage) -> None:
    judged = hung(stage)
    folders = [f"{STATE}/evidence/{stage.unit}-202601{day:02}T000000Z" for day in range(1, 13)]
    stage.host.run("mkdir", "-p", *folders)
    done = stage.restart(judged)
    left = stage.host.run("ls", f"{STATE}/evidence").stdout.split()
    assert len(left) == 10 and done["evidence"].endswith(left[-1])


# Rights


def test_without_rights_nothing_is_done(stage: Stage) -> None:
    stage.server.start("--state", "frozen-busy")
    guest = {"as_user": "guest"}
    judged = stage.judge(**guest)
    assert "Permission denied" in refused(stage, judged, "not_permitted", **guest)
    would = stage.restart(judged, check=True, **guest)
    assert (would["changed"], would["skipped_because"]) == (False, "quarantined"), would["message"]
    assert "may not be read by this user" in would["message"]


def test_a_user_who_may_read_everything_and_restart_nothing_restarts_nothing(stage: Stage) -> None:
    stage.host.run("usermod", "--append", "--groups", "systemd-journal", "guest")
    stage.host.run("install", "-d", "-o", "guest", STATE)
    stage.server.start("--state", "frozen-busy")
    guest = {"as_user": "guest"}
    judged = stage.judge(**guest)
    done = stage.restart(judged, **guest)
    assert (done["changed"], done["skipped_because"]) == (False, "not_permitted"), done["message"]
    assert "could not be restarted" in done["message"]
    assert stage.server.invocation() == judged["systemd"]["invocation_id"]
