"""ansible-rulebook with one rulebook, as a process of its own on a free port."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
import typing as t
import urllib.error
import urllib.request
from pathlib import Path

from tests.integration.ansible.running import ROOT, Run

PROGRAM = ROOT / ".venvs" / "eda" / "bin" / "ansible-rulebook"
TOKEN = "a-word-for-alertmanager"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
SECONDS = 240  # for whatever is awaited, on a busy machine


class Rulebook:
    """Started in a folder with playbooks; it listens when the context has begun, and is gone when it ends."""

    def __init__(self, folder: Path, rulebook: str, inventory: Path, scratch: Path) -> None:
        self.port = _free_port()
        self._log = scratch / "output"
        variables = scratch / "vars.yml"
        variables.write_text(json.dumps({"vllm_eda_address": "127.0.0.1", "vllm_eda_port": self.port}))
        self._command = [
            PROGRAM, "--rulebook", rulebook, "--inventory", inventory, "--vars", variables, "--env-vars", "VLLM_EDA_TOKEN",
        ]
        self._folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        path = [str(PROGRAM.parent), *(part for part in kept["PATH"].split(os.pathsep) if "shims" not in part)]
        self._environment = {**kept, "PATH": os.pathsep.join(path), "VLLM_EDA_TOKEN": TOKEN, "HOME": str(scratch)}

    def __enter__(self) -> Rulebook:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True)
        try:
            self.until(lambda _output: self._listens(), "listening")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # Its session is its own: what it has started goes with it.
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def post(self, *alerts: dict[str, t.Any], token: str = TOKEN) -> int:
        """A notification as Alertmanager sends it; returns the status of the answer."""
        body = {"version": "4", "status": "firing", "receiver": "rulebook", "groupLabels": {}, "alerts": list(alerts)}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/alerts", json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    @property
    def output(self) -> str:
        """All that it has printed so far, without colours."""
        return COLOURS.sub("", self._log.read_text(errors="replace"))

    @property
    def runs(self) -> list[Run]:
        """The playbook runs so far that have ended, each from its first play on."""
        # What failed is printed a second time, as an error.
        again = re.compile(r"^[^\n]* - ERROR - \nPLAY .*?^PLAY RECAP.*?\n\n", re.MULTILINE | re.DOTALL)
        once = again.sub("", self.output + "\n")
        runs = re.split(r"(?=^PLAY \[Check vLLM servers)", once, flags=re.MULTILINE)[1:]
        return [Run(0, run) for run in runs if re.search(r"^PLAY RECAP.*\n.*ignored=\d", run, re.MULTILINE)]

    def until(self, condition: t.Callable[[str], bool], what: str) -> None:
        """Wait until something is true of the output."""
        deadline = time.monotonic() + SECONDS
        while not condition(self.output):
            assert self._process.poll() is None, f"ansible-rulebook has ended:\n{self.output[-4000:]}"
            assert time.monotonic() < deadline, f"not {what} within {SECONDS} s:\n{self.output[-4000:]}"
            time.sleep(0.2)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def _free_port() -> int:
    """A port that is free now. ansible-rulebook cannot say which one it took, so 0 is no choice."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
