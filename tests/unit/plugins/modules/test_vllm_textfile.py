"""The file for node_exporter is whole or not there, and everybody may read it."""

import os
import stat

import pytest
import yaml
from ansible_collections.fleetcheck.vllm.plugins.module_utils import metrics
from ansible_collections.fleetcheck.vllm.plugins.modules import vllm_pushgateway, vllm_textfile

NOON = 1_795_953_600.0


def measure(verdict="busy", **more):
    return {"server": "vllm.service", "verdict": verdict, "probes": 0, "action": "", "engines": [], **more}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "vllm_fleetcheck.prom")


def names(path):
    return os.listdir(os.path.dirname(path))


def test_everybody_may_read_it_whatever_the_umask(path):
    before = os.umask(0o077)
    try:
        vllm_textfile.write(path, b"x 1\n")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644


def test_it_takes_the_place_of_the_old_one_in_one_step(path, monkeypatch):
    vllm_textfile.write(path, b"old 1\n")
    replace = os.replace

    def watched(source, target):
        assert vllm_textfile.read(target) == b"old 1\n"
        assert vllm_textfile.read(source) == b"new 1\n"
        assert not source.endswith(".prom")
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    vllm_textfile.write(path, b"new 1\n")
    assert vllm_textfile.read(path) == b"new 1\n"
    assert names(path) == ["vllm_fleetcheck.prom"]


def test_where_it_cannot_be_put_in_place_the_old_one_stays_and_nothing_is_left_behind(path, monkeypatch):
    vllm_textfile.write(path, b"old 1\n")

    def refuse(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no space left"):
        vllm_textfile.write(path, b"new 1\n")
    assert vllm_textfile.read(path) == b"old 1\n"
    assert names(path) == ["vllm_fleetcheck.prom"]


def test_a_link_in_its_place_is_replaced_and_not_followed(path, tmp_path):
    target = tmp_path / "precious"
    target.write_text("precious")
    os.symlink(target, path)
    vllm_textfile.write(path, b"x 1\n")
    assert target.read_text() == "precious" and not os.path.islink(path)


def test_the_last_restart_is_kept_from_run_to_run():
    first = vllm_textfile.render([measure("idle", action="restarted")], NOON, b"")
    second = vllm_textfile.render([measure()], NOON + 300, first)
    third = vllm_textfile.render([measure()], NOON + 600, second)
    line = 'vllm_fleetcheck_last_restart_timestamp_seconds{result="restarted",server="vllm.service"} 1.7959536e+09'
    assert line in third.decode().splitlines()


def test_a_failed_restart_takes_the_place_of_an_earlier_one_that_went_well():
    first = vllm_textfile.render([measure("idle", action="restarted")], NOON, b"")
    second = vllm_textfile.render([measure("dead", action="restart_failed")], NOON + 300, first).decode()
    assert 'result="restart_failed"' in second and 'result="restarted"' not in second


def test_a_file_that_cannot_be_read_is_like_none(path):
    assert vllm_textfile.read(path) == b""
    assert vllm_textfile.render([measure()], NOON, b"\xff\xfe{").startswith(b"# HELP")


def documented(options):
    """An argument spec as the documentation has it."""
    return {
        name: {
            "options" if key == "suboptions" else key: documented(value) if key == "suboptions" else value
            for key, value in option.items()
            if key != "description"
        }
        for name, option in options.items()
    }


@pytest.mark.parametrize("module", [vllm_textfile, vllm_pushgateway])
def test_the_documentation_and_the_options_of_a_server_agree(module):
    described = documented(yaml.safe_load(module.DOCUMENTATION)["options"])["servers"]["options"]
    assert described == metrics.SERVER_SPEC
