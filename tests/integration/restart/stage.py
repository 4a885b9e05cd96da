"""One host with one simulated server: what a test of the restart is played on."""

from __future__ import annotations

import itertools
import typing as t

from tests.fleet.hosts import Host
from tests.fleet.simulator import SimulatedServer
from tests.integration.restart import bare_modules

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

    def __init__(self, host: Host) -> None:
        self.host = host
        self.spoilt = False
        self._next()

    def _next(self) -> None:
        self.unit = f"vllm-{next(self._numbers)}.service"
        self.server = SimulatedServer(self.host, self.unit)

    def clear(self) -> None:
        """Leave nothing of the test on the host but its journal."""
        self.host.run("sh", "-c", _CLEAR.format(unit=self.unit, state=STATE), check=False)
        self._next()

    # What the modules do

    def judge(self, verdict: str = "stuck", **options: t.Any) -> Result:
        """What the check returns of the server, which must have this verdict."""
        given = {"unit": self.unit, **options.pop("server", {})}
        said = self.module("vllm_health_info", {"servers": [given], "timeout": TIMEOUT, **PATIENCE}, **options)
        judged: Result = said["servers"][0]
        assert judged["verdict"] == verdict, judged["message"]
        return judged

    def restart(self, judged: Result, check: bool = False, as_user: str = "root", **options: t.Any) -> Result:
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
        return self.module("vllm_unit_restart", {**arguments, "_ansible_check_mode": check}, as_user=as_user)

    def module(self, name: str, arguments: t.Mapping[str, t.Any], as_user: str = "root") -> Result:
        """Run one module of the collection on the host."""
        return bare_modules.run(self.host, name, arguments, as_user)

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
