"""Whatever a server does, one exchange ends in time, within its size, and with one of a few words."""

import concurrent.futures
import contextlib
import gzip
import importlib.util
import json
import socket
import sys
import threading

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import reading
from ansible_collections.fleetcheck.vllm.plugins.module_utils.reading import Answer, Endpoint, Failure

from tests.unit.plugins.module_utils import hostile
from tests.unit.plugins.module_utils.hostile import CHUNKED, OK, answers, drips, pours, resets, says

SOON = 0.2  # the deadline where it is what ends the exchange
LATE = 30.0  # the deadline where something else must
KEY = "geheim-4711"


@pytest.fixture
def serve():
    with contextlib.ExitStack() as servers:
        yield lambda behave, **how: servers.enter_context(hostile.Server(behave, **how))


def get(server, timeout=LATE, **how):
    return Endpoint(server.url, **how).get("/metrics", timeout)


def kind(read):
    assert isinstance(read, Failure), read
    assert read.kind in reading.KINDS and read.detail
    return read.kind


# What is read


def test_an_answer_is_its_status_its_body_and_its_type(serve):
    server = serve(answers(b"vllm:x 1\n", Content_Type="text/plain; version=0.0.4"))
    assert get(server) == Answer(200, b"vllm:x 1\n", "text/plain; version=0.0.4")


@pytest.mark.parametrize("status", ["204 No Content", "401 Unauthorized", "404 Not Found", "500 Oops", "503 Busy"])
def test_an_error_status_is_an_answer_too(serve, status):
    read = get(serve(answers(b"" if status.startswith("204") else b"no", status=status)))
    assert isinstance(read, Answer) and read.status == int(status[:3])


def test_a_body_in_chunks_is_put_together(serve):
    server = serve(says(CHUNKED + b"3\r\none\r\n4;name=value\r\ntwo\n\r\n0\r\nTrailer: x\r\n\r\n"))
    assert get(server) == Answer(200, b"onetwo\n")


def test_a_body_without_a_length_ends_with_the_connection(serve):
    assert get(serve(says(b"HTTP/1.0 200 OK\r\n\r\nfine"))) == Answer(200, b"fine")


def test_the_root_path_of_the_url_stays(serve):
    server = serve(answers())
    Endpoint(server.url + "/under/here").get("/metrics", LATE)
    assert server.requests[0].startswith(b"GET /under/here/metrics HTTP/1.1\r\n")


