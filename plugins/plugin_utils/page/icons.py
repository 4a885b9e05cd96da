# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A shape for each verdict, so that none is told by its colour alone."""

from __future__ import annotations

from .markup import Markup, tag, together
from .view import rank

# Drawn on 20 by 20. Filled with the colour of the text around; `c` is cut out in the colour behind, `l` a line in it.
_SHAPES = {
    "stuck": '<path d="M6.2 1h7.6L19 6.2v7.6L13.8 19H6.2L1 13.8V6.2z"/><path class="c" d="M4.5 8.5h11v3h-11z"/>',
    "dead": '<circle cx="10" cy="10" r="9"/><path class="c" d="M6.6 4.9 10 8.3l3.4-3.4 1.7 1.7-3.4 3.4 3.4 3.4-1.7 1.7-3.4'
    '-3.4-3.4 3.4-1.7-1.7L8.3 10 4.9 6.6z"/>',
    "unresponsive": '<path d="M2 2h16v12h-7l-5 5v-5H2z"/><path class="c" d="M5 7h2v2H5zM9 7h2v2H9zM13 7h2v2h-2z"/>',
    "stalled": '<path d="M10 1 20 19H0z"/><path class="c" d="M8.8 7h2.4v6H8.8zM8.8 14.4h2.4v2.2H8.8z"/>',
    "unknown": '<path d="M10 0l10 10-10 10L0 10z"/><path class="l" d="M7.2 8A2.8 2.8 0 1 1 10 10.6v1.6"/>'
    '<path class="c" d="M8.9 13.6h2.2v2.2H8.9z"/>',
    "starting": '<circle cx="10" cy="10" r="9"/><path class="c" d="M10 4l5 6h-3.4v5.5H8.4V10H5z"/>',
    "paused": '<circle cx="10" cy="10" r="9"/><path class="c" d="M6 5.5h3v9H6zM11 5.5h3v9h-3z"/>',
    "sleeping": '<path d="M8 1a9 9 0 1 0 11 11A8 8 0 0 1 8 1z"/>',
    "busy": '<circle cx="10" cy="10" r="9"/><path class="c" d="M7.3 5.2 15 10l-7.7 4.8z"/>',
    "idle": '<circle cx="10" cy="10" r="9"/><path class="c" d="M8.6 14.6 4.4 10.4l1.7-1.7 2.5 2.5 5.3-5.3 1.7 1.7z"/>',
    "serving": '<path d="M1 5h12V1l6 6-6 6V9H1zM1 14h12v4H1z"/>',
}
_LINE = 'fill="none" stroke="#fff" stroke-width="1.9"'
_ORDER = tuple(_SHAPES)


def definitions() -> Markup:
    """All shapes, once, for use() to refer to."""
    symbols = (tag("symbol", Markup(shape), id="i-%s" % verdict, viewBox="0 0 20 20") for verdict, shape in _SHAPES.items())
    return tag("svg", together(*symbols), class_="defs", aria_hidden="true", width=0, height=0)


def use(verdict: str) -> Markup:
    """The shape of a verdict. The word must stand beside it: readers of the screen do not hear the shape."""
    return tag("svg", tag("use", href="#i-%s" % _ORDER[rank(verdict)]), class_="icon", aria_hidden="true")


def favicon(verdict: str, colour: str) -> Markup:
    """The shape as the icon of the browser's tab."""
    shape = _SHAPES[_ORDER[rank(verdict)]].replace('class="c"', 'fill="#fff"').replace('class="l"', _LINE)
    picture = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20" fill="%s">%s</svg>' % (colour, shape)
    escapes = {"<": "%3C", ">": "%3E", "#": "%23", '"': "'"}
    return Markup("data:image/svg+xml," + "".join(escapes.get(character, character) for character in picture))
