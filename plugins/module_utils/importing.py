# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One module of a package without all the others that the package imports when it starts.

A check runs in a new process on each host every few minutes; what it imports is most of what it costs there.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import types
import typing as t


def alone(package: str, module: str) -> types.ModuleType:
    """Import package.module and only what that imports itself; whoever imports the package later gets all of it.

    A package that cannot be taken apart is imported as usual. Raises ImportError where there is none.
    """
    if package not in sys.modules:
        with contextlib.suppress(Exception), _unstarted(package):
            return importlib.import_module(package + "." + module)
    return importlib.import_module(package + "." + module)


@contextlib.contextmanager
def _unstarted(package: str) -> t.Iterator[None]:
    """Have the package in place of itself, without what its own start would do; no trace is left."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError(package)
    stand_in = types.ModuleType(package)
    stand_in.__path__ = list(spec.submodule_search_locations)
    sys.modules[package] = stand_in
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name == package or name.startswith(package + ".")]:
            del sys.modules[name]
