"""Argument specs in one form, so that what the documentation says can be held against what the module takes."""


def documented(described):
    """An argument spec as the documentation has it."""
    return {
        name: {
            key: documented(value) if key == "suboptions" else value
            for key, value in option.items()
            if key in ("type", "elements", "default", "choices", "required", "suboptions")
        }
        for name, option in described.items()
    }


def specified(spec):
    """The same as the module has it."""
    return {
        name: {
            ("suboptions" if key == "options" else key): specified(value) if key == "options" else value
            for key, value in option.items()
            if key != "no_log"
        }
        for name, option in spec.items()
    }
