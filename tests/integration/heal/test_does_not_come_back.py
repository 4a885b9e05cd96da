"""A server that does not serve again ends the run: there is no second try, and nothing else is touched."""

import pytest

from tests.integration.heal.stage import Healed, Stage

pytestmark = pytest.mark.systemd

BARE = "/opt/bare"
"""A virtual environment without requests: the check goes on with the Python of the unit."""

_MAKE_BARE = f"""
mkdir -p {BARE}/bin
ln -sf /usr/bin/python3 {BARE}/bin/python3
printf 'home = /usr/bin\\ninclude-system-site-packages = false\\n' > {BARE}/pyvenv.cfg
"""


def stopped_at_the_first(stage: Stage, done: Healed, *words: str) -> None:
    """The first server was restarted once and did not come back; the second one, which hangs too, was left as it is."""
    assert done.code != 0
    assert done.actions() == ["restart_failed", "run_stopped"], done.output
    assert stage.starts() == [2, 1]
    said = done.row("one")["action_message"]
    assert any(word in said for word in words), said
    assert "one" in done.output.rpartition("need attention")[2]
    assert stage.hosts["one"].run("ls", done.row("one")["evidence"]).stdout


def test_it_starts_but_stays_frozen(stage: Stage) -> None:
    stage.start("frozen-busy", "frozen-busy", then="frozen-busy")
    stopped_at_the_first(stage, stage.heal("-e", "vllm_restart_ready_timeout=10"), "does not serve: it is stalled")


def test_its_process_ends_at_once(stage: Stage) -> None:
    stage.start("frozen-busy", "frozen-busy", then="idle", unit="[Service]\nRestart=no\n")
    stage.servers[0].set_options("--fail-start")
    stopped_at_the_first(stage, stage.heal(), "does not serve: it is dead")


def test_its_port_never_opens(stage: Stage) -> None:
    stage.start("frozen-busy", "frozen-busy")
    stage.servers[0].set_options("--state", "idle", "--start-delay", "600")
    stopped_at_the_first(stage, stage.heal("-e", "vllm_restart_ready_timeout=6"), "does not serve: it is starting")


def test_nobody_may_restart_it(stage: Stage) -> None:
    stage.start("frozen-busy", "idle")
    done = stage.heal("-e", "ansible_user=guest", "-e", "vllm_restart_become=false")
    assert done.code != 0
    assert done.actions() == ["not_permitted", "none"]
    done = stage.heal("-e", "ansible_user=guest")
    assert done.code != 0
    assert "sudo" in done.row("one")["action_message"]
    assert stage.starts() == [1, 1]


def test_no_python_of_root_is_found(stage: Stage) -> None:
    stage.start("frozen-busy", "frozen-busy")
    for name, host in stage.hosts.items():
        host.run("sh", "-c", _MAKE_BARE)
        variables = stage.inventory / "host_vars" / f"{name}.yml"
        variables.write_text(variables.read_text().replace("/usr/bin/python3", f"{BARE}/bin/python3"))
    done = stage.heal("-e", "ansible_user=guest")
    assert done.code != 0
    assert done.actions() == ["restart_failed", "restart_failed"], done.output
    assert "sudo" in done.row("one")["action_message"]
    assert stage.starts() == [1, 1]
