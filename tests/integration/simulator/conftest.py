"""Simulated engines and servers inside the test process, with steps of one millisecond."""

from __future__ import annotations

import http.client
import json

import pytest

from tests.simulator.running import request
from tests.simulator.vllm_sim import cli
from tests.simulator.vllm_sim.engine import Engine
from tests.simulator.vllm_sim.releases import DEFAULT, release
from tests.simulator.vllm_sim.scheduler import EngineSettings

STEP_SECONDS = 0.001


@pytest.fixture
def make_engine():
    engines = []

    def make(name=DEFAULT, **settings):
        settings.setdefault("step_seconds", STEP_SECONDS)
        engine = Engine(0, EngineSettings(release(name), **settings))
        engines.append(engine)
        engine.start()
        return engine

    yield make
    for engine in engines:
        engine.kill()


class LocalServer:
    """A simulated server in this process, listening on a free port."""

    def __init__(self, *options):
        arguments = ["--port", "0", "--step-seconds", str(STEP_SECONDS), *options]
        self.process = cli.build(cli.parser().parse_args(arguments))
        self.server = self.process.server
        self.listener = self.process.listener
        self.listener.listen()
        scheme = "https" if "--certfile" in options else "http"
        self.url = f"{scheme}://127.0.0.1:{self.listener.port}"

    def get(self, path, timeout=5, **headers):
        return request(self.url + path, timeout=timeout, headers=headers)

    def post(self, path, body=None, timeout=5, **headers):
        return request(self.url + path, body or {}, timeout=timeout, headers=headers)

    def control(self, command, **arguments):
        status, text = self.post(f"/sim/{command}", arguments)
        assert status == 200, text

    def counts(self):
        return self.server.counts.as_dict()

    def stop(self):
        self.server.load.stop()
        for engine in self.server.engines:
            engine.kill()
        self.listener.close()


@pytest.fixture
def make_server():
    servers = []

    def make(*options):
        server = LocalServer(*options)
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.stop()


@pytest.fixture
def open_request():
    """Send a completion without an end and leave it open; returns its connection."""
    connections = []

    def open_one(server, **body):
        connection = http.client.HTTPConnection("127.0.0.1", server.listener.port, timeout=10)
        connection.request("POST", "/v1/completions", json.dumps({"max_tokens": 1_000_000, **body}))
        connections.append(connection)
        return connection

    yield open_one
    for connection in connections:
        connection.close()
