"""Verdicts go to the Pushgateway that the operator named, one group for each host, and nowhere else."""

import base64
import http.server
import threading

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.pushing import Gateway, NotPushed, WrongOption

NOON = 1_795_953_600.0


def measure(server="vllm.service", verdict="busy", **more):
    return {"server": server, "verdict": verdict, "probes": 0, "action": "", "engines": [], **more}


class Listener(http.server.ThreadingHTTPServer):
    """Answers every push with one status, and remembers what came."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.headers, self.body, self.seen = 200, {}, b"", []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, self.path, dict(self.headers), body.decode()))
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    do_PUT = do_POST = do_GET = answer

    def log_message(self, *_):
        pass


@pytest.fixture
def listener():
    with Listener() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def test_the_group_of_a_host_is_replaced_as_a_whole(listener):
    Gateway(listener.url).push("gpu-01", [measure(verdict="stuck")], NOON)
    ((method, path, _headers, body),) = listener.seen
    assert (method, path) == ("PUT", "/metrics/job/vllm_fleetcheck/instance/gpu-01")
    assert 'vllm_fleetcheck_verdict{server="vllm.service",verdict="stuck"} 1.0' in body
    assert "last_restart" not in body


def test_a_restart_goes_to_a_group_of_its_own_where_it_stays(listener):
    Gateway(listener.url + "/prefix/").push("gpu-01", [measure("http://a/b", "idle", action="restarted"), measure()], NOON)
    (_, (method, path, _headers, body)) = listener.seen
    encoded = base64.urlsafe_b64encode(b"http://a/b").decode()
    assert (method, path) == ("POST", f"/prefix/metrics/job/vllm_fleetcheck_restarts/instance/gpu-01/server@base64/{encoded}")
    assert body.splitlines()[-1] == 'vllm_fleetcheck_last_restart_timestamp_seconds{result="restarted"} 1.7959536e+09'


def test_credentials_are_sent_where_they_were_given(listener):
    Gateway(listener.url, "me", "s3:cret").push("gpu-01", [measure()], NOON)
    Gateway(listener.url).push("gpu-01", [measure()], NOON)
    sent = [headers.get("Authorization") for _, _, headers, _ in listener.seen]
    assert sent == ["Basic " + base64.b64encode(b"me:s3:cret").decode(), None]


def test_a_redirect_is_an_error_and_is_not_followed(listener):
    listener.status, listener.headers = 307, {"Location": listener.url + "/elsewhere"}
    with pytest.raises(NotPushed, match="HTTP 307"):
        Gateway(listener.url, "me", "secret").push("gpu-01", [measure()], NOON)
    assert len(listener.seen) == 1


def test_what_the_gateway_says_against_it_is_told(listener):
    listener.status, listener.body = 400, b"pushed metrics are invalid:\n" + b"x" * 5000
    with pytest.raises(NotPushed, match=r"HTTP 400 pushed metrics are invalid: x{100}") as caught:
        Gateway(listener.url).push("gpu-01", [measure()], NOON)
    assert len(str(caught.value)) < 300


def test_a_gateway_that_is_not_there_is_told_in_plain_words():
    with pytest.raises(NotPushed, match="refused"):
        Gateway("http://127.0.0.1:1").push("gpu-01", [measure()], NOON)


def test_no_proxy_is_taken_from_the_environment(listener, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    Gateway(listener.url).push("gpu-01", [measure()], NOON)
    assert len(listener.seen) == 1


@pytest.mark.parametrize(
    "url",
    [
        "", "pushgateway:9091", "ftp://x", "http://", "http://x?y=1", "http://x#y", "file:///etc/passwd",
        "http://[::1:9091", "http://x:port", "http://x:99999", "http://a..b:9091", "http://" + 70 * "a",
    ],
)  # fmt: skip
def test_what_is_no_address_is_named(url):
    with pytest.raises(WrongOption, match="give the address"):
        Gateway(url)


def test_a_password_in_the_address_is_not_repeated():
    with pytest.raises(WrongOption) as caught:
        Gateway("http://me:secret@127.0.0.1:9091")
    assert "secret" not in str(caught.value)


def test_certificates_that_are_not_there_are_named(tmp_path):
    with pytest.raises(WrongOption, match="ca_path"):
        Gateway("https://127.0.0.1:9091", ca_path=str(tmp_path / "none"))
