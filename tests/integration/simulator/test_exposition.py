"""The simulator's page against the pages of real servers: the same series, types and label names."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.simulator.vllm_sim.exposition import escape, number
from tests.simulator.vllm_sim.releases import RELEASES

FIXTURES = Path(__file__).parent / "fixtures"


def series_of_fixture(name):
    lines = (FIXTURES / f"series-{name}.txt").read_text(encoding="utf-8").splitlines()
    rows = [(line + " ").split(" ")[:3] for line in lines if not line.startswith("#")]
    return {(sample, kind, labels) for sample, kind, labels in rows}


def series_of_page(page, with_buckets):
    return {
        (sample.name, family.type, ",".join(sorted(sample.labels)))
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if with_buckets or not sample.name.endswith("_bucket")
    }


def ask_of_everything(server):
    """The captures were taken after a few completions and reads of /v1/models."""
    server.post("/v1/completions", {"max_tokens": 2})
    server.get("/v1/models")


def page_of(server):
    return server.get("/metrics")[1]


@pytest.mark.parametrize("name", RELEASES)
def test_a_page_has_the_series_of_a_real_server(make_server, name):
    server = make_server("--release", name)
    ask_of_everything(server)
    real = series_of_fixture(name)
    # Only one of the real pages was kept with its buckets.
    with_buckets = any(sample.endswith("_bucket") for sample, _, _ in real)
    assert series_of_page(page_of(server), with_buckets) == real


@pytest.mark.parametrize(("fixture", "options"), [
    ("0.8.5-v0-fresh", ["--release", "0.8.5-v0"]),
    ("0.32.0-fresh", []),
    ("0.32.0-two-processes-fresh", ["--api-server-count", "2"]),
])
def test_a_page_before_the_first_request_lacks_what_a_real_one_lacks(make_server, fixture, options):
    server = make_server(*options)
    server.get("/v1/models")
    assert series_of_page(page_of(server), with_buckets=False) == series_of_fixture(fixture)


@pytest.mark.parametrize(("fixture", "options"), [
    ("0.32.0-two-processes", ["--api-server-count", "2"]),
    ("0.32.0-two-engines", ["--data-parallel-size", "2"]),
    ("0.25.1-two-engines", ["--data-parallel-size", "2", "--release", "0.25.1"]),
])
def test_several_processes_have_no_start_time_and_no_created_series(make_server, fixture, options):
    server = make_server(*options)
    ask_of_everything(server)
    assert series_of_page(page_of(server), with_buckets=False) == series_of_fixture(fixture)


def test_two_engines_of_an_old_release_keep_the_start_time(make_server):
    server = make_server("--release", "0.10.2", "--data-parallel-size", "2")
    assert "\nprocess_start_time_seconds " in page_of(server)


def test_each_engine_has_its_own_samples(make_server):
    page = page_of(make_server("--data-parallel-size", "2"))
    assert 'vllm:generation_tokens_total{engine="0",model_name="simulated"} 0.0' in page
    assert 'vllm:generation_tokens_total{engine="1",model_name="simulated"} 0.0' in page


def test_log_stats_can_be_off(make_server):
    page = page_of(make_server("--disable-log-stats"))
    assert "vllm:" not in page
    assert "process_start_time_seconds" in page


def test_a_page_is_as_long_as_a_real_one_and_can_be_made_longer(make_server):
    assert len(page_of(make_server()).splitlines()) >= 550
    assert len(page_of(make_server("--extra-metrics-lines", "5000")).splitlines()) >= 5550


def test_a_long_page_can_be_parsed(make_server):
    page = page_of(make_server("--extra-metrics-lines", "5000"))
    assert len(list(text_string_to_metric_families(page))) > 50


def test_hostile_names_of_models_are_escaped(make_server):
    name = 'a"b\\c\nd{e="f"} 1'
    page = page_of(make_server("--served-model-name", name))
    names = {sample.labels.get("model_name") for family in text_string_to_metric_families(page)
             for sample in family.samples}
    assert names == {None, name}


@pytest.mark.parametrize(("value", "text"), [
    (0, "0.0"), (12, "12.0"), (0.25, "0.25"), (1319, "1319.0"), (123456.0, "123456.0"),
    (1.79598384015e9, "1.79598384015e+09"), (1613530.0, "1.61353e+06"), (1e7, "1e+07"),
])
def test_numbers_are_written_as_prometheus_client_writes_them(value, text):
    assert number(value) == text


def test_labels_are_escaped():
    assert escape('\\ " \n') == '\\\\ \\" \\n'


def test_buckets_add_up(make_server):
    server = make_server()
    ask_of_everything(server)
    page = page_of(server)
    assert 'vllm:iteration_tokens_total_bucket{engine="0",le="1.0",model_name="simulated"} 1.0' in page
    assert 'vllm:iteration_tokens_total_bucket{engine="0",le="+Inf",model_name="simulated"} 2.0' in page
    assert 'vllm:iteration_tokens_total_count{engine="0",model_name="simulated"} 2.0' in page
