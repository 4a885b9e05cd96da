"""The HTTP front of a simulated server."""

from __future__ import annotations

import threading
import time
from typing import Callable

from . import openai
from .control import Control
from .counts import ABORTED, CLIENT_GONE, FAILED, FINISHED, GENERATION_PATHS, POOLING_PATHS, REJECTED
from .engine import ENGINE_DIED, FAILURES, SERVER_STOPPED, Engine
from .exchange import BadRequestError, Exchange
from .exposition import CONTENT_TYPE
from .listener import ClientWatch
from .requests import Request
from .server import Server, UnknownEngineError
from .spoiling import spoil

NOT_MEASURED = ("/metrics", "/health", "/load", "/ping", "/version")  # left out of the http_* series
OPEN_TO_ALL = NOT_MEASURED  # needs no key
GONE = "client_gone"
# How a request ended, as an outcome and a status (None: no answer); any other end is a success.
OUTCOMES = {GONE: (CLIENT_GONE, None), SERVER_STOPPED: (FAILED, None), ENGINE_DIED: (FAILED, 500),
            "abort": (ABORTED, 200)}


class Front:
    """Answers what vLLM answers; everything under /sim/ goes to the control channel."""

    def __init__(self, server: Server, control: Control) -> None:
        self.server = server
        self.control = control
        self.watch = ClientWatch()
        self.watch.start()
        self._routes = self._make_routes()

    def connected(self) -> None:
        """Count a connection."""
        self.server.counts.connection()

    def answer(self, exchange: Exchange) -> None:
        """Answer one exchange, with everything that may stand in its way."""
        if exchange.route.startswith("/sim/"):
            self.control.answer(exchange)
            return
        path = self._without_root(exchange.route)
        counts = self.server.counts
        counts.request(exchange.command, path)
        ticket = self._begin(exchange, path)

        def before_answer(status: int, size: int) -> None:
            """Whoever has the answer finds it counted."""
            if not exchange.in_engine:
                counts.end(ticket, REJECTED, status)
            counts.answered(size)
            self._measure(exchange, path, status, size)

        exchange.before_answer = before_answer
        gone = threading.Event()
        try:
            with exchange.watched(lambda: self._client_gone(gone)):
                held_up = self._held_up(exchange, path, gone)
            if not held_up:
                self._dispatch(exchange, path, ticket)
        finally:
            counts.end(ticket, CLIENT_GONE if gone.is_set() else REJECTED, exchange.status)

    def _without_root(self, path: str) -> str:
        root = self.server.settings.root_path
        return path[len(root):] if root and path.startswith(root + "/") else path

    def _begin(self, exchange: Exchange, path: str) -> int:
        if exchange.command != "POST" or path not in GENERATION_PATHS:
            return 0
        try:
            body = exchange.json()
        except BadRequestError:
            body = {}
        return self.server.counts.begin(path, body)

    def _client_gone(self, gone: threading.Event) -> None:
        gone.set()
        with self.server.gate.changed:
            self.server.gate.changed.notify_all()

    def _held_up(self, exchange: Exchange, path: str, gone: threading.Event) -> bool:
        """Whether a brake or a fault has dealt with the exchange."""
        if not self.server.gate.wait(gone):
            exchange.hang_up()
            return True
        fault = self.server.faults.take(path)
        return fault is not None and spoil(exchange, fault, gone, self._true_body(path))

    def _true_body(self, path: str) -> Callable[[], bytes]:
        return lambda: self.server.metrics().encode() if path == "/metrics" else b'{"object":"list","data":[]}'

    def _measure(self, exchange: Exchange, path: str, status: int, size: int) -> None:
        if path not in NOT_MEASURED:
            handler = path if any(known == path for _, known in self._routes) or path in GENERATION_PATHS else "none"
            seconds = time.monotonic() - exchange.started_at
            self.server.http.observe(handler, exchange.command, status, seconds, (len(exchange.content), size))

    # Routes --------------------------------------------------------------------------------------------------

    def _make_routes(self) -> dict[tuple[str, str], Callable]:
        routes: dict[tuple[str, str], Callable] = {
            ("GET", "/metrics"): self._metrics,
            ("GET", "/health"): lambda exchange: exchange.send(self.server.health_status()),
            ("GET", "/ping"): lambda exchange: exchange.send(self.server.health_status()),
            ("POST", "/ping"): lambda exchange: exchange.send(self.server.health_status()),
            ("GET", "/version"): lambda exchange: exchange.send_json(
                200, {"version": self.server.settings.release.version}),
            ("GET", "/load"): self._load,
            ("GET", "/v1/models"): self._models,
        }
        if self.server.settings.dev_mode:
            routes.update(self._development_routes())
        return routes

    def _development_routes(self) -> dict[tuple[str, str], Callable]:
        routes: dict[tuple[str, str], Callable] = {
            ("POST", "/sleep"): self._sleep,
            ("POST", "/wake_up"): self._wake_up,
            ("GET", "/is_sleeping"): lambda exchange: exchange.send_json(
                200, {"is_sleeping": self.server.is_sleeping()}),
        }
        if self.server.settings.release.can_pause:
            routes.update({
                ("POST", "/pause"): self._pause,
                ("POST", "/resume"): self._resume,
                ("GET", "/is_paused"): lambda exchange: exchange.send_json(
                    200, {"is_paused": self.server.is_paused()}),
            })
        return routes

    def _dispatch(self, exchange: Exchange, path: str, ticket: int) -> None:
        if ticket and self.control.process.ends_with_next_request:
            self.control.process.exit()
        if not self._authorized(exchange, path):
            exchange.send_json(401, {"error": "Unauthorized"})
        elif ticket and (path in POOLING_PATHS) == self.server.settings.engine.pooling:
            self._generate(exchange, path, ticket)
        elif (exchange.command, path) in self._routes:
            self._routes[exchange.command, path](exchange)
        elif any(known == path for _, known in self._routes):
            exchange.send_json(405, {"detail": "Method Not Allowed"})
        else:
            exchange.send_json(404, {"detail": "Not Found"})

    def _authorized(self, exchange: Exchange, path: str) -> bool:
        key = self.server.settings.api_key
        if not key or not path.startswith("/v1"):
            return True
        return exchange.headers.get("Authorization") == f"Bearer {key}"

    def _metrics(self, exchange: Exchange) -> None:
        exchange.send(200, self.server.metrics().encode(), CONTENT_TYPE)

    def _load(self, exchange: Exchange) -> None:
        tracked = self.server.settings.track_load
        exchange.send_json(200, {"server_load": self.server.counts.as_dict()["open"] if tracked else 0})

    def _models(self, exchange: Exchange) -> None:
        settings = self.server.settings
        exchange.send_json(200, openai.models(
            settings.model_names, settings.loras, settings.engine.max_model_len, self.server.page.started_at))

    def _sleep(self, exchange: Exchange) -> None:
        level = int(exchange.query.get("level", ["1"])[0])
        for engine in self.server.engines:
            engine.sleep(level)
        exchange.send(200)

    def _wake_up(self, exchange: Exchange) -> None:
        for engine in self.server.engines:
            engine.sleep(0)
        exchange.send(200)

    def _pause(self, exchange: Exchange) -> None:
        mode = exchange.query.get("mode", ["abort"])[0]
        if mode not in ("abort", "wait", "keep"):
            exchange.send_json(400, {"error": "mode must be abort, wait or keep"})
            return
        for engine in self.server.engines:
            engine.pause(mode)
        gone = threading.Event()
        with exchange.watched(gone.set):  # mode=wait answers when nothing runs any more
            while mode == "wait" and any(e.truth()["running"] for e in self.server.engines):
                if gone.wait(0.05):
                    exchange.hang_up()
                    return
        exchange.send_json(200, {"status": "paused"})

    def _resume(self, exchange: Exchange) -> None:
        for engine in self.server.engines:
            engine.resume()
        exchange.send_json(200, {"status": "resumed"})

    # Completions and embeddings ------------------------------------------------------------------------------

    def _generate(self, exchange: Exchange, path: str, ticket: int) -> None:
        release = self.server.settings.release
        try:
            body = exchange.json()
            model = str(body.get("model") or self.server.settings.model_names[0])
            if not self._serves(model):
                message = f"The model `{model}` does not exist."
                exchange.send_json(404, openai.error(release, 404, "NotFoundError", message, "model"))
                return
            request = openai.request_from(path, body)
            engine = self.server.submit(request, self._rank(exchange))
        except (BadRequestError, UnknownEngineError) as error:
            exchange.send_json(400, openai.error(release, 400, "BadRequestError", str(error)))
            return
        exchange.in_engine = True
        with exchange.watched(lambda: self._abort(engine, request)):
            reason = self._follow(exchange, path, model, request)
        # Counted before it is sent: whoever has the answer finds it counted.
        self._close_ticket(ticket, reason, stream=request.stream)
        self._reply(exchange, path, model, request, reason)
        if reason == GONE:  # noticed while writing, perhaps
            engine.abort(request)

    def _follow(self, exchange: Exchange, path: str, model: str, request: Request) -> str:
        """Wait for the end of a request, sending on the way what there is to stream; returns how it ended."""
        if not request.stream:
            return request.outbox.get()
        try:
            exchange.before_answer(200, 0)
            exchange.begin_stream()
            while True:
                tokens, reason = self._next_tokens(request)
                if tokens:
                    exchange.send_events([openai.event(path, model, request, tokens)])
                if reason:
                    return reason
        except OSError:
            return GONE

    def _serves(self, model: str) -> bool:
        settings = self.server.settings
        return model in settings.model_names or model in settings.loras

    @staticmethod
    def _rank(exchange: Exchange) -> int | None:
        rank = exchange.headers.get("X-data-parallel-rank")
        if rank is None:
            return None
        try:
            return int(rank)
        except ValueError as error:
            raise BadRequestError(f"X-data-parallel-rank must be a number, got {rank}") from error

    @staticmethod
    def _abort(engine: Engine, request: Request) -> None:
        engine.abort(request)
        request.outbox.put(GONE)

    def _reply(self, exchange: Exchange, path: str, model: str, request: Request, reason: str) -> None:
        if reason in (GONE, SERVER_STOPPED) or (request.stream and reason in FAILURES):
            exchange.hang_up()
        elif request.stream:
            exchange.send_events([openai.event(path, model, request, 0, reason), "[DONE]"])
            exchange.send_events([])
        elif reason == ENGINE_DIED:
            message = "EngineCore encountered an issue. See stack trace (above) for the root cause."
            exchange.send_json(500, openai.error(
                self.server.settings.release, 500, "InternalServerError", message))
        else:
            exchange.send_json(200, openai.answer(path, model, request, reason))

    @staticmethod
    def _next_tokens(request: Request) -> tuple[int, str]:
        """Wait for the next news, and take all there are."""
        tokens, news = 0, request.outbox.get()
        while isinstance(news, int):
            tokens += news
            if request.outbox.empty():
                return tokens, ""
            news = request.outbox.get()
        return tokens, news

    def _close_ticket(self, ticket: int, reason: str, stream: bool) -> None:
        outcome, status = OUTCOMES.get(reason, (FINISHED, 200))
        self.server.counts.end(ticket, outcome, 200 if stream else status)
