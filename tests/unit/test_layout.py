"""The repository is its own collection: Ansible and pytest find it through the links in playbooks/collections."""

import importlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINKS = ROOT / "playbooks/collections/ansible_collections/fleetcheck/vllm"


def test_the_links_are_relative_and_point_into_the_repository():
    for name in ("plugins", "roles", "meta", "galaxy.yml"):
        link = LINKS / name
        assert link.is_symlink()
        assert not link.readlink().is_absolute()
        assert link.resolve() == ROOT / name


def test_the_plugins_can_be_imported_by_their_full_name():
    package = importlib.import_module("ansible_collections.fleetcheck.vllm.plugins.module_utils")
    assert Path(next(iter(package.__path__))).resolve() == ROOT / "plugins/module_utils"
