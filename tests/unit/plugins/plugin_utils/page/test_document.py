"""The page as a whole: what it says, and what it cannot be made to do."""

import base64
import hashlib
import re

import pytest
from ansible_collections.fleetcheck.vllm.plugins.plugin_utils.page.document import page

from tests.unit.plugins.plugin_utils.page.outline import Outline
from tests.unit.plugins.plugin_utils.page.samples import engine, fleet, row, run, unreachable

HOSTILE = (
    "<script>document.title='x'</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</style><style>*{display:none}</style>",
    "</title><base href=//evil.example>",
    "{{ lookup('ansible.builtin.pipe', 'id') }}",
    "{% for x in y %}{# no #}",
    "javascript:alert(1)",
    "&lt;b&gt; &amp; '",
)
TAGS = set(
    "html head meta title link style body main svg symbol path circle use rect g header h1 h2 h3 p time span strong ul ol li a section"
    " article table thead tbody tr th td dl div dt dd details summary footer bdi code".split()
)


def shown(*rows, **earlier):
    return Outline(page(fleet(*rows), earlier or None))


@pytest.mark.parametrize(
    ("rows", "headline", "rest"),
    [
        ([row("stuck"), row("stuck", "b"), row("dead", "c"), row("busy", "d")], "2 stuck, 1 dead", "of 4 servers on 4 hosts: 1 working"),
        ([row("stuck"), unreachable("b")], "1 stuck", "of 1 server on 2 hosts: 0 working, 1 not judged"),
        ([unreachable(), row("busy", "b")], "1 not judged", "of 1 server on 2 hosts: 1 working"),
        ([row("busy"), row("idle", name="b")], "All is well", "2 servers on 1 host: 2 working"),
        ([row("busy"), row("starting", "b")], "All is well", "2 servers on 2 hosts: 1 working, 1 starting"),
        ([row("idle", action="restarted", verdict_before="stuck", verdict_after="idle")], "All is well",
         "1 server on 1 host: 1 working, 1 restarted in this run"),
        ([], "No server was checked", None),
    ],
)  # fmt: skip
def test_the_top_says_what_is_wrong(rows, headline, rest):
    outline = shown(*rows)
    assert outline.texts("h1") == [headline]
    assert outline.texts("title") == [f"{headline} – vLLM fleet"]
    assert outline.texts("p", "rest") == ([rest] if rest else [])


def test_the_top_names_what_is_wrong_and_leads_to_its_card():
    outline = shown(row("busy", "c"), row("stuck", "a"), unreachable("b"), reports=[run(55, row("busy", "a"))])
    (listed,) = outline.all("ul", "wrong")
    assert listed.text == "a vllm.service stuck, no progress; new in this runb unknown, unreachable; new in this run"
    targets = [element.attributes["href"][1:] for element in outline.all("a")]
    heads = {element.attributes.get("id"): element.text for element in outline.all("h3")}
    assert [heads[target] for target in targets] == ["a vllm.service", "b"]


def test_a_fleet_that_is_all_wrong_does_not_make_the_top_endless():
    outline = shown(*(row("dead", f"gpu-{number}") for number in range(40)))
    assert (len(outline.all("a")), "and 28 more below" in outline.texts("ul", "wrong")[0]) == (12, True)


def test_each_server_is_a_card_worst_first():
    outline = shown(row("busy", "a"), row("stuck", "b"), unreachable("c"), row("sleeping", "d"))
    cards = [(element.classes[1], "small" in element.classes) for element in outline.all("article")]
    assert cards == [("bad", False), ("unsure", False), ("resting", False), ("fine", True)]


def test_a_card_says_the_verdict_the_reason_and_the_sentence():
    (card,) = shown(row("stuck", message="nothing moved in 14 reads over 121 s")).all("article")
    for said in ("gpu-01", "vllm.service", "stuck", "no progress", "nothing moved in 14 reads over 121 s", "llama-70b", "0.32.0"):
        assert said in card.text


def test_engines_are_a_table_with_bars_to_one_measure_for_the_whole_page():
    outline = shown(row(engines=[engine("0", running=10.0, kv_cache_usage=0.93), engine("1", running=5.0, silent_for=121.0)]))
    assert outline.texts("th") == ["Engine", "Running", "Waiting", "KV cache", "Tokens/s", "Silent", "0", "1"]
    assert outline.texts("td") == ["10", "0", "93 %", "214", "–", "5", "0", "50 %", "214", "121 s"]
    assert [element.attributes["width"] for element in outline.all("rect", "fill")] == ["100.0", "0.0", "93.0", "50.0", "0.0", "50.0"]


