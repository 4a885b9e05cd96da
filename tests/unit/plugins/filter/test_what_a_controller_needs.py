"""A controller needs Ansible and nothing else: AWX's stock execution environment has no requests."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
FILTERS = sorted(path.stem for path in (ROOT / "plugins" / "filter").glob("*.py"))

PROGRAM = """
import importlib, sys

sys.path.insert(0, "playbooks/collections")
# What is None here cannot be imported.
sys.modules.update({"requests": None, "prometheus_client": None})
for name in sys.argv[1:]:
    module = importlib.import_module("ansible_collections.fleetcheck.vllm.plugins.filter." + name)
    assert name in module.FilterModule().filters(), name
"""


def test_every_filter_works_without_the_packages_of_a_managed_host():
    subprocess.run([sys.executable, "-c", PROGRAM, *FILTERS], cwd=ROOT, check=True)
