"""How a fault looks on the wire."""

from __future__ import annotations

import socket
import struct
import threading
from typing import Callable

from .exchange import Exchange
from .exposition import CONTENT_TYPE
from .faults import GARBAGE, HTML, Fault

DRIP_SECONDS = 0.2


def spoil(exchange: Exchange, fault: Fault, gone: threading.Event, body: Callable[[], bytes]) -> bool:
    """Play a fault; False if the exchange is to be answered as usual after all (it only came late)."""
    if fault.delay and gone.wait(fault.delay):
        exchange.hang_up()
        return True
    if fault.mode:
        _MODES[fault.mode](exchange, fault, gone, body)
        return True
    if fault.status:
        exchange.send_json(fault.status, {"error": {"message": "as ordered", "type": "Simulated",
                                                    "param": None, "code": fault.status}})
        return True
    return False


def _garbage(exchange: Exchange, fault: Fault, gone: threading.Event, body: Callable[[], bytes]) -> None:
    exchange.send(fault.status or 200, GARBAGE, CONTENT_TYPE)


def _html(exchange: Exchange, fault: Fault, gone: threading.Event, body: Callable[[], bytes]) -> None:
    exchange.send(fault.status or 200, HTML, "text/html; charset=utf-8")


def _empty(exchange: Exchange, fault: Fault, gone: threading.Event, body: Callable[[], bytes]) -> None:
    exchange.send(fault.status or 200)


def _redirect(exchange: Exchange, fault: Fault, gone: threading.Event, body: Callable[[], bytes]) -> None:
    exchange.send(fault.status or 302, location=fault.location)


def _truncated(exchange: Exchange, fault: Fault, gone: threading.Event, body: Callable[[], bytes]) -> None:
    """Promise a whole body, send half of it, hang up."""
    whole = body()
    _head(exchange, len(whole))
    exchange.wfile.write(whole[: len(whole) // 2])
    exchange.hang_up()


def _drip(exchange: Exchange, fault: Fault, gone: threading.Event, body: Callable[[], bytes]) -> None:
    """Send one byte now and then, for ever."""
    whole = body()
    _head(exchange, len(whole))
    for place in range(len(whole)):
        exchange.wfile.write(whole[place: place + 1])
        exchange.wfile.flush()
        if gone.wait(DRIP_SECONDS):
            break
    exchange.hang_up()


def _silent(exchange: Exchange, fault: Fault, gone: threading.Event, body: Callable[[], bytes]) -> None:
    gone.wait()
    exchange.hang_up()


def _reset(exchange: Exchange, fault: Fault, gone: threading.Event, body: Callable[[], bytes]) -> None:
    """Close so that the client gets a reset instead of an end."""
    exchange.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    exchange.hang_up()


def _head(exchange: Exchange, length: int) -> None:
    exchange.status = 200
    exchange.send_response(200)
    exchange.send_header("content-type", CONTENT_TYPE)
    exchange.send_header("content-length", str(length))
    exchange.end_headers()


_MODES: dict[str, Callable] = {
    "garbage": _garbage, "html": _html, "truncated": _truncated, "empty": _empty, "silent": _silent,
    "reset": _reset, "redirect": _redirect, "drip": _drip,
}
