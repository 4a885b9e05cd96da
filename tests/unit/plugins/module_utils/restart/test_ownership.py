"""The unit that would be restarted is the one that runs the server, as far as this host can tell."""

import http.server
import os
import threading

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import bounded, vllm_api
from ansible_collections.fleetcheck.vllm.plugins.module_utils.reading import Endpoint
from ansible_collections.fleetcheck.vllm.plugins.module_utils.restart import ownership

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LINE = "   0: 00000000:%04X 00000000:0000 %s 00000000:00000000 00:00000000 00000000  1000        0 %d 1 0000 100 0 0 10 0\n"
LISTENING, CONNECTED = "0A", "01"
CONTAINER = "0::/system.slice/docker-%s.scope\n" % ("a1" * 32)


class Proc:
    """A folder that looks like /proc."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "net").mkdir()
        (folder / "net" / "tcp").write_text(HEAD)
        (folder / "self").mkdir()
        self.inodes = iter(range(5000, 6000))
        self.pids = iter(range(100, 1000))

    def socket(self, port, state=LISTENING, table="tcp", address="00000000"):
        inode = next(self.inodes)
        path = self.folder / "net" / table
        path.write_text((path.read_text() if path.exists() else HEAD) + LINE.replace("00000000", address, 1) % (port, state, inode))
        return inode

    def process(self, cgroup, *inodes):
        folder = self.folder / str(next(self.pids))
        (folder / "fd").mkdir(parents=True)
        (folder / "cgroup").write_text(cgroup)
        (folder / "fd" / "0").symlink_to("/dev/null")
        for number, inode in enumerate(inodes, 3):
            (folder / "fd" / str(number)).symlink_to("socket:[%d]" % inode)

    def serve(self, unit, port, **more):
        self.process("0::/system.slice/%s\n" % unit, self.socket(port, **more))

    def objection(self, unit="a.service", url="http://127.0.0.1:8000", scope="system"):
        return ownership.objection(url, unit, scope, str(self.folder))


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path)


def test_a_unit_that_listens_on_the_port_is_the_right_one(proc):
    proc.serve("a.service", 8000)
    proc.serve("b.service", 8001)
    assert proc.objection() is None
    assert proc.objection("b.service", "http://127.0.0.1:8001/") is None


def test_two_that_were_mixed_up_in_the_inventory(proc):
    proc.serve("a.service", 8000)
    proc.serve("b.service", 8001)
    assert proc.objection("b.service") == "port 8000 of this host belongs to a.service, not to b.service"


@pytest.mark.parametrize("table", ["tcp", "tcp6"])
def test_every_kind_of_socket_is_looked_at(proc, table):
    proc.serve("b.service", 8000, table=table)
    assert "belongs to b.service" in proc.objection()


@pytest.mark.parametrize(("url", "port"), [("http://gpu-07", 80), ("https://gpu-07/path", 443), ("http://[::1]:9000", 9000)])
def test_the_port_is_that_of_the_url(proc, url, port):
    proc.serve("b.service", port)
    assert "port %d of this host belongs to b.service" % port in proc.objection(url=url)


def test_a_process_somewhere_below_the_unit_counts(proc):
    proc.process("0::/system.slice/a.service/api\n", proc.socket(8000))
    proc.process("12:cpu:/x\n1:name=systemd:/system.slice/system-b.slice/b@1.service\n", proc.socket(8001))
    assert proc.objection() is None
    assert proc.objection("b@1.service", "http://127.0.0.1:8001") is None


def test_one_of_several_that_share_the_port_is_enough(proc):
    inode = proc.socket(8000)
    proc.process("0::/system.slice/web.service\n", inode)
    proc.process("0::/system.slice/a.service\n", inode)
    assert proc.objection() is None


@pytest.mark.parametrize(
    "cgroup",
    [
        "0::/system.slice/docker.service\n",
        CONTAINER,
        "0::/init.scope\n",
        "0::/user.slice/user-1000.slice/session-3.scope\n",
        "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-%s.scope\n" % ("b2" * 32),
        "",
    ],
)
def test_what_is_no_other_units_says_nothing_against_this_one(proc, cgroup):
    proc.process(cgroup, proc.socket(8000))
    assert proc.objection() is None


def test_a_port_that_nobody_listens_on_says_nothing(proc):
    proc.serve("b.service", 8000, state=CONNECTED)
    proc.serve("b.service", 8001)
    assert proc.objection() is None


def test_a_listener_whose_process_cannot_be_seen_says_nothing(proc):
    proc.socket(8000)
    proc.process("0::/system.slice/b.service\n")
    assert proc.objection() is None


def test_units_of_one_name_that_are_the_systems_and_a_users_are_two(proc):
    mine = "0::/user.slice/user-%d.slice/user@%d.service/app.slice/a.service\n" % (os.getuid(), os.getuid())
    proc.process(mine, proc.socket(8000))
    assert proc.objection(scope="user") is None
    assert "belongs to a.service" in proc.objection(scope="system")


def test_the_unit_of_another_user_is_another(proc):
    other = os.getuid() + 1
    proc.process("0::/user.slice/user-%d.slice/user@%d.service/app.slice/a.service\n" % (other, other), proc.socket(8000))
    assert "belongs to a.service" in proc.objection(scope="user")


def test_processes_that_cannot_be_looked_at_in_time_say_nothing(proc, monkeypatch):
    proc.serve("b.service", 8000)
    monkeypatch.setattr(bounded, "within", lambda *_: bounded.Unreadable("/proc", "no answer within 10 s"))
    assert proc.objection() is None


def test_a_process_that_ends_meanwhile_is_no_error(proc):
    (proc.folder / "99").mkdir()
    proc.serve("a.service", 8000)
    assert proc.objection() is None


def test_a_file_that_is_closed_meanwhile_hides_no_other(proc, monkeypatch):
    def readlink(path, real=os.readlink):
        if path.endswith("/0"):
            raise FileNotFoundError(path)
        return real(path)

    proc.serve("b.service", 8000)
    monkeypatch.setattr(ownership.os, "readlink", readlink)
    assert "belongs to b.service" in proc.objection()


def test_this_machine_can_be_looked_at():
    assert ownership.objection("http://127.0.0.1:1", "a.service", "system") is None


def test_the_same_port_on_another_address_is_another_server(proc):
    proc.serve("a.service", 8000, address="0200007F")  # 127.0.0.2
    proc.serve("b.service", 8000, address="0300007F")
    assert proc.objection("b.service", "http://127.0.0.2:8000") == "port 8000 of this host belongs to a.service, not to b.service"


def test_the_server_of_another_host_is_not_the_one_with_the_same_port_here(proc):
    proc.serve("a.service", 8000, address="0100007F")
    objection = proc.objection(url="http://198.51.100.7:8000")
    assert objection == "198.51.100.7 is no address of this host, so what answers there is not a.service"


def test_a_container_that_a_unit_keeps_below_itself_is_the_units(proc):
    proc.process("0::/system.slice/b.service/libpod-payload-%s\n" % ("a1" * 32), proc.socket(8000))
    assert proc.objection("b.service") is None
    assert proc.objection() == "port 8000 of this host belongs to b.service, not to a.service"


# A server that seems dead, as its address is wrong


class _Metrics(http.server.BaseHTTPRequestHandler):
    body = b"vllm:num_requests_running 1.0\n"

    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_arguments):
        pass


class _OtherMetrics(_Metrics):
    body = b"up 1\n"


@pytest.fixture
def listening(request):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), request.param) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def elsewhere(proc, unit="a.service", url="http://127.0.0.1:1"):
    server = vllm_api.Server(Endpoint(url + "/llm", "k3y"), unit=unit)
    return ownership.elsewhere(server, unit, str(proc.folder))


@pytest.mark.parametrize("listening", [_Metrics], indirect=True)
def test_a_unit_that_serves_on_another_port_is_not_dead(proc, listening):
    port = listening.server_address[1]
    proc.serve("a.service", port)
    said = "a.service serves vLLM at http://127.0.0.1:%d/llm, so the address is wrong and not the server"
    assert elsewhere(proc) == said % port
    assert listening.asked == [("/llm/metrics", None)]  # no key goes to a port that may be anything's


@pytest.mark.parametrize("listening", [_Metrics], indirect=True)
def test_a_server_that_shows_its_metrics_at_its_own_address_is_nowhere_else(proc, listening):
    # Its engine may be dead all the same.
    port = listening.server_address[1]
    proc.serve("a.service", port)
    assert elsewhere(proc, url="http://127.0.0.1:%d" % port) is None


def test_a_unit_that_listens_on_one_address_only_is_asked_there(proc, monkeypatch):
    asked = []
    monkeypatch.setattr(ownership, "_shows_vllm", lambda url: asked.append(url) or len(asked) > 1)
    proc.serve("a.service", 8001, address="020200C0")
    assert "http://192.0.2.2:8001/llm" in elsewhere(proc)


@pytest.mark.parametrize("listening", [_Metrics], indirect=True)
def test_what_another_unit_serves_says_nothing_of_this_one(proc, listening):
    proc.serve("b.service", listening.server_address[1])
    proc.process("0::/system.slice/a.service\n")
    assert elsewhere(proc) is None
    assert listening.asked == []


@pytest.mark.parametrize("listening", [_OtherMetrics], indirect=True)
def test_another_port_of_the_unit_that_is_not_vllm_says_nothing(proc, listening):
    proc.serve("a.service", listening.server_address[1])  # torch.distributed listens, too
    assert elsewhere(proc) is None
