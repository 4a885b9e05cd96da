"""What a person sees of the page, in a real browser: by day, by night, on a phone, and whatever the servers are called."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.fleetcheck.vllm.plugins.plugin_utils.page.document import page

from tests.integration.report.browser import Browser
from tests.integration.report.fleets import HOSTILE, bad_night, earlier, hostile, quiet_night

pytestmark = pytest.mark.chromium

DESKTOP, PHONE = (1400, 1000), (360, 780)
SCREENS = [(*DESKTOP, "light"), (*DESKTOP, "dark"), (*PHONE, "light"), (*PHONE, "dark")]

# Every text with its colour, the colour behind it, its size and its place.
TEXTS = """
(() => {
  const seen = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const number = colour => colour.match(/[\\d.]+/g).map(Number);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = number(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour.slice(0, 3);
      if (colour[3] > 0) return null;
    }
    return number(getComputedStyle(document.body).backgroundColor).slice(0, 3);
  };
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || element.closest("svg")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect(), style = getComputedStyle(element);
    seen.push({text: node.data, colour: number(style.color).slice(0, 3), behind: behind(element),
               size: parseFloat(style.fontSize), left: box.left, right: box.right, top: box.top, bottom: box.bottom,
               card: element.closest(".card, .hero")?.getBoundingClientRect().right ?? innerWidth});
  }
  return seen;
})()
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages by what they show."""
    folder = tmp_path_factory.mktemp("pages")
    pages = {
        "bad": page(bad_night(), earlier()),
        "quiet": page(quiet_night(), earlier()),
        "first": page(quiet_night()),
        "hostile": page(hostile(), {"reports": [], "left_out": [{"file": text, "why": text} for text in HOSTILE]}),
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


def contrast(one: t.Sequence[float], other: t.Sequence[float]) -> float:
    """Contrast of two colours as WCAG 2 has it."""

    def luminance(colour: t.Sequence[float]) -> float:
        parts = [part / 255 for part in colour]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("width", "height", "scheme"), SCREENS)
@pytest.mark.parametrize("name", ["bad", "quiet", "first", "hostile"])
def test_all_text_can_be_read(browser: Browser, files, pictures, name, width, height, scheme):
    browser.show(files[name], width, height, scheme)
    browser.screenshot(pictures / f"{name}-{width}-{scheme}.png")
    browser.run("document.querySelectorAll('details').forEach(one => { one.open = true })")
    texts = browser.run(TEXTS)
    assert len(texts) > 20
    for text in texts:
        assert text["behind"], text
        assert contrast(text["colour"], text["behind"]) >= 4.5, text
        assert text["size"] >= 12, text


@pytest.mark.parametrize("width", [360, 412, 768, 1400])
@pytest.mark.parametrize("name", ["bad", "quiet", "hostile"])
def test_nothing_hangs_over_the_edge(browser: Browser, files, name, width):
    browser.show(files[name], width)
    assert browser.run("document.documentElement.scrollWidth") == width
    browser.run("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert browser.run("document.documentElement.scrollWidth") == width
    for text in browser.run(TEXTS):
        assert text["left"] >= 0 and text["right"] <= text["card"] + 0.5, text


@pytest.mark.parametrize(("width", "height"), [DESKTOP, PHONE])
def test_the_first_screen_says_what_is_wrong_and_where(browser: Browser, files, width, height):
    browser.show(files["bad"], width, height)
    first = {text["text"] for text in browser.run(TEXTS) if text["bottom"] <= height}
    assert {"1 stuck, 1 dead", "gpu-07 vllm@chat.service", "gpu-03 vllm@chat.service", "gpu-11"} <= first
    head = browser.run("(({top, bottom}) => [top, bottom])(document.querySelector('h1').getBoundingClientRect())")
    assert head[1] <= 200


def test_a_name_at_the_top_leads_to_its_card(browser: Browser, files):
    browser.show(files["bad"], *PHONE)
    browser.run("document.querySelectorAll('.wrong a')[2].click()")
    card = browser.run(
        "(({top}, text) => [top, text])(document.querySelector(':target').getBoundingClientRect(),"
        " document.querySelector(':target').innerText)"
    )
    assert card == [pytest.approx(0, abs=PHONE[1] / 2), "gpu-11"]


def test_a_verdict_is_a_word_and_a_shape_of_its_own(browser: Browser, files):
    browser.show(files["bad"], *DESKTOP)
    badges = browser.run(
        "[...document.querySelectorAll('.badge')].map(one => [one.querySelector('span').textContent,"
        " one.querySelector('use').getAttribute('href'), one.querySelector('svg').getBoundingClientRect().width])"
    )
    shapes = {word: shape for word, shape, _ in badges}
    assert shapes["stuck"] == "#i-stuck" and len(set(shapes.values())) == len(shapes)
    assert all(width >= 12 for _, _, width in badges)


def test_day_and_night_look_different(browser: Browser, files):
    colours = []
    for scheme in ("light", "dark"):
        browser.show(files["bad"], *DESKTOP, scheme)
        colours.append(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(244, 245, 247)", "rgb(14, 17, 22)"]


def test_bars_are_as_long_as_what_they_stand_for(browser: Browser, files):
    browser.show(files["bad"], *DESKTOP)
    shares = browser.run(
        "[...document.querySelector('.card').querySelectorAll('.bar')].map(cell => {"
        " const [track, fill] = [...cell.querySelectorAll('rect')].map(one => one.getBoundingClientRect().width);"
        " return [cell.innerText.trim(), fill / track]; })"
    )
    assert shares == [["12", pytest.approx(12 / 37, 0.02)], ["37", pytest.approx(1)], ["93 %", pytest.approx(0.93, 0.02)]]


def test_readers_of_the_screen_find_their_way(browser: Browser, files):
    browser.show(files["bad"], *DESKTOP)
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    headings = {node["name"]["value"] for node in nodes if node["role"]["value"] == "heading"}
    assert {"1 stuck, 1 dead", "What needs a look", "gpu-07 vllm@chat.service", "Working", "Last runs"} <= headings
    cards = {node["name"]["value"] for node in nodes if node["role"]["value"] == "article"}
    assert {"gpu-07 vllm@chat.service", "gpu-11"} <= cards
    pictures = [node["name"]["value"] for node in nodes if node["role"]["value"] in ("image", "img")]
    assert "last 30 runs: 24 busy, 1 unknown, 5 stuck" in pictures


def test_the_page_asks_for_nothing_but_itself(browser: Browser, files):
    for file in files.values():
        browser.show(file, *DESKTOP)
        asked = [url for url in browser.requests() if not url.startswith("data:")]
        assert asked == [file.resolve().as_uri()]
        assert browser.complaints() == []


def test_what_servers_call_themselves_is_seen_as_they_wrote_it_and_does_nothing(browser: Browser, files):
    browser.show(files["hostile"], *DESKTOP)
    seen = browser.run("document.body.innerText")
    for text in HOSTILE:
        assert text in seen
    assert browser.run("window.ran") is None
    assert browser.run("document.title").endswith("vLLM fleet")
    assert browser.run("document.querySelectorAll('script, img, iframe, object, embed, base, form').length") == 0


def test_even_a_hole_in_the_page_would_run_no_script_and_ask_for_nothing(browser: Browser, files, tmp_path):
    hole = "<script>window.ran=1</script><img src='http://127.0.0.1:9/x' onerror='window.ran=1'><style>body{color:red}</style>"
    broken = tmp_path / "broken.html"
    broken.write_text(files["quiet"].read_text(encoding="utf-8").replace("<main>", f"<main>{hole}"), encoding="utf-8")
    browser.show(broken, *DESKTOP)
    assert browser.run("window.ran") is None
    assert browser.run("getComputedStyle(document.body).color") == "rgb(21, 24, 29)"
    assert len(browser.complaints()) >= 3
