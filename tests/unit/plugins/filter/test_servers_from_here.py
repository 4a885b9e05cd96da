"""The servers of many hosts as one list for one run on the controller."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.filter.servers_from_here import servers_from_here


def urls(**hosts):
    return [server["url"] for server in servers_from_here(hosts, list(hosts))["options"]["servers"]]


@pytest.mark.parametrize("url", ["http://127.0.0.1:8001", "http://localhost:8001", "http://[::1]:8001", "http://0.0.0.0:8001"])
def test_a_loopback_address_is_the_host(url):
    assert urls(a={"vllm_servers": [{"url": url}], "ansible_host": "192.0.2.7"}) == ["http://192.0.2.7:8001"]


def test_an_address_of_its_own_stays():
    assert urls(a={"vllm_servers": [{"url": "https://llm.example.com/x"}], "ansible_host": "192.0.2.7"}) == [
        "https://llm.example.com/x"
    ]


def test_without_a_list_there_is_one_server_on_port_8000_of_the_host_by_its_name():
    assert urls(gpu1={}) == ["http://gpu1:8000"]


def test_an_address_of_ipv6_is_bracketed():
    assert urls(a={"ansible_host": "2001:db8::7"}) == ["http://[2001:db8::7]:8000"]


def test_units_are_told_by_place_and_not_asked():
    here = servers_from_here({"a": {"vllm_servers": [{"unit": "vllm.service", "scope": "user"}, {}]}}, ["a"])
    assert here["places"] == [("a", "vllm.service"), ("a", None)]
    assert [sorted(server) for server in here["options"]["servers"]] == [["name", "patience", "startup_grace", "url"]] * 2
    assert here["options"]["servers"][0]["name"] == "vllm.service"


def test_thresholds_are_those_of_the_server_then_of_its_host_then_the_usual_ones():
    hosts = {"a": {"vllm_servers": [{"patience": 7}, {}], "vllm_check_patience": 30}, "b": {}}
    here = servers_from_here(hosts, ["a", "b"])
    assert [server["patience"] for server in here["options"]["servers"]] == [7, 30, 120]
    assert here["longest"] == 120


def test_a_key_goes_along():
    here = servers_from_here({"a": {"vllm_servers": [{"api_key": "k"}]}}, ["a"])
    assert here["options"]["servers"][0]["api_key"] == "k"


def test_a_key_written_as_a_number_is_left_to_the_module_as_in_the_other_mode():
    here = servers_from_here({"a": {"vllm_servers": [{"api_key": 12345}]}}, ["a"])
    assert here["failed"] == {} and here["options"]["servers"][0]["api_key"] == 12345


class Unrenderable(dict):
    def get(self, name, default=None):
        raise ValueError("'vault_key' is undefined")


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"vllm_servers": "auto"}, "the servers must be listed"),
        ({"vllm_servers": [{"colour": "red"}]}, "colour"),
        ({"vllm_servers": [{"url": "gopher://x"}]}, "gopher"),
        ({"vllm_check_patience": "soon"}, "patience is 'soon'"),
        ({"vllm_check_patience": 0}, "1 or more"),
        ({"vllm_check_patience": 1209600}, "a week at most"),
        ({"vllm_servers": [{"kind": "prxy"}]}, "kind is 'prxy'"),
        ({"vllm_servers": [{"api_key": "a key\n"}]}, "api_key is"),
        ({"vllm_servers": '[{"api_key": "geheim"}]'}, "(a text)"),
        (Unrenderable(), "vault_key"),
        ({"vllm_servers": [{"api_key": "{{ vault_key }}"}]}, "api_key needs the variable vault_key, which is not defined"),
        ({"ansible_host": "{{ address }}"}, "ansible_host needs the variable address"),
    ],
)
def test_a_host_that_cannot_be_right_is_left_out_and_named(variables, why):
    here = servers_from_here({"a": variables, "b": {}}, ["a", "b"])
    assert why in here["failed"]["a"]
    assert here["places"] == [("b", None)]
    assert len(here["options"]["servers"]) == 1


def test_what_one_run_can_have_only_once_must_be_alike():
    unlike = servers_from_here({"a": {}, "b": {"vllm_check_timeout": 3, "vllm_check_probe": "no"}}, ["a", "b"])
    assert [said.split(":")[0] for said in unlike["wrong"]] == [
        "vllm_check_probe differs between hosts (false, true)",
        "vllm_check_timeout differs between hosts (10, 3)",
    ]
    alike = servers_from_here({"a": {"vllm_check_timeout": 3}, "b": {"vllm_check_timeout": 3}}, ["a", "b"])
    assert alike["options"]["timeout"] == 3
    assert alike["wrong"] == []


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [("timeout", 10, 10.0), ("timeout", "3", 3), ("probe", True, "true"), ("validate_certs", "no", False), ("ca_path", "", None), ("ca_path", "", "<<Omit>>")],
)
def test_two_spellings_of_one_value_are_alike(name, one, other):
    name = "vllm_check_" + name
    assert servers_from_here({"a": {name: one}, "b": {name: other}}, ["a", "b"])["wrong"] == []


@pytest.mark.parametrize("value", [None, "__omit_place_holder__8f3e", "<<Omit>>"])
def test_what_is_omitted_is_not_given(value):
    server = {"url": "http://127.0.0.1:8001", "patience": value, "api_key": value, "name": value}
    here = servers_from_here({"a": {"vllm_servers": [server], "vllm_check_patience": 30}}, ["a"])
    assert here["failed"] == {}
    assert here["options"]["servers"] == [
        {"url": "http://a:8001", "name": "http://127.0.0.1:8001", "patience": 30, "startup_grace": 900}
    ]


@pytest.mark.parametrize(
    ("servers", "shape"),
    [([], "'empty'"), (None, "'empty'"), ({"url": "http://k3y"}, "'one dictionary'"), (["http://k3y"], "'a list of other things'"), (8000, "'no list'")],
    ids=["no server", "null", "a dictionary", "texts", "a number"],
)
def test_servers_of_a_wrong_shape_are_named_without_what_is_in_them(servers, shape):
    here = servers_from_here({"a": {"vllm_servers": servers}, "b": {}}, ["a", "b"])
    assert "vllm_servers is %s: " % shape in here["failed"]["a"]
    assert "k3y" not in here["failed"]["a"]
    assert here["places"] == [("b", None)]
