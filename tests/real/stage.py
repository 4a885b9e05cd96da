"""What a scenario works with, and the states it can bring about and undo."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from . import lab, load, model, witness
from .relay import Relay, leading_to

# A prompt with an answer behind it has to fit.
LONGEST_PROMPT = model.CONTEXT - 2048


@dataclass
class Stage:
    """One server, the key to it, and what stands beside it."""

    server: lab.Server
    spare: Callable[[], lab.Server]
    """A second server of the same kind, not started yet."""
    key: str | None = None
    relay: Relay | None = None
    """What the module is led through, where a state needs that."""
    other: lab.Server | None = None
    """The spare server, where a state has started it."""

    @property
    def url(self) -> str:
        """The address the module is given."""
        return self.relay.url if self.relay else self.server.url

    def await_first_read(self, seconds: float = 120.0) -> None:
        """Waits until the module asks: how long Ansible takes before that depends on the machine.

        Needs a relay, which the module alone is led through. Raises LabError if it never asks.
        """
        if self.relay is None or not self.relay.called.wait(seconds):
            raise lab.LabError("the module was not seen to ask")


State = Callable[[Stage], AbstractContextManager[None]]


def nothing(stage: Stage) -> AbstractContextManager[None]:
    """The server as it is."""
    return contextlib.nullcontext()


def together(*states: State) -> State:
    """Several states, one inside the other, undone in the opposite order."""

    @contextlib.contextmanager
    def all_of_them(stage: Stage) -> Iterator[None]:
        with ExitStack() as stack:
            for state in states:
                stack.enter_context(state(stage))
            yield

    return all_of_them


@contextlib.contextmanager
def served_once(stage: Stage) -> Iterator[None]:
    """Idle after work: one request has been answered."""
    with load.clients(stage.server, load.Work(output=8), key=stage.key) as crowd:
        crowd[0].join(timeout=60)
    settle(stage)
    yield


def decoding(count: int, rank: int | None = None) -> State:
    """So many requests in the middle of their answers."""

    @contextlib.contextmanager
    def state(stage: Stage) -> Iterator[None]:
        works = [load.Work(rank=rank)] * count
        with load.clients(stage.server, *works, key=stage.key):
            witness.until(stage.server, f"{count} requests in flight", lambda page: _in_flight(page) == count)
            witness.until_working(stage.server)
            yield

    return state


def embedding(count: int) -> State:
    """So many clients that send one text after another to a pooling server."""

    @contextlib.contextmanager
    def state(stage: Stage) -> Iterator[None]:
        works = [load.Work(prompt=2000, path=load.EMBED)] * count
        with load.clients(stage.server, *works, repeat=True):
            witness.until_working(stage.server)
            yield

    return state


@contextlib.contextmanager
def chunked_prefill(stage: Stage) -> Iterator[None]:
    """A prompt that takes tens of seconds, read in chunks; nothing else runs."""
    length = min(LONGEST_PROMPT, 2 * load.lasting(stage.server, seconds=6, growth=2, longest=LONGEST_PROMPT))
    with load.clients(stage.server, load.Work(prompt=length, output=1)):
        witness.until(stage.server, "the prompt is being read", lambda page: witness.total(page, witness.RUNNING) == 1)
        yield


@contextlib.contextmanager
def compiling(stage: Stage) -> Iterator[None]:
    """One request that waits for its grammar to be compiled: nothing runs, nothing moves, and nothing is wrong."""
    with load.clients(stage.server, load.Work(choices=20000)):
        witness.until(stage.server, "a request waits", lambda page: witness.total(page, witness.WAITING) == 1)
        yield


@contextlib.contextmanager
def one_long_step(stage: Stage) -> Iterator[None]:
    """A prompt that is read in a single step of five to ten seconds; /metrics shows nothing of it until it is over."""
    length = load.lasting(stage.server, seconds=5, growth=1.5, longest=LONGEST_PROMPT)
    with load.clients(stage.server, load.Work(prompt=length, output=1500)) as crowd:
        crowd[0].accepted.wait(timeout=5)
        yield


def frozen(index: int = 0, title: str = lab.ENGINE) -> State:
    """One process stopped, an engine core if nothing else is said."""

    @contextlib.contextmanager
    def state(stage: Stage) -> Iterator[None]:
        stage.server.freeze(title, index)
        try:
            yield
        finally:
            stage.server.thaw(title, index)

    return state


@contextlib.contextmanager
def frozen_and_left(stage: Stage) -> Iterator[None]:
    """Stopped with three requests in flight, and then the clients gave up."""
    with load.clients(stage.server, *[load.Work()] * 3):
        witness.until(stage.server, "3 requests in flight", lambda page: _in_flight(page) == 3)
        witness.until_working(stage.server)
        stage.server.freeze(lab.ENGINE)
    try:
        yield
    finally:
        stage.server.thaw(lab.ENGINE)


@contextlib.contextmanager
def http_frozen(stage: Stage) -> Iterator[None]:
    """The HTTP process stopped; the kernel still accepts connections for it."""
    stage.server.freeze_main()
    try:
        yield
    finally:
        stage.server.thaw_main()


def posted(enter: str, leave: str) -> State:
    """A state that the server's own development endpoints switch on and off."""

    @contextlib.contextmanager
    def state(stage: Stage) -> Iterator[None]:
        with ThreadPoolExecutor(1) as pool:
            code = pool.submit(stage.server.post, enter)
            try:
                # The answer to a pause that lets requests end comes when they have ended.
                if wait([code], timeout=5).done and code.result() != 200:
                    raise lab.LabError(f"POST {enter} was answered {code.result()}")
                yield
            finally:
                stage.server.post(leave)

    return state


