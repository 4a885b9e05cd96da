"""Every verdict with every reason, reached over HTTP against simulated servers, all judged in one run."""

from __future__ import annotations

import contextlib
import http.server
import itertools
import os
import pathlib
import socket
import threading
import time
import typing as t

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils import driving, results, verdicts
from ansible_collections.fleetcheck.vllm.plugins.module_utils.driving import Target
from ansible_collections.fleetcheck.vllm.plugins.module_utils.looks import Limits
from ansible_collections.fleetcheck.vllm.plugins.module_utils.reading import Endpoint
from ansible_collections.fleetcheck.vllm.plugins.module_utils.vllm_api import Server

from tests.integration.check import fake_systemctl
from tests.simulator.running import Simulator

PATIENCE = 4.0
LIMITS = Limits(patience=PATIENCE, startup_grace=0.0)

Make = t.Callable[[contextlib.ExitStack, pathlib.Path], Target]


def target(url: str, limits: Limits = LIMITS, kind: str = "backend", **server: t.Any) -> Target:
    key = server.pop("api_key", None)
    return Target(Server(Endpoint(url, key), **{"timeout": 1.0, **server}), limits, kind)


def simulated(limits: Limits = LIMITS, orders: t.Sequence[t.Tuple[str, t.Dict[str, t.Any]]] = (), **options: t.Any) -> Make:
    def make(stack: contextlib.ExitStack, folder: pathlib.Path) -> Target:
        simulator = stack.enter_context(Simulator(**options))
        for command, arguments in orders:
            simulator.control(command, **arguments)
        return target(simulator.url, limits)

    return make


def proxied(kind: str) -> Make:
    def make(stack: contextlib.ExitStack, folder: pathlib.Path) -> Target:
        backends = [stack.enter_context(Simulator(state="idle")).url for _number in range(2)]
        return target(stack.enter_context(Simulator(proxy=backends)).url, kind=kind)

    return make


def closed_port() -> str:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return "http://127.0.0.1:%d" % listening.getsockname()[1]


def behind_unit(active: str, sub: str, age: float = 5000.0, restarts: int = 0) -> Make:
    """Nothing listens, and systemd says this of the unit."""

    def make(stack: contextlib.ExitStack, folder: pathlib.Path) -> Target:
        unit = "%s-%s-%d.service" % (active, sub, restarts)
        fake_systemctl.put(folder, unit, active, sub, started=time.monotonic() - age, restarts=restarts)
        return target(closed_port(), Limits(PATIENCE, startup_grace=900.0), unit=unit)

    return make


class _Changeable(http.server.BaseHTTPRequestHandler):
    """Shows a frozen server at first and then fails now in this way, now in that."""

    count = itertools.count()

    def do_GET(self) -> None:  # noqa: N802 - the name is the library's
        if self.path != "/metrics":
            self.send_error(404)
            return
        number = next(self.count)
        self.send_response(200 if number == 0 else (302, 500)[number % 2])
        self.end_headers()
        if number == 0:
            self.wfile.write(b'vllm:num_requests_running{engine="0"} 1.0\n')

    def log_message(self, *words: t.Any) -> None:
        pass


def served(handler: t.Type[http.server.BaseHTTPRequestHandler]) -> Make:
    def make(stack: contextlib.ExitStack, folder: pathlib.Path) -> Target:
        server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        return target("http://127.0.0.1:%d" % server.server_port)

    return make


def fixed(url: t.Callable[[], str], **more: t.Any) -> Make:
    return lambda stack, folder: target(url(), **more)


def restarting(stack: contextlib.ExitStack, folder: pathlib.Path) -> Target:
    """An engine that starts anew behind every read."""
    simulator = stack.enter_context(Simulator(state="frozen-busy"))
    stop = threading.Event()

    def restart_again_and_again() -> None:
        while not stop.wait(0.1):
            with contextlib.suppress(Exception):
                simulator.control("restart")

    thread = threading.Thread(target=restart_again_and_again, daemon=True)
    thread.start()
    stack.callback(thread.join)
    stack.callback(stop.set)
    return target(simulator.url)


FAULT = "fault"
METRICS = {"path": "/metrics"}

