"""Whether the GPUs can be relied on, by what nvidia-smi and the kernel say."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import bounded
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart import gpu

from .commands import DENIED, NO_MATCH, NO_SUCH_COMMAND, TIMED_OUT, script

TWO_CARDS = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5a4b3c2d-0000-1111-2222-333344445555)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-6a4b3c2d-0000-1111-2222-333344445555)
"""
DIVIDED = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5a4b3c2d-0000-1111-2222-333344445555)
  MIG 3g.20gb     Device  0: (UUID: MIG-5a4b3c2d-0000-1111-2222-333344445555)
  MIG 3g.20gb     Device  1: (UUID: MIG-6a4b3c2d-0000-1111-2222-333344445555)
"""
ONE_LOST = TWO_CARDS.splitlines()[0] + (
    "\nUnable to determine the device handle for gpu 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU\n"
)
XID = "2026-11-29T21:58:01+00:00 gpu-07 kernel: NVRM: Xid (PCI:0000:3b:00): %s, pid='<unknown>', name=<unknown>, text\n"


@pytest.fixture
def host(monkeypatch):
    """A host of two cards without complaints; each part of it can be changed."""

    def build(listed=TWO_CARDS, kernel=NO_MATCH, any_message="Started something.\n"):
        return script(
            monkeypatch, [("nvidia-smi -L", listed), ("journalctl --grep", kernel), ("journalctl _PID=1", any_message)]
        )

    return build


def test_nothing_speaks_against_a_host_whose_cards_are_listed(host):
    host()
    assert gpu.objection() is None


def test_nothing_speaks_against_a_host_whose_cards_are_divided(host):
    host(DIVIDED)
    assert gpu.objection() is None


@pytest.mark.parametrize("any_message", ["Started something.\n", ""])
@pytest.mark.parametrize("kernel", [NO_MATCH, DENIED, TIMED_OUT])
def test_nothing_speaks_against_a_host_without_nvidia_smi(host, kernel, any_message):
    host(NO_SUCH_COMMAND, kernel, any_message)
    assert gpu.objection() is None


@pytest.mark.parametrize("listed", [TWO_CARDS, NO_SUCH_COMMAND])
@pytest.mark.parametrize("xid", ["79", "154"])
def test_the_kernel_has_lost_a_gpu(host, listed, xid):
    host(listed, XID % "31" + XID % xid)
    assert gpu.objection() == "the kernel reports Xid %s since the last boot" % xid


@pytest.mark.parametrize("xid", ["13", "31", "43", "7", "9", "790", "1540", "15", "95"])
def test_other_numbers_are_faults_of_programs_that_a_restart_may_cure(host, xid):
    host(kernel=XID % xid)
    assert gpu.objection() is None


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        (TIMED_OUT, "nvidia-smi does not answer (no answer in time)"),
        (bounded.Text(TWO_CARDS, cut=True), "nvidia-smi does not list the GPUs"),
        (bounded.Unreadable("nvidia-smi -L", "NVML: Driver/library version mismatch"), "version mismatch"),
        (bounded.Unreadable("nvidia-smi -L", "ended with code 15"), "ended with code 15"),
        (ONE_LOST, "nvidia-smi does not list the GPUs"),
        ("No devices were found\n", "nvidia-smi does not list the GPUs"),
        ("Failed to initialize NVML: Unknown Error\n", "nvidia-smi does not list the GPUs"),
        ("\n", "nvidia-smi does not list the GPUs"),
        ("", "nvidia-smi does not list the GPUs"),
    ],
)
def test_cards_that_are_not_all_listed_are_not_relied_on(host, listed, said):
    host(listed)
    assert said in gpu.objection()


@pytest.mark.parametrize(
    ("kernel", "any_message", "said"),
    [
        (DENIED, "", "insufficient permissions"),
        (TIMED_OUT, "Started something.\n", "no answer in time"),
        (bounded.Text(XID % "31", cut=True), "Started something.\n", "too long or too slow"),
        (NO_SUCH_COMMAND, "", "no such command"),
        (NO_MATCH, "", "by this user"),
        (NO_MATCH, NO_MATCH, "by this user"),
        (NO_MATCH, TIMED_OUT, "by this user"),
    ],
)
def test_a_kernel_of_which_nothing_is_known_is_not_relied_on_where_there_are_cards(host, kernel, any_message, said):
    host(kernel=kernel, any_message=any_message)
    assert said in gpu.objection()


def test_a_lost_gpu_is_found_in_what_was_read_before_the_limit(host):
    host(kernel=bounded.Text(XID % "79", cut=True))
    assert "Xid 79" in gpu.objection()


def test_a_command_that_hangs_is_not_waited_for(host, monkeypatch):
    asked = []
    monkeypatch.setattr(bounded, "run", lambda argv, timeout: asked.append(timeout) or NO_SUCH_COMMAND)
    gpu.objection()
    assert set(asked) == {gpu.TIMEOUT}