def test_a_post_carries_json_and_its_headers(serve):
    server = serve(answers())
    Endpoint(server.url).post("/v1/completions", {"max_tokens": 1}, LATE, {"X-data-parallel-rank": "3"})
    head, body = server.requests[0].split(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/completions HTTP/1.1\r\n")
    assert b"Content-Type: application/json" in head and b"X-data-parallel-rank: 3" in head
    assert json.loads(body) == {"max_tokens": 1}


def test_nothing_encoded_is_asked_for_and_the_connection_is_not_kept(serve):
    server = serve(answers())
    get(server)
    assert b"Accept-Encoding: identity" in server.requests[0] and b"Connection: close" in server.requests[0]


# Time


HOLDING = {
    "an endless status line": drips(b""),
    "an endless header line": drips(OK),
    "endless headers": drips(OK, b"a:b\r\n"),
    "endless interim answers": drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "an endless body": drips(OK + b"Content-Length: 1000000\r\n\r\n"),
    "endless chunks": drips(CHUNKED, b"1\r\nx\r\n"),
    "an endless length of a chunk": drips(CHUNKED, b"1"),
    "endless trailers": drips(CHUNKED + b"0\r\n", b"a:b\r\n"),
    "an endless handshake": hostile.drips_a_handshake,
    "silence": hostile.says_nothing,
}


def test_servers_that_drip_or_are_silent_cannot_hold_the_check(serve, never_accepts, full):
    servers = {name: serve(behave) for name, behave in HOLDING.items()}
    endpoints = {name: Endpoint(server.url) for name, server in servers.items()}
    endpoints["an endless handshake"] = Endpoint(servers["an endless handshake"].url.replace("http:", "https:"))
    endpoints["a server that never accepts"] = _at(never_accepts)
    endpoints["a server whose queue of connections is full"] = _at(full)

    with concurrent.futures.ThreadPoolExecutor(len(endpoints)) as threads:
        reads = list(threads.map(lambda endpoint: endpoint.get("/metrics", SOON), endpoints.values()))
    assert dict(zip(endpoints, map(kind, reads))) == dict.fromkeys(endpoints, "timeout")
    assert not any(server.over.is_set() for server in servers.values())  # they would have gone on for ever


@pytest.fixture
def never_accepts():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture
def full():
    with contextlib.ExitStack() as waiting:
        listener = waiting.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _place in range(4):
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield listener


def _at(listener):
    return Endpoint("http://127.0.0.1:%d" % listener.getsockname()[1])


def test_after_the_deadline_nobody_goes_on_reading_a_dripping_body(serve):
    servers = [serve(HOLDING[name]) for name in ("an endless body", "endless chunks", "endless trailers")]
    with concurrent.futures.ThreadPoolExecutor(len(servers)) as threads:
        list(threads.map(lambda server: get(server, SOON), servers))
    assert all(server.hung_up.wait(LATE) for server in servers)


def test_a_name_server_that_does_not_answer(monkeypatch):
    over, asked_by = threading.Event(), []

    def look_up(*_args, **_more):
        asked_by.append(threading.current_thread())
        over.wait()

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert kind(Endpoint("http://gpu-07.example:8000").get("/metrics", SOON)) == "timeout"
    assert asked_by[0].daemon  # whoever still waits does not keep the program from ending
    over.set()


# Size


def test_a_body_of_32_mib_is_read_and_not_a_byte_more(serve, monkeypatch):
    monkeypatch.setattr(reading, "BODY_LIMIT", 1000)
    assert get(serve(answers(b"x" * 1000))) == Answer(200, b"x" * 1000)
    assert kind(get(serve(answers(b"x" * 1001)))) == "too_large"


@pytest.mark.parametrize(
    "behave",
    [
        pytest.param(pours(OK + b"\r\n", b"x" * 65536), id="without a length"),
        pytest.param(pours(OK + b"Content-Length: 10000000000\r\n\r\n", b"x" * 65536), id="10 GB announced"),
        pytest.param(pours(CHUNKED, b"10000\r\n" + b"x" * 65536 + b"\r\n"), id="in chunks"),
        pytest.param(pours(CHUNKED + b"FFFFFFFFFFFF\r\n", b"x" * 65536), id="in one huge chunk"),
        pytest.param(pours(b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", b"x" * 65536), id="of a redirect"),
    ],
)
def test_a_body_without_end_is_given_up(serve, monkeypatch, behave):
    monkeypatch.setattr(reading, "BODY_LIMIT", 1024 * 1024)
    server = serve(behave)
    assert kind(get(server)) == "too_large"
    assert server.hung_up.wait(LATE)


def test_a_chunk_of_negative_length_is_not_read_to_its_end(serve, monkeypatch):
    # Newer Pythons take it for "all there is", older ones for nonsense.
    monkeypatch.setattr(reading, "BODY_LIMIT", 1024 * 1024)
    server = serve(pours(CHUNKED + b"-1\r\n", b"x" * 65536))
    assert kind(get(server)) in ("too_large", "malformed", "reset")
    assert server.hung_up.wait(LATE)


def test_the_real_limit_holds(serve):
    part = b"x" * 1024 * 1024
    assert reading.BODY_LIMIT == 32 * 1024 * 1024
    assert kind(get(serve(pours(OK + b"\r\n", part)))) == "too_large"


@pytest.mark.parametrize(
    "behave",
    [
        pytest.param(pours(b"", b"x" * 65536), id="status line"),
        pytest.param(pours(OK, b"x" * 65536), id="header line"),
        pytest.param(pours(OK, b"a: b\r\n" * 1000), id="headers"),
        pytest.param(pours(CHUNKED, b"1" * 65536), id="length of a chunk"),
    ],
)
def test_a_head_without_end_is_given_up(serve, behave):
    server = serve(behave)
    assert kind(get(server)) in ("malformed", "reset")
    assert server.hung_up.wait(LATE)


def test_an_encoded_body_is_never_unpacked(serve, monkeypatch):
    unpacked = []
    monkeypatch.setattr("zlib.decompressobj", lambda *args: unpacked.append(args))
    bomb = gzip.compress(b"\0" * 1024 * 1024)
    assert kind(get(serve(answers(bomb, Content_Encoding="gzip")))) == "malformed"
    assert kind(get(serve(answers(bomb, "302 Found", Content_Encoding="gzip", Location="/")))) == "malformed"
    assert unpacked == []


# What breaks off


@pytest.mark.parametrize("end", [says, resets], ids=["closed", "reset"])
@pytest.mark.parametrize(
    "beginning",
    [
        pytest.param(b"", id="before the answer"),
        pytest.param(OK + b"Content-Length: 1000\r\n\r\nvllm:num_requests_running 3", id="in a body of known length"),
        pytest.param(CHUNKED + b"20\r\nvllm:", id="in a chunk"),
        pytest.param(CHUNKED + b"5\r\nvllm:\r\n", id="between chunks"),
    ],
)
def test_an_answer_that_breaks_off_is_no_answer(serve, end, beginning):
    assert kind(get(serve(end(beginning)))) == "reset"


def test_a_reset_in_a_body_of_unknown_length_is_no_answer(serve):
    # The bytes before the reset may or may not arrive, so may the head.
    assert kind(get(serve(resets(OK + b"\r\nvllm:num_requests_running 3\n")))) == "reset"


# What is not HTTP


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"\x00\xff\x17garbage\r\n\r\n" * 100, id="garbage"),
        pytest.param(b"vllm:num_requests_running 3\n", id="a body alone, as in HTTP/0.9"),
        pytest.param(b"<html><h1>It works</h1></html>", id="a page alone"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="SSH"),
        pytest.param(b"HTTP/1.1 abc OK\r\n\r\n", id="a status that is no number"),
        pytest.param(b"HTTP/1.1 99999 OK\r\n\r\n", id="a status that is too large"),
        pytest.param(b"HTTP/9.9 200 OK\r\n\r\n", id="a version that does not exist"),
    ],
)
def test_what_is_not_http_is_malformed(serve, answer):
    assert kind(get(serve(says(answer)))) == "malformed"


