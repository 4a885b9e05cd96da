"""A relay outlives the server behind it and can be led to another."""

from __future__ import annotations

import socket
import threading

from tests.real.relay import leading_to


def serve(listener: socket.socket, word: bytes) -> None:
    """Says one word to each caller, until the listener is closed."""

    def run() -> None:
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:
                return
            with caller:
                caller.sendall(word)

    threading.Thread(target=run, daemon=True).start()


def hear(url: str) -> bytes:
    address, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((address, int(port)), timeout=5) as caller:
        return caller.makefile("rb").read()


def test_what_a_server_says_arrives():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serve(listener, b"one")
        with leading_to(listener.getsockname()[1]) as relay:
            assert hear(relay.url) == b"one"


def test_a_caller_waits_until_the_server_listens():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        with leading_to(listener.getsockname()[1]) as relay:
            heard = []
            caller = threading.Thread(target=lambda: heard.append(hear(relay.url)))
            caller.start()
            listener.listen()
            serve(listener, b"late")
            caller.join(timeout=5)
            assert heard == [b"late"]


def test_the_same_address_can_lead_to_another_server():
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        serve(first, b"one")
        serve(second, b"two")
        with leading_to(first.getsockname()[1]) as relay:
            assert hear(relay.url) == b"one"
            relay.switch(second.getsockname()[1])
            assert hear(relay.url) == b"two"
