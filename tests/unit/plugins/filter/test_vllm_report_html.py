"""The page as a filter: it takes reports and nothing else."""

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.fleetcheck.vllm.plugins.filter.vllm_report_html import vllm_report_html

REPORT = {"checked_at": "2026-11-29T22:00:00Z", "servers": []}


def test_a_report_becomes_a_page():
    assert str(vllm_report_html(REPORT)).startswith("<!doctype html>")


def test_earlier_reports_become_the_history_on_it():
    earlier = {"reports": [{"checked_at": "2026-11-29T21:55:00Z", "servers": []}], "left_out": []}
    assert "Last runs" in vllm_report_html(REPORT, earlier)


@pytest.mark.parametrize("wrong", [None, "", [], {}, {"servers": "none"}])
def test_what_is_no_report_is_named(wrong):
    with pytest.raises(AnsibleFilterError, match="vllm_fleet"):
        vllm_report_html(wrong)
