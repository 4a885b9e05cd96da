"""The SSH key of a run, and the host keys it trusts."""

from __future__ import annotations

from .commands import run as run_command
from .runs import Run


def create(run: Run) -> None:
    """Make the key pair that all users of all hosts of the run accept."""
    if not run.key.exists():
        run_command(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"fleet-{run.id}", "-f", str(run.key)])


def trust(run: Run) -> None:
    """Write down the hosts' own key: it comes from the shared root, so it is known before the first contact."""
    public = (run.rootfs / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()[:2]
    run.known_hosts.write_text("".join(f"{host.address} {' '.join(public)}\n" for host in run.hosts))


def options(run: Run) -> list[str]:
    """The options of ssh that keep the run's connections away from the user's own settings and known hosts."""
    return [
        "-F",
        "none",
        "-o",
        f"UserKnownHostsFile={run.known_hosts}",
        "-o",
        "GlobalKnownHostsFile=none",
        "-o",
        "StrictHostKeyChecking=yes",
        "-o",
        "IdentitiesOnly=yes",
        "-o",
        "HostKeyAlgorithms=ssh-ed25519",
    ]


def close_shared(run: Run) -> None:
    """End the connections that ssh keeps open for the next command; they would outlive the hosts."""
    if not run.sockets.is_dir():
        return
    for socket in run.sockets.iterdir():
        run_command(["ssh", "-F", "none", "-o", f"ControlPath={socket}", "-O", "exit", "host"], check=False)
        socket.unlink(missing_ok=True)
    run.sockets.rmdir()
