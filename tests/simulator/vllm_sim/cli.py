"""The command line: options, start, and the end by signal."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import ssl
import sys
import threading
import time
from typing import Any

from .control import Control
from .exchange import Exchange
from .front import Front
from .listener import Listener
from .process import Process
from .proxy import Proxy
from .releases import DEFAULT, RELEASES, release
from .scheduler import EngineSettings
from .server import Server, ServerSettings
from .states import STATES, enter


def parser() -> argparse.ArgumentParser:
    """All options."""
    made = argparse.ArgumentParser(prog="vllm_simulator", description=__doc__)
    _add_server_options(made.add_argument_group("the server it plays"))
    _add_engine_options(made.add_argument_group("its engines (times in seconds)"))
    _add_process_options(made.add_argument_group("the process"))
    return made


def _add_server_options(group: Any) -> None:
    group.add_argument("--release", choices=RELEASES, default=DEFAULT)
    group.add_argument("--served-model-name", nargs="+", default=["simulated"], metavar="NAME")
    group.add_argument("--lora", nargs="+", default=[], metavar="NAME")
    group.add_argument("--data-parallel-size", type=int, default=1, metavar="N", help="engines")
    group.add_argument("--api-server-count", type=int, default=1, metavar="N",
                       help="2 or more: metrics as of several HTTP processes")
    group.add_argument("--runner", choices=("generate", "pooling"), default="generate")
    group.add_argument("--api-key", default="")
    group.add_argument("--root-path", default="")
    group.add_argument("--no-dev-mode", action="store_true", help="no /sleep, /pause, /is_paused")
    group.add_argument("--disable-log-stats", action="store_true", help="no vllm: series")
    group.add_argument("--enable-server-load-tracking", action="store_true", help="GET /load counts")
    group.add_argument("--extra-metrics-lines", type=int, default=0, metavar="N", help="makes /metrics longer")


def _add_engine_options(group: Any) -> None:
    group.add_argument("--step-seconds", type=float, default=0.02)
    group.add_argument("--max-num-seqs", type=int, default=12, help="slots of one engine")
    group.add_argument("--max-num-batched-tokens", type=int, default=2048, help="prompt tokens in one step")
    group.add_argument("--block-size", type=int, default=16, help="tokens in one block of KV cache")
    group.add_argument("--num-gpu-blocks", type=int, default=8192)
    group.add_argument("--first-step-seconds", type=float, default=0.0, help="more for the very first step")
    group.add_argument("--state", choices=STATES, default="fresh", help="from the start")
    group.add_argument("--load", type=int, default=0, metavar="N",
                       help="requests kept in flight by the process itself (with --state busy: on each engine)")


def _add_process_options(group: Any) -> None:
    group.add_argument("--host", default="127.0.0.1")
    group.add_argument("--port", type=int, default=8000, help="0: any free port; it is announced on stdout")
    group.add_argument("--certfile", default="", help="with --keyfile: TLS")
    group.add_argument("--keyfile", default="")
    group.add_argument("--start-delay", type=float, default=0.0, help="seconds until the port opens")
    group.add_argument("--fail-start", action="store_true", help="exit with 1 instead of opening the port")
    group.add_argument("--ignore-sigterm", action="store_true")
    group.add_argument("--end-with-stdin", action="store_true",
                       help="end when standard input closes, as it does when whoever started this has ended")
    group.add_argument("--log", default="", metavar="FILE", help="start and end of every request, as JSON lines")
    group.add_argument("--proxy", nargs="+", default=[], metavar="URL",
                       help="be a least-connection proxy over these servers instead")


def server_settings(options: argparse.Namespace) -> ServerSettings:
    """Options as settings."""
    engine = EngineSettings(
        release=release(options.release), step_seconds=options.step_seconds, max_num_seqs=options.max_num_seqs,
        max_num_batched_tokens=options.max_num_batched_tokens, block_size=options.block_size,
        blocks=options.num_gpu_blocks, first_step_seconds=options.first_step_seconds,
        pooling=options.runner == "pooling")
    return ServerSettings(
        engine=engine, model_names=tuple(options.served_model_name), loras=tuple(options.lora),
        engines=options.data_parallel_size, api_servers=options.api_server_count, api_key=options.api_key,
        root_path=options.root_path.rstrip("/"), dev_mode=not options.no_dev_mode,
        log_stats=not options.disable_log_stats, track_load=options.enable_server_load_tracking,
        extra_metrics_lines=options.extra_metrics_lines, log_path=options.log)


def tls_context(options: argparse.Namespace) -> ssl.SSLContext | None:
    """The context for --certfile and --keyfile, None without them."""
    if not options.certfile:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certfile, options.keyfile or None)
    return context


class PortTakenError(RuntimeError):
    """The port cannot be listened on."""


def build(options: argparse.Namespace) -> Process:
    """A server in its state, with its port taken but not yet open.  Raises PortTakenError."""
    server = Server(server_settings(options))
    process = Process(server)
    application = Proxy(options.proxy, process) if options.proxy else Front(server, Control(server, process))
    try:
        process.listener = Listener(
            options.host, options.port, lambda sock, address: Exchange(sock, address, application),
            tls_context(options))
    except OSError as error:
        raise PortTakenError(f"cannot listen on {options.host} port {options.port}: {error.strerror}") from error
    enter(server, options.state, options.load)
    return process


def main(arguments: list[str] | None = None) -> int:
    """Run until ended by a signal or a command; returns an exit code."""
    options = parser().parse_args(arguments)
    stop = _catch_signals(options.ignore_sigterm)
    if options.end_with_stdin:
        threading.Thread(target=_wait_for_end_of_stdin, args=(stop,), daemon=True).start()
    try:
        process = build(options)
    except PortTakenError as error:
        print(error, file=sys.stderr)
        return 1
    _open_port(process.listener, options, stop)
    stop.wait()
    process.exit(0)
    return 0


def _open_port(listener: Listener | None, options: argparse.Namespace, stop: threading.Event) -> None:
    """Announce the port and open it: the other way round unless the start is slow."""
    assert listener
    if not options.start_delay and not options.fail_start:
        listener.listen()
    _announce(listener, options)
    if stop.wait(options.start_delay):
        return
    if options.fail_start:
        os._exit(1)
    if options.start_delay:
        listener.listen()


def _announce(listener: Listener, options: argparse.Namespace) -> None:
    scheme = "https" if options.certfile else "http"
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    with contextlib.suppress(OSError):  # nobody has to read it
        print(json.dumps({"port": listener.port, "url": f"{scheme}://{host}:{listener.port}", "pid": os.getpid(),
                          "at": time.time()}), flush=True)


def _catch_signals(ignore_sigterm: bool) -> threading.Event:
    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    signal.signal(signal.SIGTERM, signal.SIG_IGN if ignore_sigterm else lambda *_: stop.set())
    return stop


def _wait_for_end_of_stdin(stop: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    stop.set()
