"""Plays scenarios: brings a state about, asks the module, compares, keeps the evidence."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import check, lab, load, truth, witness
from .scenarios import Group, Scenario
from .stage import Stage, settle
from .table import Row

# The paths a probe may go to.
ASKED = (load.GENERATE, "/v1/chat/completions", load.EMBED, "/pooling")


@dataclass(frozen=True)
class Played:
    """A row of the table, and the longest silence where the engine worked throughout."""

    row: Row
    silence: float | None = None


@dataclass(frozen=True)
class Player:
    """Knows how to make servers, how patient the module is to be (seconds), and where evidence goes."""

    vllm: Path
    model: Path
    patience: float
    evidence: Path

    def group(self, group: Group, scenarios: list[Scenario], tell: Callable[[Played], None]) -> None:
        """Plays scenarios on one server, telling of each as soon as it is over.

        A state that cannot be brought about costs its own row: the next one gets a new server.
        """
        left = list(scenarios)
        while left:
            server = self._server(group, "server")
            stage = Stage(server, spare=lambda: self._server(group, "spare"), key=group.key)
            try:
                with lab.running(server):
                    while left:
                        tell(self._play(stage, left[0]))
                        left.pop(0)
            except (lab.LabError, check.CheckError, OSError) as error:
                tell(Played(_failed(left.pop(0), error)))

    def _server(self, group: Group, role: str) -> lab.Server:
        """A server of the group, not started; its log lies with the evidence."""
        folder = self.evidence / group.name
        folder.mkdir(parents=True, exist_ok=True)
        return lab.Server(self.vllm, self.model, group.spec, folder / f"{role}.log")

    def _play(self, stage: Stage, scenario: Scenario) -> Played:
        """One scenario from the state to the comparison."""
        with scenario.enter(stage):
            before = _answered(stage.server)
            watch = witness.Watch(stage.server.url)
            watch.start()
            try:
                said = self._ask(stage, scenario)
            finally:
                watch.finish()
            seen = _answered(stage.server) - before
        settle(stage)
        outcome = truth.outcome(said, seen if _countable(scenario) else 0)
        wrong = tuple(truth.contradictions(scenario.right, outcome))
        self._keep(scenario, said, watch.pages)
        row = Row(scenario.name, scenario.state, scenario.truth, outcome, wrong)
        return Played(row, _silence(scenario, watch.pages))

    def _ask(self, stage: Stage, scenario: Scenario) -> dict[str, Any]:
        """Runs the module, and what is to happen while it runs."""
        pool = ThreadPoolExecutor(1)
        try:
            answer = pool.submit(check.ask, stage.url, scenario.manner(self.patience))
            if scenario.during is not None:
                stage.await_first_read()
                time.sleep(scenario.after)
                scenario.during(stage)
            return answer.result()
        finally:
            # When interrupted: the server ends now, and with it the check.
            pool.shutdown(wait=False)

    def _keep(self, scenario: Scenario, said: dict[str, Any], pages: list[tuple[float, str]]) -> None:
        """Writes what was said and the first and last page read beside it."""
        folder = self.evidence / scenario.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "said.json").write_text(json.dumps(said, indent=1))
        for name, page in (("first", pages[:1]), ("last", pages[-1:])):
            for _, text in page:
                (folder / f"{name}.prom").write_text(text)


def _answered(server: lab.Server) -> int:
    """How many requests of the kinds a probe may take the server has answered."""
    return sum(server.answered(path) for path in ASKED)


def _countable(scenario: Scenario) -> bool:
    """Whether the clients stand still while the module asks, so that any other request is the module's."""
    return scenario.truth == "busy" and not scenario.name.startswith("pooling")


def _silence(scenario: Scenario, pages: list[tuple[float, str]]) -> float | None:
    """The longest silence of an engine that worked all the time; None where it did not."""
    if scenario.truth != "busy" or scenario.during is not None:
        return None
    return witness.longest_silence((at, witness.parse(page)) for at, page in pages)


def _failed(scenario: Scenario, error: Exception) -> Row:
    """The row of a state that could not be brought about or was not answered."""
    return Row(scenario.name, scenario.state, scenario.truth, None, (str(error),))
