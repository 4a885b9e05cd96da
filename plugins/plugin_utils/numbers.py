# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers as operators give them: YAML numbers, or text from a command line or a survey."""

from __future__ import annotations

import math
import typing as t


def seconds(value: t.Any) -> t.Optional[float]:
    """C(value) as a finite number, or None where it is none."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
