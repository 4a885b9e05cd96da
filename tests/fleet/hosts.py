"""One running test host: commands, files and units in it, and its network cable."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from . import groups, keys, machines, network
from .commands import Done, FleetError
from .commands import run as run_command
from .runs import HostRecord, Run

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENVIRONMENT = ("env", "-i", f"PATH={_PATH}", "LANG=C.UTF-8", "HOME=/root")
_INSIDE = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd=/")
# A host counts as up in either of these; "degraded" only says that some unit failed.
_UP = ("running", "degraded")


class Host:
    """A host of a run. `run` and the like go straight into the container; `ssh` takes the way Ansible takes."""

    def __init__(self, run: Run, record: HostRecord) -> None:
        self._run = run
        self._record = record
        self.name = record.name
        self.address = record.address

    def run(self, *command: str, stdin: bytes | None = None, timeout: float = 60, check: bool = True) -> Done:
        """Run a command in the host as root, without its network or SSH server. Raises FleetError when it fails."""
        return run_command([*self._entrance(), *_ENVIRONMENT, *command], stdin=stdin, timeout=timeout, check=check)

    def run_as(self, user: str, *command: str, stdin: bytes | None = None, check: bool = True) -> Done:
        """Run a command as an ordinary user, with what ``systemctl --user`` needs (see `keep_user_units`)."""
        number = self.run("id", "-u", user).stdout.strip()
        environment = ("env", f"HOME=/home/{user}", f"XDG_RUNTIME_DIR=/run/user/{number}")
        return self.run("runuser", "-u", user, "--", *environment, *command, stdin=stdin, check=check)

    def ssh(self, command: str, user: str = "ops", timeout: float = 60, check: bool = True) -> Done:
        """Run a shell command over SSH, as ``ops`` (may use sudo), ``guest`` (may not) or ``root``."""
        options = [*keys.options(self._run), "-o", "BatchMode=yes", "-i", str(self._run.key)]
        return run_command(["ssh", *options, f"{user}@{self.address}", command], timeout=timeout, check=check)

    def write(self, path: str, content: str | bytes, mode: str = "0644") -> None:
        """Put a file in the host, with the folders above it."""
        data = content.encode() if isinstance(content, str) else content
        self.run("install", "-D", f"--mode={mode}", "/dev/stdin", path, stdin=data)

    def read(self, path: str) -> str:
        """What a file in the host contains. Raises FleetError where there is none."""
        return self.run("cat", path).stdout

    def copy_folder(self, source: Path, target: str) -> None:
        """Copy a folder of this machine into the host, as root's; compiled Python stays behind."""
        pack = ["tar", "-C", str(source), "--exclude=__pycache__", "--owner=0", "--group=0", "-cf", "-", "."]
        packed = subprocess.run(pack, capture_output=True, check=True)
        self.run("mkdir", "-p", target)
        self.run("tar", "-C", target, "-xf", "-", stdin=packed.stdout)

    def install_unit(self, name: str, text: str) -> None:
        """Write a system unit and make systemd read it; it is not started."""
        self.write(f"/etc/systemd/system/{name}", text)
        self.run("systemctl", "daemon-reload")

    def unit(self, name: str, *properties: str) -> dict[str, str]:
        """Properties of a unit, as ``systemctl show`` gives them."""
        shown = self.run("systemctl", "show", name, f"--property={','.join(properties)}").stdout
        return dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)

    def keep_user_units(self, user: str) -> None:
        """Start the user's own service manager and keep it running without a login, so that `run_as` can use it."""
        self.run("loginctl", "enable-linger", user)
        number = self.run("id", "-u", user).stdout.strip()
        self.run("systemctl", "start", f"user@{number}.service")

    def cut_network(self) -> None:
        """Pull the network cable: connections hang, nobody is told."""
        network.cut(self._record)

    def restore_network(self) -> None:
        """Plug the network cable in again."""
        network.mend(self._record)

    def await_boot(self, seconds: float = 60) -> None:
        """Return when systemd has started everything and SSH answers. Raises FleetError if that takes longer."""
        machines.await_init(self._run, self._record, seconds)
        deadline = time.monotonic() + seconds
        while not (self._is_up() and self.ssh("true", user="root", check=False).returncode == 0):
            if time.monotonic() > deadline:
                raise FleetError(f"host {self.name} is not up after {seconds:g} s:\n{self._complaint()}")
            time.sleep(0.1)

    def _is_up(self) -> bool:
        return self.run("systemctl", "is-system-running", check=False).stdout.strip() in _UP

    def _complaint(self) -> str:
        console = machines.log(self._run, self._record).read_text()[-1000:]
        return console + self.run("journalctl", "--no-pager", "--lines=20", check=False).stdout

    def _entrance(self) -> list[str]:
        init = groups.leader(self._record.machine)
        if init is None:
            raise FleetError(f"host {self.name} is not running")
        return ["nsenter", f"--target={init}", *_INSIDE, "--"]
