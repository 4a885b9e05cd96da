"""One host with one simulated server: what a test of the restart is played on."""

from __future__ import annotations

import itertools
import json
import typing as t
from pathlib import Path

from tests.fleet.hosts import Host
from tests.fleet.simulator import SimulatedServer
from tests.integration.ansible.running import ROOT, Ansible

STATE = "/var/lib/fleetcheck-vllm"
STARTED = "39f53479d3a045ac8e11786248231fbf"
PATIENCE = {"patience": 3, "startup_grace": 0}
TIMEOUT = 4  # so long does a last look wait for an answer that a frozen server does not give
# The server of a test is always young: what is about the budget says so.
NO_BUDGET = {"min_interval": 0, "max_starts": 1000}

_CLEAR = """
systemctl stop {unit}
umount {state}/evidence {state}
rm -rf {state} /etc/systemd/system/vllm-* /usr/local/bin/*
systemctl daemon-reload
systemctl reset-failed {unit}
gpasswd --delete guest systemd-journal
loginctl disable-linger guest
loginctl terminate-user guest
rm -rf /home/guest/.config /home/guest/.local
true
"""

Result = dict[str, t.Any]


class Stage:
    """A host, and the server of the test that is played now. Each test has a unit of its own name: it has no past."""

    _numbers = itertools.count(1)

    def __init__(self, host: Host, inventory: Path, ansible: Ansible) -> None:
        self.host = host
        self.inventory = inventory
        self.spoilt = False
        self._ansible = ansible
        self._next()

    def _next(self) -> None:
        self.unit = f"vllm-{next(self._numbers)}.service"
        self.server = SimulatedServer(self.host, self.unit)

    def clear(self) -> None:
        """Leave nothing of the test on the host but its journal."""
        self.host.run("sh", "-c", _CLEAR.format(unit=self.unit, state=STATE), check=False)
        self._next()

    # What Ansible does

    def judge(self, verdict: str = "stuck", **options: t.Any) -> Result:
        """What the check returns of the server, which must have this verdict."""
        given = {"unit": self.unit, **options.pop("server", {})}
        said = self.module("vllm_health_info", {"servers": [given], "timeout": TIMEOUT, **PATIENCE}, **options)
        judged: Result = said["servers"][0]
        assert judged["verdict"] == verdict, judged["message"]
        return judged

    def restart(self, judged: Result, *flags: str, as_user: str = "ops", become: bool = True, **options: t.Any) -> Result:
        """What the module does about a server that was judged so, without a budget unless one is given."""
        arguments = {
            "server": {"unit": self.unit, **options.pop("server", {})},
            "verdict": judged["verdict"],
            "invocation_id": judged["systemd"]["invocation_id"],
            "last_sample": judged["last_sample"] or {},
            "timeout": TIMEOUT,
            **NO_BUDGET,
            **options,
        }
        return self.module("vllm_unit_restart", arguments, *flags, as_user=as_user, become=become)

    def module(
        self, name: str, arguments: t.Mapping[str, t.Any], *flags: str, as_user: str = "ops", become: bool = True
    ) -> Result:
        """Run one module of the collection on the host, over SSH."""
        run = self._ansible(
            "ansible",
            *("--inventory", self.inventory, self.host.name, "--module-name", f"fleetcheck.vllm.{name}"),
            *("--args", json.dumps(arguments), "--extra-vars", f"ansible_user={as_user}"),
            *(["--become"] if become else []),
            *flags,
            ANSIBLE_COLLECTIONS_PATH=str(ROOT / "playbooks" / "collections"),
            ANSIBLE_PIPELINING="1",
        )
        before, arrow, after = run.output.partition(" => {")
        assert arrow and run.code == 0, run.output
        result: Result = json.JSONDecoder().raw_decode("{" + after)[0]
        return {**result, "printed": before}

    # What is on the host

    def starts(self) -> int:
        """How often systemd has started the unit."""
        self.host.run("journalctl", "--sync")
        match = [f"MESSAGE_ID={STARTED}", f"UNIT={self.unit}"]
        return len(self.host.run("journalctl", "--quiet", "--output=json", *match).stdout.splitlines())

    def configure(self, text: str) -> None:
        """Change the unit's settings; they count from its next start on."""
        self.host.install_unit(f"{self.unit}.d/test.conf", text)

    def evidence(self) -> dict[str, str]:
        """The files in the one folder of evidence of the unit."""
        (folder,) = self.host.run("sh", "-c", f"ls -d {STATE}/evidence/{self.unit}-*").stdout.split()
        return {path.rpartition("/")[2]: self.host.read(path) for path in self._list(folder)}

    def kept(self) -> list[str]:
        """The paths of all that lies in the folder of the restart's state; empty where there is none."""
        return self._list(STATE)

    def _list(self, folder: str) -> list[str]:
        return sorted(self.host.run("find", folder, "-type", "f", check=False).stdout.split())
