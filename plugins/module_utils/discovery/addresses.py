# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses: how a server that listens on one is reached from its own host."""

from __future__ import annotations

import ipaddress
import re
import typing as t


def reachable(address: t.Optional[str]) -> str:
    """The address to connect to: a socket bound to every address is reached on the loopback."""
    if not address or address == "0.0.0.0":
        return "127.0.0.1"
    if address == "::":
        return "::1"
    return address


def bracketed(address: str) -> str:
    """As it is written in a URL."""
    return f"[{address}]" if ":" in address else address


def is_name(host: str) -> bool:
    """Whether this is a well-formed host name rather than an address."""
    if _parsed(host) is not None:
        return False
    return bool(re.fullmatch(r"(?=.{1,253}\Z)[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?", host))


def is_loopback(address: str) -> bool:
    """Whether only this host can connect."""
    parsed = _parsed(address)
    return parsed is not None and parsed.is_loopback


def preference(address: str) -> t.Tuple[bool, bool, str]:
    """A key that sorts the nearest address first: the loopback before others, IPv4 before IPv6."""
    return not is_loopback(reachable(address)), ":" in address, address


def _parsed(text: str) -> t.Union[ipaddress.IPv4Address, ipaddress.IPv6Address, None]:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
