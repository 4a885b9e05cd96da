"""What pause.yml writes is what the guard of a restart reads."""

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.fleetcheck.vllm.plugins.filter.pause_mark import pause_mark
from ansible_collections.fleetcheck.vllm.plugins.module_utils import bounded
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart import pause

NOW = 1_796_000_000.0


def in_force(text, later):
    return pause.in_force(bounded.Text(text), NOW + later)


@pytest.mark.parametrize("hours", [2, 2.0, "2"])
def test_a_mark_holds_for_its_hours(hours):
    mark = pause_mark("new driver", "ann", hours, NOW)
    assert (in_force(mark, 7199).who, in_force(mark, 7199).why) == ("ann", "new driver")
    assert in_force(mark, 7200) is None


def test_no_hours_are_without_an_end():
    assert in_force(pause_mark("new driver", "ann", 0, NOW), 10**9).until is None


def test_nobody_is_somebody():
    assert in_force(pause_mark("new driver", "", 1, NOW), 0).who == "somebody"


@pytest.mark.parametrize("why", ["", "  "])
def test_without_a_reason_there_is_no_mark(why):
    with pytest.raises(AnsibleFilterError, match="vllm_pause_reason is empty"):
        pause_mark(why, "ann", 1, NOW)


@pytest.mark.parametrize("hours", ["soon", -1, None, "nan", "inf", 10**6])
def test_hours_that_are_none_are_named(hours):
    with pytest.raises(AnsibleFilterError, match="vllm_pause_hours is"):
        pause_mark("new driver", "ann", hours, NOW)


def test_what_looks_like_a_template_stays_text():
    mark = pause_mark("{{ lookup('pipe', 'id') }}", "ann", 1, NOW)
    assert in_force(mark, 0).why == "{{ lookup('pipe', 'id') }}"
