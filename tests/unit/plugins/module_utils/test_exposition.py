"""From the text of /metrics to samples: what each release writes, and what nobody should."""

import importlib.util
import sys

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import exposition
from ansible_collections.fleetcheck.vllm.plugins.module_utils.exposition import Page, Sample, Unparseable, parse
from hypothesis import given, settings
from hypothesis import strategies as st

START = "process_start_time_seconds 1.79598384015e+09\n"


def page(text):
    return parse(text.encode("utf-8"))


def only(text):
    """The one sample of a page with one engine."""
    engines = page(text).engines
    assert list(engines) == ["0"]
    return engines["0"]


# What the releases write

V0_FRESH = """\
# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",cache_dtype="auto",num_gpu_blocks="682"} 1.0
"""

V0_BUSY = """\
vllm:cache_config_info{block_size="16",cache_dtype="auto",num_gpu_blocks="682"} 1.0
vllm:lora_requests_info{max_lora="0",running_lora_adapters="",waiting_lora_adapters=""} 1.795983721e+09
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="big"} 3.0
vllm:num_requests_waiting{model_name="big"} 1.0
vllm:gpu_cache_usage_perc{model_name="big"} 0.25
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{model_name="big"} 0.0
vllm:prompt_tokens_total{model_name="big"} 34.0
vllm:generation_tokens_total{model_name="big"} 245.0
vllm:request_success_total{finished_reason="length",model_name="big"} 2.0
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{le="1.0",model_name="big"} 60.0
vllm:iteration_tokens_total_bucket{le="+Inf",model_name="big"} 93.0
vllm:iteration_tokens_total_sum{model_name="big"} 279.0
vllm:iteration_tokens_total_count{model_name="big"} 93.0
"""

TWO_NAMES_OF_THE_CACHE = """\
vllm:num_requests_running{engine="0",model_name="tiny"} 2.0
vllm:num_requests_waiting{engine="0",model_name="tiny"} 0.0
vllm:gpu_cache_usage_perc{engine="0",model_name="tiny"} 0.25
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25
vllm:gpu_prefix_cache_queries_total{engine="0",model_name="tiny"} 16.0
"""

CURRENT = """\
process_start_time_seconds 1.79598384015e+09
vllm:estimated_flops_per_gpu_total{engine="0",model_name="big"} 12.0
vllm:estimated_flops_per_gpu_created{engine="0",model_name="big"} 1.7959838703673034e+09
vllm:spec_decode_num_drafts_total{engine="0",model_name="big"} 4.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="big",position="0"} 3.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="big",position="1"} 2.0
vllm:num_requests_running{engine="0",model_name="big"} 3.0
vllm:num_requests_waiting{engine="0",model_name="big"} 5.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="big",reason="capacity"} 5.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="big",reason="deferred"} 0.0
vllm:engine_sleep_state{engine="0",model_name="big",sleep_state="awake"} 1.0
vllm:engine_sleep_state{engine="0",model_name="big",sleep_state="weights_offloaded"} 0.0
vllm:engine_sleep_state{engine="0",model_name="big",sleep_state="discard_all"} 0.0
vllm:kv_cache_usage_perc{engine="0",model_name="big"} 0.0176
vllm:num_preemptions_total{engine="0",model_name="big"} 1.0
vllm:prompt_tokens_total{engine="0",model_name="big"} 34.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="big",source="local"} 34.0
vllm:generation_tokens_total{engine="0",model_name="big"} 416.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="big"} 1.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="big"} 2.0
vllm:request_success_total{engine="0",finished_reason="abort",model_name="big"} 64.0
vllm:iteration_tokens_total_count{engine="0",model_name="big"} 150.0
http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 3.0
"""

ASLEEP = """\
vllm:engine_sleep_state{engine="0",model_name="tiny",sleep_state="awake"} 0.0
vllm:engine_sleep_state{engine="0",model_name="tiny",sleep_state="weights_offloaded"} 1.0
vllm:engine_sleep_state{engine="0",model_name="tiny",sleep_state="discard_all"} 0.0
"""


def test_v0_before_its_first_request_has_one_engine_of_which_nothing_is_known():
    assert page(V0_FRESH) == Page(True, None, {"0": Sample({})})


def test_v0_has_no_engine_label_and_the_old_name_of_the_cache():
    counters = {
        "num_preemptions_total": 0.0,
        "prompt_tokens_total": 34.0,
        "generation_tokens_total": 245.0,
        "request_success_total": 2.0,
        "iteration_tokens_total_count": 93.0,
    }
    assert page(V0_BUSY) == Page(True, None, {"0": Sample(counters, 3.0, 1.0, 0.25)}, ("big",))


