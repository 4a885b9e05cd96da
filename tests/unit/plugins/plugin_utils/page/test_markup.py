"""Only what the page's own code writes is HTML."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.plugin_utils.page.markup import Markup, name, tag, text, together


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("Tom & \"Jerry's\"", "Tom &amp; &quot;Jerry&#x27;s&quot;"),
        ("{{ 7 * 7 }} {% raw %} {# no #}", "&#123;&#123; 7 * 7 &#125;&#125; &#123;% raw %&#125; &#123;# no #&#125;"),
        ("two\nlines\x1b[31m\u202e\ud800", "two lines?[31m??"),
    ],
    ids=["elements", "quotes", "templates of Ansible", "control characters and half characters"],
)
def test_what_others_say_stays_text(said, shown):
    assert text(said) == shown


def test_text_is_cut_before_it_is_escaped():
    assert text("<" * 50, 10) == "&lt;" * 7 + "..."


def test_content_that_is_no_markup_is_escaped_by_the_element_around_it():
    assert tag("p", "<b>", Markup("<b>")) == "<p>&lt;b&gt;<b></p>"
    assert together("<", None, Markup("<")) == "&lt;<"


def test_a_value_cannot_leave_its_attribute():
    assert tag("a", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;"></a>'


def test_attributes_that_are_none_or_false_are_left_out():
    assert tag("p", class_="x", id=None, hidden=False, inert=True) == '<p class="x" inert></p>'
    assert tag("rect", width=0, aria_hidden="true") == '<rect width="0" aria-hidden="true"/>'


def test_a_name_keeps_its_direction_of_writing_to_itself():
    assert name("שלום", class_="host") == '<bdi class="host">שלום</bdi>'
