"""What is kept of a hung server: bounded, without secrets, and never in the way of the restart."""

import errno
import json
import os
import stat

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import bounded
from ansible_collections.fleetcheck.vllm.plugins.module_utils.reading import Answer, Failure
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart import evidence

from .commands import NO_MATCH, NO_SUCH_COMMAND, TIMED_OUT, script

UNIT = "vllm.service"
NOW = 1_795_991_942.5
SHOWN = """\
Id=vllm.service
Environment=VLLM_API_KEY=hunter2 HF_TOKEN=hf_abcdefgh1234 CUDA_VISIBLE_DEVICES=0
ExecStart={ path=/usr/bin/vllm ; argv[]=/usr/bin/vllm serve /models/tiny --api-key hunter2 --port 8000 ; pid=4711 }
"""
JOURNAL = "2026-11-29T22:00:00+00:00 gpu-07 vllm[4711]: GET /x Authorization: Bearer hunter2\n"
PROCESSES = "4711 1 Ssl vllm serve --api-key=hunter2 --port 8000\n4712 1 S curl -H 'Authorization: Bearer hunter2'\n"
VERDICT = {"verdict": "stuck", "invocation_id": "5c0ee6c2", "last_sample": {"engines": {}}}
METRICS = Answer(200, b'vllm:num_requests_running{engine="0"} 3.0\n')

EVERYTHING = [
    ("systemctl show", SHOWN),
    ("journalctl --grep", NO_MATCH),
    ("journalctl", JOURNAL),
    ("ps", PROCESSES),
    ("ss", "LISTEN 0 2048 0.0.0.0:8000\n"),
    ("py-spy", "Thread 4711 (idle)\n"),
    ("nvidia-smi", "GPU 0: 93 %\n"),
]


class Server:
    """Something that answers GET /metrics."""

    def __init__(self, answer=METRICS):
        self.answer = answer

    def get(self, path, timeout):
        assert (path, timeout <= 15.0) == ("/metrics", True)
        return self.answer


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "evidence" / evidence.folder_name(UNIT, NOW))


def collect(folder, main_pid=4711, scope="system", answer=METRICS):
    return evidence.collect(folder, UNIT, scope, main_pid, Server(answer), VERDICT)


def kept(folder):
    return {name: open(os.path.join(folder, name)).read() for name in sorted(os.listdir(folder))}


def test_everything_is_kept_in_a_file_of_its_own(monkeypatch, folder):
    script(monkeypatch, EVERYTHING)
    assert collect(folder) == []
    files = kept(folder)
    assert list(files) == [
        "connections.txt",
        "journal.txt",
        "metrics.prom",
        "nvidia-smi.txt",
        "processes.txt",
        "py-spy.txt",
        "systemctl-show.txt",
        "verdict.json",
    ]
    assert files["metrics.prom"] == METRICS.body.decode()
    assert json.loads(files["verdict.json"]) == VERDICT


def test_no_secret_is_kept(monkeypatch, folder):
    script(monkeypatch, EVERYTHING)
    collect(folder)
    text = "".join(kept(folder).values())
    assert "hunter2" not in text and "hf_abcdefgh1234" not in text
    assert "--port 8000" in text and "CUDA_VISIBLE_DEVICES=0" in text


def test_only_root_can_read_it(monkeypatch, folder):
    script(monkeypatch, EVERYTHING)
    collect(folder)
    for path in (folder, os.path.dirname(folder)):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700


def test_what_a_host_does_not_have_is_not_missed(monkeypatch, folder):
    script(monkeypatch, [("py-spy", NO_SUCH_COMMAND), ("nvidia-smi", NO_SUCH_COMMAND), *EVERYTHING])
    assert collect(folder) == []
    assert not {"py-spy.txt", "nvidia-smi.txt", "kernel-xid.txt"} & set(kept(folder))


def test_what_the_kernel_said_of_the_gpu_is_kept(monkeypatch, folder):
    script(monkeypatch, [("journalctl --grep", "gpu-07 kernel: NVRM: Xid (PCI:0000:3b:00): 31, text\n"), *EVERYTHING])
    collect(folder)
    assert "Xid" in kept(folder)["kernel-xid.txt"]