def test_0_10_writes_the_usage_of_the_cache_under_two_names_and_it_counts_once():
    assert only(TWO_NAMES_OF_THE_CACHE) == Sample({}, 2.0, 0.0, 0.25)


def test_a_current_release():
    counters = {
        "estimated_flops_per_gpu_total": 12.0,
        "spec_decode_num_drafts_total": 4.0,
        "spec_decode_num_accepted_tokens_per_pos_total": 5.0,
        "num_preemptions_total": 1.0,
        "prompt_tokens_total": 34.0,
        "generation_tokens_total": 416.0,
        "request_success_total": 3.0,
        "iteration_tokens_total_count": 150.0,
    }
    assert page(CURRENT) == Page(True, 1795983840.15, {"0": Sample(counters, 3.0, 5.0, 0.0176, asleep=False)}, ("big",))


def test_what_gave_up_is_not_counted_as_success():
    text = 'vllm:request_success_total{engine="0",finished_reason="%s"} 64.0\n'
    assert only(text % "abort") == Sample({})
    assert only(text % "stop") == Sample({"request_success_total": 64.0})


def test_only_the_awake_state_tells_whether_an_engine_sleeps():
    assert only(ASLEEP).asleep is True
    assert only(ASLEEP.replace("0.0", "2.0").replace("1.0", "0.0")).asleep is False
    assert only(ASLEEP.split("\n", 1)[1]).asleep is None


def test_several_engines_are_told_apart_and_never_summed():
    text = "".join(
        'vllm:num_requests_running{engine="%d"} %d.0\nvllm:generation_tokens_total{engine="%d"} %d.0\n' % (at, at, at, 9 * at)
        for at in (1, 0, 10)
    )
    assert page(text).engines == {str(at): Sample({"generation_tokens_total": 9.0 * at}, float(at)) for at in (0, 1, 10)}


def test_absent_gauges_are_absent_and_count_as_nothing_in_flight():
    sample = only('vllm:generation_tokens_total{engine="0"} 0.0\n')
    assert (sample.running, sample.waiting, sample.kv_cache_usage, sample.asleep) == (None, None, None, None)
    assert sample.in_flight == 0


def test_running_and_waiting_are_in_flight():
    assert Sample({}, 3.0, 4.0).in_flight == 7
    assert Sample({}, None, 4.0).in_flight == 4


def test_every_model_name_is_kept_once_and_adapters_under_the_same_engine_are_summed():
    text = "".join('vllm:generation_tokens_total{engine="0",model_name="%s"} 2.0\n' % name for name in "bab")
    assert page(text).models == ("b", "a")
    assert only(text).counters == {"generation_tokens_total": 6.0}


def test_a_page_and_its_samples_cannot_be_changed():
    shown = page(CURRENT)
    with pytest.raises(TypeError):
        shown.engines["1"] = Sample({})
    with pytest.raises(TypeError):
        shown.engines["0"].counters["generation_tokens_total"] = 0.0
    with pytest.raises(AttributeError):
        shown.start_time = 0.0
    with pytest.raises(AttributeError):
        shown.engines["0"].running = 0.0


# Which lines count


def test_a_page_without_vllm_series_is_not_vllm():
    assert page("up 1\n" + START) == Page(False, 1795983840.15, {})


def test_a_comment_about_a_series_is_no_series():
    assert page("# HELP vllm:num_requests_running Number\n# TYPE vllm:num_requests_running gauge\n") == Page(False, None, {})


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "\n\n# HELP a b\n\n"])
def test_an_empty_page_says_nothing(text):
    assert page(text) == Page(False, None, {})


def test_the_lines_that_cannot_matter_are_not_even_parsed():
    nonsense = b'vllm:e2e_request_latency_seconds_bucket{le="0.3" \xff} nonsense\nhttp_requests_total{ 1 1 1\n{}\n'
    body = nonsense * 20_000 + b"vllm:num_requests_running 1.0\n" + nonsense
    assert parse(body).engines["0"] == Sample({}, 1.0)


@pytest.mark.parametrize(
    "name",
    [
        "vllm:num_requests_running_total",
        "vllm:num_requests_swapped",
        "vllm:num_requests_waiting_by_reason",
        "vllm:iteration_tokens_total_sum",
        "vllm:iteration_tokens_total_created",
        "vllm:request_success_created",
        "vllm:request_success_total_created",
        "vllm:estimated_flops_per_gpu_created",
        "vllm:prompt_tokens_by_source_total",
        "vllm:time_to_first_token_seconds_count",
        "xvllm:num_requests_running",
        "vllm_num_requests_running",
        "ray_vllm:num_requests_running",
        "process_start_time_seconds_created",
        "http_requests_total",
        "VLLM:num_requests_running",
    ],
)
def test_similar_names_are_other_series(name):
    shown = page("%s 5.0\nvllm:cache_config_info 1.0\n" % name)
    assert shown == Page(True, None, {"0": Sample({})})


