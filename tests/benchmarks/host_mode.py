"""What the check of a healthy fleet costs on the machine that Ansible runs on, against a ping and a plain GET /health.

    python tests/benchmarks/host_mode.py [--hosts 50 200] [--forks 50]

All hosts are this machine (connection local), so what is measured is Ansible and Python, not a network.
"""

from __future__ import annotations

import argparse
import pathlib
import tempfile
import typing as t

from common import ANSIBLE, ROOT, Spent, inventory, simulators, spent, spread, table

PLAYS = {
    "ping": "    - ansible.builtin.ping:\n",
    "uri": "    - ansible.builtin.uri:\n        url: \"{{ vllm_servers[0].url }}/health\"\n",
    "least": "    - read_with_requests:\n        url: \"{{ vllm_servers[0].url }}/metrics\"\n",
}

LEAST = """\
import requests
from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule(argument_spec={"url": {"type": "str"}})
module.exit_json(size=len(requests.get(module.params["url"], timeout=10).content))
"""
"""The least that a module can do which reads a page with requests: what a check cannot cost less than."""


def play(folder: pathlib.Path, name: str) -> pathlib.Path:
    """A playbook of one task."""
    path = folder / (name + ".yml")
    path.write_text("- hosts: vllm\n  gather_facts: false\n  tasks:\n" + PLAYS[name])
    return path


def rows(hosts: int, forks: int) -> t.Iterator[t.Sequence[str]]:
    """A row for each way to look at the same hosts."""
    with tempfile.TemporaryDirectory() as name, simulators(state="busy") as running:
        folder = pathlib.Path(name)
        (folder / "library").mkdir()
        (folder / "library" / "read_with_requests.py").write_text(LEAST)
        fleet = inventory(folder / "fleet", spread([simulator.url for simulator in running], hosts))
        ways: t.Dict[str, t.List[t.Any]] = {
            "ansible.builtin.ping": [play(folder, "ping")],
            "ansible.builtin.uri GET /health": [play(folder, "uri")],
            "one GET /metrics by requests": [play(folder, "least")],
            "check.yml": [ROOT / "playbooks" / "check.yml"],
            "check.yml, from the controller": [ROOT / "playbooks" / "check.yml", "-e", "vllm_check_from=controller"],
        }
        ping: t.Optional[Spent] = None
        for way, arguments in ways.items():
            taken = spent([ANSIBLE, "-i", fleet, "--forks", forks, *arguments])
            ping = ping or taken
            yield (
                str(hosts),
                way,
                "%.1f s" % taken.wall,
                "%.2f" % (taken.wall / ping.wall),
                "%.1f s" % taken.cpu,
                "%.2f" % (taken.cpu / ping.cpu),
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--forks", type=int, default=50)
    options = parser.parse_args()
    all_rows = (row for hosts in options.hosts for row in rows(hosts, options.forks))
    table("Healthy servers, host by host", ("hosts", "what", "time", "to ping", "CPU", "to ping"), all_rows)


if __name__ == "__main__":
    main()
