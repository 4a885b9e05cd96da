"""What a role documents is what it does: every default stands in both places."""

from pathlib import Path

import pytest
import yaml

ROLES = sorted(path.parent.parent for path in (Path(__file__).resolve().parents[3] / "roles").glob("*/meta/argument_specs.yml"))


def options(role):
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())
    return specs["argument_specs"]["main"]["options"]


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_documented_defaults_are_the_defaults(role):
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text())
    documented = {name: option["default"] for name, option in options(role).items() if "default" in option}
    # What is worked out from other variables is documented in words.
    fixed = {name: value for name, value in defaults.items() if "{{" not in str(value)}
    assert {name: documented.get(name) for name in fixed} == fixed
    assert documented.keys() <= defaults.keys()


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_variable_has_a_type_and_a_description(role):
    assert all(option["type"] and option["description"] for option in options(role).values())