def test_a_name_in_the_middle_of_a_line_is_no_series():
    assert page('up{text="vllm:num_requests_running 5"} vllm:num_requests_running 5.0\n') == Page(False, None, {})


# How numbers may be written


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("3", 3.0),
        ("3.0", 3.0),
        ("3e0", 3.0),
        ("3.0 1795983840150", 3.0),  # with a timestamp
        ("  3.0", 3.0),
        ("3.0\r", 3.0),
        ("-0.0", 0.0),
        ("1.79598384015e+09", 1795983840.15),
    ],
)
def test_a_value_is_read_however_it_is_written(written, value):
    assert only("vllm:num_requests_running %s\n" % written).running == value


@pytest.mark.parametrize("written", ["NaN", "nan", "Inf", "+Inf", "-Inf", "1e400", "1e300", "-1e30"])
def test_what_is_no_amount_of_anything_is_as_good_as_absent(written):
    text = "vllm:num_requests_running %s\nvllm:generation_tokens_total %s\nprocess_start_time_seconds %s\n"
    assert page(text % (written, written, written)) == Page(True, None, {"0": Sample({})})


def test_the_floating_point_operations_of_years_still_count():
    assert only("vllm:estimated_flops_per_gpu_total 1e25\n").counters == {"estimated_flops_per_gpu_total": 1e25}


def test_a_page_of_a_windows_hand_is_read_too():
    assert parse(CURRENT.replace("\n", "\r\n").encode()) == page(CURRENT)


@pytest.mark.parametrize("written", ["", "x", "3.0.0", "0x10", "--3", "3,0", '"3"', "3 x"])
def test_a_value_that_is_no_number_makes_the_page_unparseable(written):
    with pytest.raises(Unparseable):
        page("vllm:num_requests_running %s\n" % written)


@pytest.mark.parametrize("written", [b"\xff\xfe", b"\xc3(", b"\xed\xa0\x80"])
def test_a_series_that_is_not_utf_8_makes_the_page_unparseable(written):
    with pytest.raises(Unparseable):
        parse(b'vllm:num_requests_running{model_name="%s"} 3.0\n' % written)


# Pages that break off


@pytest.mark.parametrize("left_out", range(1, 5))
def test_a_page_whose_last_line_is_cut_is_unparseable(left_out):
    with pytest.raises(Unparseable):
        page("vllm:cache_config_info 1.0\nvllm:generation_tokens_total 4711\n"[:-left_out])


def test_a_cut_is_found_in_lines_that_do_not_matter_too():
    with pytest.raises(Unparseable):
        page("vllm:num_requests_running 3.0\nup 1")


# Labels


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("org/model-7b", "org/model-7b"),
        (r"C:\\models\\llama", "C:\\models\\llama"),
        (r"a \"quoted\" one", 'a "quoted" one'),
        (r"two\nlines", "two\nlines"),
        ("with } and { and , and =", "with } and { and , and ="),
        ("with # and spaces ", "with # and spaces "),
        ("vllm:num_requests_running 7", "vllm:num_requests_running 7"),
        ("caf\u00e9 \u6a21\u578b", "caf\u00e9 \u6a21\u578b"),
        ("line\u2028separator \x0b\x0c\x1c\x85", "line\u2028separator \x0b\x0c\x1c\x85"),
        ("", ""),
    ],
)
def test_a_model_may_be_called_anything(written, name):
    shown = page('vllm:num_requests_running{engine="0",model_name="%s"} 3.0\n' % written)
    assert shown == Page(True, None, {"0": Sample({}, 3.0)}, (name,))


def test_of_many_names_of_models_only_the_first_are_kept_and_in_full():
    lines = ['vllm:num_requests_running{model_name="%d%s"} 1\n' % (at, "x" * 5000) for at in range(100)]
    models = page("".join(lines)).models
    # A probe must name the model as the server does.
    assert len(models) == 20 and min(map(len, models)) > 5000


@pytest.mark.parametrize("label", ["0", "7", "1023", "dp-0", "0_1"])
def test_an_engine_may_be_called_as_engines_are(label):
    assert list(page('vllm:num_requests_running{engine="%s"} 1\n' % label).engines) == [label]