def test_a_command_that_hangs_is_missed_and_the_others_are_kept(monkeypatch, folder):
    script(monkeypatch, [("nvidia-smi", TIMED_OUT), ("ps", TIMED_OUT), *EVERYTHING])
    assert collect(folder) == ["processes.txt: no answer in time", "nvidia-smi.txt: no answer in time"]
    assert {"journal.txt", "connections.txt", "py-spy.txt"} <= set(kept(folder))


def test_metrics_that_cannot_be_read_are_missed(monkeypatch, folder):
    script(monkeypatch, EVERYTHING)
    assert collect(folder, answer=Failure("refused", "connection refused")) == ["metrics.prom: connection refused"]


def test_all_commands_together_have_one_limit_of_time(monkeypatch, folder):
    clock = iter(range(0, 10_000, 25))
    monkeypatch.setattr(evidence.time, "monotonic", lambda: float(next(clock)))
    ran = script(monkeypatch, EVERYTHING)
    missing = collect(folder)
    assert len(ran) == 2
    assert missing[0] == "processes.txt: the 60 s for all evidence were used up"
    assert len(missing) == 5


def test_each_command_is_bounded_in_time_and_size(monkeypatch, folder):
    bounds = []
    monkeypatch.setattr(bounded, "run", lambda argv, *limits: bounds.append(limits) or NO_SUCH_COMMAND)
    collect(folder)
    assert all(0 < seconds <= 15.0 and size <= 2 * 1024 * 1024 for seconds, size in bounds)


def test_metrics_of_any_size_are_bounded(monkeypatch, folder):
    script(monkeypatch, EVERYTHING)
    collect(folder, answer=Answer(200, b"x" * (3 * 1024 * 1024)))
    assert os.path.getsize(os.path.join(folder, "metrics.prom")) == 2 * 1024 * 1024


def test_a_full_disk_is_said_and_does_not_raise(monkeypatch, folder):
    def full(*_args, **_more):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    script(monkeypatch, EVERYTHING)
    monkeypatch.setattr(evidence, "open", full, raising=False)
    missing = collect(folder)
    assert len(missing) == 8
    assert all("No space left on device" in sentence for sentence in missing)


def test_a_disk_too_full_for_a_folder_is_said_once(monkeypatch, folder):
    def full(*_args, **_more):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    script(monkeypatch, [])
    monkeypatch.setattr(evidence.os, "makedirs", full)
    assert collect(folder) == ["no evidence could be kept in %s: No space left on device" % folder]


def test_a_dead_unit_has_no_process_to_look_into(monkeypatch, folder):
    ran = script(monkeypatch, EVERYTHING)
    collect(folder, main_pid=0)
    assert not any("py-spy" in command for command in ran)


def test_a_unit_of_a_user_is_looked_up_as_one(monkeypatch, folder):
    ran = script(monkeypatch, EVERYTHING)
    collect(folder, scope="user")
    assert ["systemctl", "--user", "show", "--", UNIT] in ran
    assert any(command[-2:] == ["--user-unit", UNIT] for command in ran)


# The newest few


def test_names_sort_by_time():
    times = [NOW, NOW + 1, NOW + 86400, NOW + 40 * 86400, NOW + 400 * 86400]
    names = [evidence.folder_name(UNIT, at) for at in times]
    assert names == sorted(names) and len(set(names)) == 5
    assert names[0] == "vllm.service-20261129T223902Z"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_ten_of_a_unit_stay(tmp_path):
    made = [evidence.folder_name(UNIT, NOW + 60 * number) for number in range(14)]
    for name in made:
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.prom").write_text("x")
    evidence.prune(str(tmp_path), UNIT)
    assert names(tmp_path) == made[4:]
    evidence.prune(str(tmp_path), UNIT)
    assert names(tmp_path) == made[4:]


def test_what_was_kept_of_other_units_stays(tmp_path):
    others = [evidence.folder_name(unit, NOW) for unit in ("vllm@chat.service", "vllm-chat.service", "vllm.service.d")]
    for name in [*others, *(evidence.folder_name(UNIT, NOW + number) for number in range(11))]:
        (tmp_path / name).mkdir()
    evidence.prune(str(tmp_path), UNIT)
    assert len(names(tmp_path)) == 13
    assert set(others) <= set(names(tmp_path))


def test_pruning_what_is_not_there_is_no_matter(tmp_path):
    evidence.prune(str(tmp_path / "no"), UNIT)