def test_one_engine_needs_no_label_and_an_engine_of_which_nothing_is_known_no_row():
    assert shown(row()).texts("th") == ["Running", "Waiting", "KV cache", "Tokens/s"]
    assert shown(row(engines=[engine(silent_for=0.28)])).texts("th") == ["Running", "Waiting", "KV cache", "Tokens/s"]
    assert shown(row(engines=[engine(running=None, waiting=None)])).all("table") == []


def test_what_was_done_is_told():
    outline = shown(row("stuck", action="restarted", action_message="it answered after 81 s", verdict_before="stuck",
                        verdict_after="idle", seconds_down=94.2, evidence="/var/lib/fleetcheck/evidence/x"))
    (deed,) = outline.all("div", "deed")
    assert deed.text == ("Restarted stuck before, idle after, down 94 sit answered after 81 s"
                         "Evidence on the host: /var/lib/fleetcheck/evidence/x")
    assert outline.texts("p", "message") == ["Before: 2 running, 0 waiting"]


def test_why_nothing_was_done_is_told():
    (deed,) = shown(row("stuck", action="over_run_limit", action_message="one restart a run")).all("div", "deed")
    assert (deed.text, deed.classes) == ("Not restarted: over run limit one restart a run", ["deed", "held"])


def test_a_dry_run_is_told_as_one():
    (deed,) = shown(row("stuck", action="would_restart", verdict_before="stuck")).all("div", "deed")
    assert deed.text == "Would be restarted (dry run) "


def test_the_last_runs_are_told_with_what_changed():
    outline = shown(row("stuck"), reports=[run(45, row("busy")), run(50, row("idle")), run(55, row("stuck"))])
    assert outline.texts("span", "when") == [
        "2026-11-29 21:55:00 UTC to 22:00:00 UTC (2 runs)", "2026-11-29 21:45:00 UTC to 21:50:00 UTC (2 runs)",
    ]  # fmt: skip
    assert outline.texts("ul", "changes") == ["gpu-01 vllm.service: stuck, was idle"]
    (strip,) = outline.all("svg", "strip")
    assert strip.attributes["aria-label"] == "last 4 runs: 1 busy, 1 idle, 2 stuck"


def test_files_that_could_not_be_used_are_named():
    outline = shown(row(), reports=[], left_out=[{"file": f"{number}.json", "why": "it is no JSON"} for number in range(7)])
    (said,) = outline.texts("div", "left-out")
    assert "0.json: it is no JSON" in said and "and 2 more" in said


def hostile_page():
    rows = [
        row("busy", text, text, message=text, reason=text, url=text, unit=text, models=[text], vllm_version=text,
            action=text, action_message=text, verdict_before=text, evidence=text, engines=[engine(text)],
            systemd={"active_state": text, "sub_state": text, "started_at": text})
        for text in HOSTILE
    ]  # fmt: skip
    rows += [row(text, "h", text) for text in HOSTILE]
    earlier = {
        "reports": [{"checked_at": text, "servers": [{"host": text, "name": text, "verdict": text}]} for text in HOSTILE],
        "left_out": [{"file": text, "why": text} for text in HOSTILE],
    }
    return page(fleet(*rows, at=HOSTILE[0]), earlier)


def test_what_hosts_and_servers_say_becomes_no_element_and_no_attribute():
    outline = Outline(hostile_page())
    assert {element.tag for element in outline.elements} == TAGS
    assert not [name for element in outline.elements for name in element.attributes if name.startswith("on")]
    links = [element.attributes["href"] for element in outline.elements if "href" in element.attributes]
    assert all(re.match("#|data:image/svg", link) for link in links)


def test_what_hosts_and_servers_say_is_still_there_to_be_read():
    (body,) = Outline(hostile_page()).all("body")
    for text in HOSTILE:
        assert text in body.text


def test_no_template_of_ansible_is_in_the_page():
    assert not re.search(r"\{\{|\{%|\{#|\}\}|%\}|#\}", hostile_page())


def test_the_policy_allows_one_style_and_pictures_in_the_page_and_nothing_else():
    text = page(fleet(row()))
    (style,) = Outline(text).texts("style")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = [element.attributes["content"] for element in Outline(text).all("meta")
                 if element.attributes.get("http-equiv") == "Content-Security-Policy"]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def test_the_page_asks_for_nothing_from_elsewhere():
    text = page(fleet(row("stuck"), unreachable("b")))
    assert not re.search(r"""(src|srcset|action|poster)=|@import|url\(|https?://(?!127\.0\.0\.1|www\.w3\.org/2000/svg)""", text)


def test_a_thousand_servers_make_no_page_that_a_phone_cannot_load():
    rows = [row("busy", f"gpu-{number}") for number in range(1000)]
    text = page(fleet(*rows), {"reports": [run(minute, *rows) for minute in range(29)]})
    assert len(text) < 2_000_000
