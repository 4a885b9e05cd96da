"""A unit of a user's own service manager is judged and restarted as that user."""

import pytest

from tests.fleet.simulator import SIMULATOR
from tests.integration.restart.stage import Stage

pytestmark = pytest.mark.systemd

HOME_STATE = "/home/guest/.local/state/fleetcheck-vllm"
UNIT = """[Service]
ExecStart=/usr/bin/python3 /opt/vllm-simulator/vllm_simulator.py --port 8000 --state frozen-busy
"""


def test_a_unit_of_a_user_is_restarted_without_root(stage: Stage) -> None:
    host = stage.host
    host.run("usermod", "--append", "--groups", "systemd-journal", "guest")
    host.keep_user_units("guest")
    host.copy_folder(SIMULATOR, "/opt/vllm-simulator")
    host.write(f"/home/guest/.config/systemd/user/{stage.unit}", UNIT)
    host.run_as("guest", "systemctl", "--user", "daemon-reload")
    host.run_as("guest", "systemctl", "--user", "start", stage.unit)
    own = {"scope": "user"}
    judged = stage.judge(server=own, as_user="guest")
    done = stage.restart(judged, server=own, as_user="guest")
    assert done["changed"], done["message"]
    assert done["evidence"].startswith(HOME_STATE)
    shown = host.run_as("guest", "systemctl", "--user", "show", "--property=InvocationID", "--value", stage.unit)
    assert shown.stdout.strip() == done["invocation_id"] != judged["systemd"]["invocation_id"]
    again = stage.restart(judged, server=own, as_user="guest")
    assert again["skipped_because"] == "restarted_already"