def test_a_chunk_whose_length_is_no_number_is_no_answer(serve):
    assert kind(get(serve(says(CHUNKED + b"zz\r\nvllm:\r\n0\r\n\r\n")))) in ("malformed", "reset")


def test_a_web_page_is_an_answer_that_says_so(serve):
    read = get(serve(answers(b"<html>", Content_Type="text/html")))
    assert read == Answer(200, b"<html>", "text/html")


# Where a request goes


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_an_answer_and_is_not_followed(serve, status):
    elsewhere = serve(answers())
    read = get(serve(answers(b"moved", status, Location=elsewhere.url + "/metrics")), api_key=KEY)
    assert read == Answer(int(status[:3]), b"moved")
    assert elsewhere.connections == 0


@pytest.mark.parametrize("location", ["//127.0.0.1:1/", "http://[half/", "caf\u00e9", "ftp://x", ""])
def test_where_a_redirect_leads_does_not_matter(serve, location):
    assert get(serve(answers(b"moved", "302 Found", Location=location))) == Answer(302, b"moved")


def test_a_proxy_in_the_environment_is_ignored(serve, monkeypatch):
    proxy = serve(answers(b"the proxy's\n"))
    for scheme in ("http", "https", "all"):
        monkeypatch.setenv(scheme + "_proxy", proxy.url)
        monkeypatch.setenv((scheme + "_proxy").upper(), proxy.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    plain, secure = serve(answers()), serve(answers(), certificate="right-name.pem")
    assert get(plain) == Answer(200, b"fine\n")
    assert get(secure, verify=False) == Answer(200, b"fine\n")
    assert proxy.connections == 0


def test_a_netrc_is_ignored(serve, monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password %s\ndefault login anybody password %s\n" % (KEY, KEY))
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    server = serve(answers())
    get(server)
    assert b"authorization" not in server.requests[0].lower()


def test_a_ca_bundle_in_the_environment_is_ignored(serve, monkeypatch):
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.setenv(name, str(hostile.CERTIFICATES / "ca.pem"))
    assert kind(get(serve(answers(), certificate="right-name.pem"))) == "tls"


# The key


def test_the_key_goes_along_as_a_bearer_token(serve):
    server = serve(answers())
    get(server, api_key=KEY)
    assert b"\r\nAuthorization: Bearer geheim-4711\r\n" in server.requests[0]


def test_without_a_key_none_is_sent(serve):
    server = serve(answers())
    get(server)
    assert b"authorization" not in server.requests[0].lower()


def test_the_key_is_not_shown_with_the_endpoint():
    assert KEY not in repr(Endpoint("http://127.0.0.1:8000", KEY))


@pytest.mark.parametrize(
    "echo",
    [
        pytest.param(b"%s\r\n\r\n", id="as an answer"),
        pytest.param(b"HTTP/1.1 %s\r\n\r\n", id="as a status"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n%s\r\n", id="as the length of a chunk"),
        pytest.param(OK + b"Content-Encoding: %s\r\n\r\n", id="as an encoding"),
    ],
)
def test_a_failure_never_repeats_what_the_server_said(serve, echo):
    read = get(serve(says(echo % KEY.encode())), api_key=KEY)
    assert kind(read) and KEY not in repr(read)


# Getting there


def test_a_port_that_nobody_listens_on_is_refused():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # taken, but not listening
        assert kind(_at(unused).get("/metrics", LATE)) == "refused"


def test_a_name_that_does_not_resolve(monkeypatch):
    def unknown(*_args, **_more):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert kind(Endpoint("http://gpu-07.example:8000").get("/metrics", LATE)) == "name"


@pytest.mark.parametrize("host", ["gpu" * 30 + ".example", "gpu..example", "-"])
def test_a_name_that_cannot_be_one(monkeypatch, host):
    monkeypatch.setattr(socket, "getaddrinfo", _only_real_names)
    assert kind(Endpoint("http://%s:8000" % host).get("/metrics", LATE)) == "name"


def _only_real_names(host, *_args, **_more):
    if isinstance(host, str):
        host.encode("idna")
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@pytest.mark.parametrize("number", reading._UNREACHABLE)
def test_an_address_without_a_route_is_unreachable(monkeypatch, number):
    def no_route(*_args):
        raise OSError(number, "said by the test")

    monkeypatch.setattr(socket.socket, "connect", no_route)
    assert kind(Endpoint("http://127.0.0.1:8000").get("/metrics", LATE)) == "unreachable"


# TLS


def test_a_trusted_certificate_with_the_right_name_is_fine(serve):
    server = serve(answers(), certificate="right-name.pem")
    assert get(server, verify=str(hostile.CERTIFICATES / "ca.pem")) == Answer(200, b"fine\n")


def test_a_certificate_for_another_name_is_refused(serve):
    server = serve(answers(), certificate="wrong-name.pem")
    assert kind(get(server, verify=str(hostile.CERTIFICATES / "ca.pem"), api_key=KEY)) == "tls"
    assert not any(server.requests)  # the key was not sent


def test_a_certificate_that_nobody_vouches_for_is_refused(serve):
    server = serve(answers(), certificate="right-name.pem")
    read = get(server, api_key=KEY)
    assert kind(read) == "tls" and "certificate" in read.detail
    assert not any(server.requests)


def test_certificates_need_not_be_checked(serve):
    assert get(serve(answers(), certificate="wrong-name.pem"), verify=False) == Answer(200, b"fine\n")


def test_https_to_a_server_that_speaks_http(serve):
    server = serve(hostile.refuses_what_it_does_not_understand)
    assert kind(Endpoint(server.url.replace("http:", "https:")).get("/metrics", LATE)) in ("tls", "reset")


def test_http_to_a_server_that_speaks_https(serve):
    server = serve(answers(), certificate="right-name.pem")
    assert kind(Endpoint(server.url.replace("https:", "http:")).get("/metrics", LATE)) in ("malformed", "reset")


# Without the library


def test_without_requests_the_room_can_still_be_entered(monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)
    spec = importlib.util.spec_from_file_location("reading_without_requests", reading.__file__)
    without = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, without)
    spec.loader.exec_module(without)
    assert "requests" in without.REQUESTS_IMPORT_ERROR
    assert reading.REQUESTS_IMPORT_ERROR is None