ROWS: t.Dict[t.Tuple[str, str], Make] = {
    ("busy", "progress"): simulated(state="busy"),
    ("idle", "answered"): simulated(state="idle"),
    ("idle", "not_probed"): simulated(state="idle", orders=[("reject", {"status": 404})]),
    ("idle", "stale_gauges"): simulated(state="stale"),
    ("serving", "models_listed"): proxied("proxy"),
    ("starting", "unit_activating"): behind_unit("activating", "start"),
    ("starting", "unit_deactivating"): behind_unit("deactivating", "stop-sigterm"),
    ("starting", "not_listening_yet"): behind_unit("active", "running", age=40.0),
    ("sleeping", "sleep_mode"): simulated(state="sleeping"),
    ("paused", "scheduler_paused"): simulated(state="paused-keep"),
    ("stalled", "too_young"): simulated(Limits(PATIENCE, startup_grace=900.0), state="frozen-busy"),
    ("stalled", "probe_rejected"): simulated(state="frozen-busy", orders=[("reject", {"status": 503})]),
    ("stalled", "not_probed"): simulated(Limits(PATIENCE, 0.0, probe=False), state="frozen-busy"),
    ("stalled", "reads_lost"): served(_Changeable),
    ("stuck", "no_progress"): simulated(state="frozen-busy"),
    ("stuck", "not_admitted"): simulated(state="not-admitted", orders=[("freeze", {})]),
    ("stuck", "no_answer"): simulated(state="frozen-idle"),
    ("dead", "refused"): fixed(closed_port),
    ("dead", "engine_dead"): simulated(state="dead-engine"),
    ("dead", "unit_inactive"): behind_unit("inactive", "dead"),
    ("dead", "unit_failed"): behind_unit("failed", "failed"),
    ("unresponsive", "timeout"): simulated(state="http-frozen"),
    ("unknown", "no_metrics"): simulated(state="idle", disable_log_stats=True),
    ("unknown", "not_vllm"): served(http.server.SimpleHTTPRequestHandler),
    ("unknown", "unauthorized"): simulated(state="idle", api_key="s3cret"),
    ("unknown", "metrics_error"): simulated(state="busy", orders=[(FAULT, {**METRICS, "status": 500})]),
    ("unknown", "unparseable"): simulated(state="busy", orders=[(FAULT, {**METRICS, "mode": "garbage"})]),
    ("unknown", "behind_proxy"): proxied("backend"),
    ("unknown", "keeps_restarting"): restarting,
    ("unknown", "unit_not_found"): fixed(closed_port, unit="nowhere.service"),
    ("unknown", "name_not_resolved"): fixed(lambda: "http://nowhere.invalid:8000"),
    # TCP to a multicast address: the kernel itself says that there is no way.
    ("unknown", "unreachable"): fixed(lambda: "http://224.0.0.1:8000"),
    ("unknown", "tls_error"): lambda stack, folder: target(
        stack.enter_context(Simulator(state="idle")).url.replace("http:", "https:")
    ),
    ("unknown", "redirected"): simulated(state="busy", orders=[(FAULT, {**METRICS, "mode": "redirect"})]),
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[t.Dict[t.Tuple[str, str], t.Dict[str, t.Any]]]:
    """What the check says of a server in each state, all of them judged at the same time."""
    folder = tmp_path_factory.mktemp("units")
    path = os.environ["PATH"]
    os.environ["PATH"] = "%s:%s" % (fake_systemctl.install(folder), path)
    try:
        with contextlib.ExitStack() as stack:
            targets = [make(stack, folder) for make in ROWS.values()]
            said = results.report(["server"] * len(targets), targets, driving.check(targets))
    finally:
        os.environ["PATH"] = path
    yield dict(zip(ROWS, said["servers"]))


def test_every_row_of_the_table_is_here() -> None:
    assert set(ROWS) == {(verdict, reason) for verdict, reasons in verdicts.REASONS.items() for reason in reasons}


@pytest.mark.parametrize("words", list(ROWS), ids="-".join)
def test_verdict_is_reached_over_http(
    judged: t.Dict[t.Tuple[str, str], t.Dict[str, t.Any]], words: t.Tuple[str, str]
) -> None:
    said = judged[words]
    assert (said["verdict"], said["reason"]) == words, said["message"]
    assert said["message"]


@pytest.mark.parametrize("words", [row for row in ROWS if row[0] == "stuck"], ids="-".join)
def test_stuck_is_said_right_after_the_patience_and_not_before(
    judged: t.Dict[t.Tuple[str, str], t.Dict[str, t.Any]], words: t.Tuple[str, str]
) -> None:
    said = judged[words]
    assert said["elapsed"] >= PATIENCE
    assert max(engine["silent_for"] for engine in said["engines"]) >= PATIENCE
    # The read at the end of the patience is the one that convicts: the read before it came earlier.
    assert said["reads"] >= 3