@pytest.mark.parametrize(
    "label", ["", " ", r"0\n1", r"0\\", "0\x1b[2J", "0\u202e1", "\u0660", "0\r", "x" * 1000, "a b", r"\"", "0;1"]
)
def test_an_engine_with_a_name_that_could_do_harm_makes_the_page_unparseable(label):
    # It goes into messages, and into the header of a probe.
    with pytest.raises(Unparseable):
        page('vllm:num_requests_running{engine="%s"} 1\n' % label)


@pytest.mark.parametrize(
    "labels", ['{engine="0"', '{engine="0}', "{engine}", "{engine=0}", '{="0"}', '{engine="0"}}', '{engine="0" "1"}']
)
def test_labels_that_are_not_written_as_labels_never_pass_for_a_number(labels):
    try:
        engines = page("vllm:num_requests_running%s 5.0\n" % labels).engines
    except Unparseable:
        return
    assert set(engines) <= {"0"}  # some versions of the parser forgive what cannot be misunderstood


def test_the_same_series_twice_is_summed_and_the_last_usage_and_start_count():
    text = "vllm:num_requests_running 3.0\nvllm:kv_cache_usage_perc 0.5\nprocess_start_time_seconds 100.0\n"
    shown = page(text + text.replace("0.5", "0.25").replace("100", "200"))
    assert shown == Page(True, 200.0, {"0": Sample({}, 6.0, None, 0.25)})


def test_more_series_than_any_server_has_are_not_parsed(monkeypatch):
    line = 'vllm:generation_tokens_total{engine="%d"} 1\n'
    assert len(page("".join(line % at for at in range(512))).engines) == 512
    with pytest.raises(Unparseable):
        page("".join(line % at for at in range(513)))
    monkeypatch.setattr(exposition, "MOST_LINES", 10)
    assert len(page("".join(line % at for at in range(10))).engines) == 10
    with pytest.raises(Unparseable):
        page("".join(line % at for at in range(11)))


def test_the_name_of_a_series_has_an_end():
    assert page("vllm:spec_decode_%s_total 5\n" % ("x" * 1000)) == Page(True, None, {"0": Sample({})})


# Whatever comes

LINES = st.one_of(
    st.sampled_from([*CURRENT.splitlines(), *V0_BUSY.splitlines(), *ASLEEP.splitlines()]).map(str.encode),
    st.binary(max_size=40),
    st.tuples(
        st.sampled_from([b"vllm:num_requests_running", b"vllm:generation_tokens_total", b"process_start_time_seconds"]),
        st.sampled_from([b" ", b"{", b'{engine="', b'{engine="0",model_name="', b'{"', b'{__name__="']),
        st.binary(max_size=20),
        st.sampled_from([b"", b'"} 1', b"} 1", b" 1", b'"} NaN']),
    ).map(b"".join),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(LINES, max_size=8), st.booleans())
def test_any_bytes_are_a_page_or_unparseable(lines, ended):
    body = b"\n".join(lines) + (b"\n" if ended else b"")
    try:
        shown = parse(body)
    except Unparseable as error:
        assert len(str(error)) < 50 and str(error).isprintable()  # our own words
        return
    assert shown.is_vllm == any(line.startswith(b"vllm:") for line in body.split(b"\n"))
    assert not shown.is_vllm or shown.engines
    for sample in shown.engines.values():
        assert abs(sample.in_flight) < 1e32


@settings(max_examples=50, deadline=None)
@given(st.integers(0, len(CURRENT)))
def test_a_page_cut_anywhere_never_shows_a_number_that_the_whole_one_does_not_have(length):
    whole = page(CURRENT)
    try:
        cut = page(CURRENT[:length])
    except Unparseable:
        return
    assert cut.start_time in (None, whole.start_time)
    for sample in cut.engines.values():
        assert sample.counters.items() <= {**whole.engines["0"].counters, **sample.counters}.items()
        assert sample.running in (None, 3.0) and sample.waiting in (None, 5.0)


def test_without_prometheus_client_the_room_can_still_be_entered(monkeypatch):
    for name in ("prometheus_client", "prometheus_client.parser"):
        monkeypatch.setitem(sys.modules, name, None)
    spec = importlib.util.spec_from_file_location(exposition.__name__ + "_without_its_parser", exposition.__file__)
    without = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, without)
    spec.loader.exec_module(without)
    assert "prometheus_client" in without.PROMETHEUS_IMPORT_ERROR
    assert exposition.PROMETHEUS_IMPORT_ERROR is None


def test_a_line_that_no_server_writes_is_refused_before_it_costs_time():
    labels = ",".join('l%d="x"' % number for number in range(20_000))
    with pytest.raises(exposition.Unparseable, match="longer line"):
        exposition.parse(b"vllm:num_requests_running{%s} 1\n" % labels.encode())