@contextlib.contextmanager
def starting_again(stage: Stage) -> Iterator[None]:
    """Ended and started again a moment ago: nothing listens yet."""
    stage.server.stop()
    stage.server.start()
    yield
    stage.server.wait_ready()


@contextlib.contextmanager
def engine_killed(stage: Stage) -> Iterator[None]:
    """The engine core ended the hard way, just now, with work in flight."""
    with load.clients(stage.server, *[load.Work()] * 3):
        witness.until(stage.server, "3 requests in flight", lambda page: _in_flight(page) == 3)
        stage.server.kill(lab.ENGINE)
        yield


@contextlib.contextmanager
def ended(stage: Stage) -> Iterator[None]:
    """The engine core was killed, and vLLM has ended itself since."""
    # After the scenario before this one the engine may be dead while the server is still ending itself.
    if stage.server.has(lab.ENGINE):
        stage.server.kill(lab.ENGINE)
    stage.server.wait_ended()
    yield


@contextlib.contextmanager
def behind_a_relay(stage: Stage) -> Iterator[None]:
    """Stopped while busy, and asked through an address that outlives the process."""
    with leading_to(stage.server.port) as address, together(decoding(3), frozen())(stage):
        stage.relay = address
        try:
            yield
        finally:
            stage.relay = None


@contextlib.contextmanager
def beside_another(stage: Stage) -> Iterator[None]:
    """The same, with a second server that is ready to be led to."""
    with lab.running(stage.spare()) as other, behind_a_relay(stage):
        stage.other = other
        try:
            yield
        finally:
            stage.other = None


def thaw(stage: Stage) -> None:
    """The engine goes on, while the check is under way."""
    stage.server.thaw(lab.ENGINE)


def restart(stage: Stage) -> None:
    """The server is ended and started again, while the check is under way."""
    stage.server.stop()
    stage.server.start()


def lead_elsewhere(stage: Stage) -> None:
    """The address leads to the other server, while the check is under way."""
    assert stage.relay is not None and stage.other is not None
    stage.relay.switch(stage.other.port)


def settle(stage: Stage) -> None:
    """Waits until a server has dropped what its clients left behind, or the next state would not be what it says.

    A server that ended with its state, or is about to, has nothing to drop.
    """
    with contextlib.suppress(OSError):
        witness.until(stage.server, "nothing in flight", lambda page: _in_flight(page) == 0, seconds=120)


def _in_flight(page: witness.Reading) -> float:
    """Running and waiting of all engines."""
    return witness.total(page, witness.RUNNING) + witness.total(page, witness.WAITING)
