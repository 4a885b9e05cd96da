"""From a module's parameters to targets; what cannot be right is said with the option, the value and what would be."""

import math

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import exposition, options, reading
from ansible_collections.fleetcheck.vllm.plugins.module_utils.options import OptionError, targets

KEY = "geheim-4711"


def server(**given):
    """One of `servers` as Ansible hands it over: every suboption is there."""
    return {**{name: spec.get("default") for name, spec in options.SERVER_SPEC.items()}, **given}


def params(*servers, **given):
    defaults = {name: spec.get("default") for name, spec in options.ARGUMENT_SPEC.items()}
    return {**defaults, "servers": list(servers or [server()]), **given}


def one(*servers, check_mode=False, **given):
    """The name and the target of the only server."""
    names, made = targets(params(*servers, **given), check_mode)
    (name,), (target,) = names, made
    return name, target


def error(*servers, **given):
    with pytest.raises(OptionError) as raised:
        targets(params(*servers, **given), False)
    return str(raised.value)


# What is right


def test_without_options_it_is_the_server_on_port_8000():
    name, target = one()
    assert name == target.server.endpoint.url == "http://127.0.0.1:8000"
    assert target.kind == "backend"
    assert (target.limits.patience, target.limits.startup_grace, target.limits.probe) == (120.0, 900.0, True)
    assert (target.server.timeout, target.server.unit, target.server.scope, target.server.model) == (10.0, None, "system", None)
    assert (target.server.endpoint.api_key, target.server.endpoint.verify) == (None, True)


def test_a_server_is_called_by_its_name_or_its_unit_or_its_url():
    assert one(server(name="chat", unit="vllm.service"))[0] == "chat"
    assert one(server(unit="vllm.service"))[0] == "vllm.service"
    assert one(server(url="http://127.0.0.1:9000/"))[0] == "http://127.0.0.1:9000"


def test_the_servers_keep_their_order():
    names, made = targets(params(server(name="b"), server(name="a", kind="proxy"), server(name="c")), False)
    assert names == ["b", "a", "c"]
    assert [target.kind for target in made] == ["backend", "proxy", "backend"]


def test_what_a_server_says_for_itself_comes_first():
    own = one(server(patience=300.0, startup_grace=0.0), patience=60.0, startup_grace=600.0)[1].limits
    assert (own.patience, own.startup_grace) == (300.0, 0.0)
    general = one(server(), patience=60.0, startup_grace=600.0)[1].limits
    assert (general.patience, general.startup_grace) == (60.0, 600.0)


@pytest.mark.parametrize(
    ("probe", "check_mode", "allowed"), [(True, False, True), (True, True, False), (False, False, False), (False, True, False)]
)
def test_a_probe_is_allowed_unless_an_option_or_check_mode_forbids_it(probe, check_mode, allowed):
    assert one(probe=probe, check_mode=check_mode)[1].limits.probe is allowed


def test_certificates_are_checked_with_the_systems_or_the_given_authorities_or_not_at_all(tmp_path):
    assert one(validate_certs=True)[1].server.endpoint.verify is True
    assert one(validate_certs=True, ca_path=str(tmp_path))[1].server.endpoint.verify == str(tmp_path)
    assert one(validate_certs=False, ca_path=str(tmp_path))[1].server.endpoint.verify is False


def test_the_other_options_reach_the_server():
    _name, target = one(server(api_key=KEY, model="llama", unit="vllm.service", scope="user"), timeout=2.5)
    core = target.server
    assert (core.endpoint.api_key, core.model, core.unit, core.scope, core.timeout) == (
        KEY,
        "llama",
        "vllm.service",
        "user",
        2.5,
    )


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000///", "http://127.0.0.1:8000"),
        ("http://gpu-07", "http://gpu-07"),
        ("https://llm.example.com/team/a/", "https://llm.example.com/team/a"),
        ("HTTP://GPU-07:8000", "http://GPU-07:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://[fe80::1%25eth0]:8000/", "http://[fe80::1%25eth0]:8000"),
        ("http://127.0.0.1:65535", "http://127.0.0.1:65535"),
        ("http://127.0.0.1:8000/v1beta", "http://127.0.0.1:8000/v1beta"),
    ],
)
def test_a_base_url_loses_nothing_but_its_trailing_slashes(url, base):
    assert one(server(url=url))[1].server.endpoint.url == base


