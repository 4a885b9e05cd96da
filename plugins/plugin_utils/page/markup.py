# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTML that is safe by construction: whatever is not Markup already is escaped on its way in."""

from __future__ import annotations

import html
import typing as t

from ..plain import plain

_VOID = frozenset({"link", "meta", "rect", "path", "use", "circle"})
# Braces too: the page passes through Ansible, which must find no template in it, whoever wrote the text.
_BRACES = {ord("{"): "&#123;", ord("}"): "&#125;"}
_LONGEST = 2000


class Markup(str):
    """Text that is HTML already."""


def text(value: t.Any, width: int = _LONGEST) -> Markup:
    """C(value) as text of a page: one line without control characters, cut to C(width) columns, escaped."""
    return Markup(html.escape(plain(value, width), quote=True).translate(_BRACES))


def tag(element: str, /, *content: t.Optional[str], **attributes: t.Union[str, float, bool, None]) -> Markup:
    """One element. In the names of attributes C(aria_label) is aria-label and C(class_) is class.

    Content and attributes that are None or False are left out.
    """
    opening = "<%s%s" % (element, "".join(map(_attribute, attributes.items())))
    return Markup(opening + ("/>" if element in _VOID else ">%s</%s>" % (together(*content), element)))


def together(*content: t.Optional[str]) -> Markup:
    """Several pieces one after the other."""
    return Markup("".join(piece if isinstance(piece, Markup) else text(piece) for piece in content if piece is not None))


def name(value: t.Any, width: int = 120, **attributes: t.Union[str, float, bool, None]) -> Markup:
    """A name that somebody else gave: text of right-to-left scripts in it does not rearrange what stands around it."""
    return tag("bdi", text(value, width), **attributes)


def _attribute(item: t.Tuple[str, t.Union[str, float, bool, None]]) -> str:
    key, value = item
    if value is None or value is False:
        return ""
    key = key.rstrip("_").replace("_", "-")
    if value is True:
        return " " + key
    return ' %s="%s"' % (key, value if isinstance(value, Markup) else text(value))
