"""How long a run may watch a silent server."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.filter.longest_patience import longest_patience


class Broken(dict):
    """Variables of which one cannot be rendered."""

    def __getitem__(self, name):
        raise RuntimeError(f"{name} needs a secret")


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({}, 120),
        ({"vllm_check_patience": 10}, 120),
        ({"vllm_check_patience": "300"}, 300),
        ({"vllm_servers": [{"patience": 500}, {}]}, 500),
        ({"vllm_check_patience": 300, "vllm_servers": [{"patience": 30}]}, 120),
        ({"vllm_check_patience": 300, "vllm_servers": [{"patience": 30}, {}]}, 300),
        ({"vllm_check_patience": "soon"}, 120),
        ({"vllm_check_patience": float("inf")}, 120),
        ({"vllm_servers": "nonsense"}, 120),
        ({"vllm_servers": ["nonsense", None]}, 120),
        (Broken(), 120),
    ],
)
def test_it_is_that_of_the_most_patient_server(variables, seconds):
    other = {"vllm_servers": [{"patience": 120}]}
    assert longest_patience({"a": variables, "b": other}, ["a", "b"]) == seconds


def test_a_host_whose_setting_is_wrong_is_not_watched_at_all():
    assert longest_patience({"a": {"vllm_check_patience": "soon"}, "b": {"vllm_check_patience": 10}}, ["a", "b"]) == 10


def test_only_the_hosts_that_are_checked_count():
    assert longest_patience({"a": {"vllm_check_patience": 10}, "b": {"vllm_check_patience": 900}}, ["a"]) == 10