# What is wrong


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8000",
        "gpu-07",
        "ftp://gpu-07",
        "file:///etc/passwd",
        "unix:///run/vllm.sock",
        "http://",
        "http:///metrics",
        "http://:8000",
        "http://gpu-07:0",
        "http://gpu-07:99999",
        "http://gpu-07:port",
        "http://[::1",
        "http://gpu-07:8000/v1",
        "http://gpu-07:8000/v1/",
        "http://gpu-07:8000/team/v1",
        "http://gpu-07:8000?x=1",
        "http://gpu-07:8000/#x",
        "http://gpu 07:8000",
        "http://gpu-07:8000/a b",
        " http://gpu-07:8000",
        "http://gpu-07:8000/\n",
        "http://gpu-07:8000\r\nX-Evil: 1",
        "http://gpu\u200b-07:8000",
    ],
)
def test_what_is_no_base_url_is_named_with_what_is(url):
    said = error(server(), server(url=url))
    assert said.startswith("servers[1].url is %r: " % url)
    assert "http://127.0.0.1:8000, without /v1" in said


@pytest.mark.parametrize(
    "url",
    [
        "http://somebody:%s@gpu-07:8000" % KEY,
        "http://:%s@gpu-07:8000" % KEY,
        "http://%s@gpu-07:8000" % KEY,
        "http://somebody:%s@gpu-07:99999" % KEY,
        "http://somebody:%s@[gpu-07" % KEY,
        "http://somebody:%s/@gpu-07" % KEY,
        "http://gpu-07:8000/?x@%s" % KEY,
        "ftp://somebody:%s@gpu-07" % KEY,
        "//somebody:%s@gpu-07" % KEY,
        "somebody:%s@gpu-07" % KEY,
    ],
)
def test_a_password_in_a_url_is_refused_and_not_shown(url):
    said = error(server(url=url))
    assert said.startswith("servers[0].url is '(not shown)': ")
    assert KEY not in said


@pytest.mark.parametrize("key", ["", KEY + "\n", KEY + "\r\nX-Evil: 1", "\t" + KEY, KEY + "\u00e9", KEY + "\x00"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key):
    said = error(server(api_key=key))
    assert said.startswith("servers[0].api_key is '(not shown)': ") and "printable ASCII" in said
    assert KEY not in said


@pytest.mark.parametrize("unit", ["", "-x", "a b.service", "../x.service", "vllm;reboot", "vllm*.service"])
def test_what_cannot_be_a_unit_is_named_with_what_can(unit):
    said = error(server(unit=unit))
    assert said.startswith("servers[0].unit is %r: " % unit) and "vllm.service" in said


@pytest.mark.parametrize("value", [0.0, 0.5, -1.0, math.nan, math.inf, -math.inf, 1e12])
def test_a_patience_that_proves_nothing_or_never_ends(value):
    assert error(patience=value).startswith("patience is %r: it must be a number of seconds, 1 or more" % value)
    assert error(server(), server(patience=value)).startswith("servers[1].patience is %r: " % value)


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, 1e12])
def test_a_startup_grace_that_cannot_be(value):
    assert error(startup_grace=value).startswith("startup_grace is %r: it must be a number of seconds, 0 or more" % value)
    assert error(server(startup_grace=value)).startswith("servers[0].startup_grace is %r: " % value)


@pytest.mark.parametrize("value", [0.0, 0.05, -1.0, math.nan, math.inf, 1e12])
def test_a_timeout_that_cannot_be(value):
    assert error(timeout=value).startswith("timeout is %r: it must be a number of seconds, 0.1 or more" % value)


def test_the_limits_themselves_are_fine():
    week = 7 * 24 * 3600.0
    assert one(patience=1.0, startup_grace=0.0, timeout=0.1)
    assert one(patience=week, startup_grace=week, timeout=week)


def test_a_general_threshold_that_no_server_uses_is_not_looked_at():
    assert one(server(patience=5.0), patience=math.nan)[1].limits.patience == 5.0


def test_authorities_that_are_not_there(tmp_path):
    missing = str(tmp_path / "ca.pem")
    said = error(ca_path=missing)
    assert said.startswith("ca_path is %r: " % missing) and "on this host" in said


@pytest.mark.parametrize("servers", [[], None])
def test_no_server_at_all(servers):
    with pytest.raises(OptionError, match=r"^servers is \[\]: name at least one"):
        targets({**params(), "servers": servers}, False)


# Libraries


class Module:
    """Stands in for AnsibleModule and keeps what it failed with."""

    def __init__(self):
        self.failed = None

    def fail_json(self, **said):
        self.failed = said


@pytest.mark.parametrize(
    ("room", "error_of", "package"),
    [
        (reading, "REQUESTS_IMPORT_ERROR", "requests"),
        (exposition, "PROMETHEUS_IMPORT_ERROR", "prometheus-client"),
    ],
)
def test_a_missing_library_is_named_in_ansibles_usual_words(monkeypatch, room, error_of, package):
    monkeypatch.setattr(room, error_of, "Traceback: said by the test")
    module = Module()
    options.require_libraries(module)
    assert "Failed to import the required Python library (%s)" % package in module.failed["msg"]
    assert module.failed["exception"] == "Traceback: said by the test"


def test_with_both_libraries_nothing_is_said():
    module = Module()
    options.require_libraries(module)
    assert module.failed is None
