"""What a page holds, as a parser of HTML sees it."""

from __future__ import annotations

import html.parser

VOID = {"meta", "link"}


class Element:
    """One element: its tag, its attributes, all text inside."""

    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.tag, self.attributes, self.text = tag, attributes, ""

    @property
    def classes(self) -> list[str]:
        """Its classes."""
        return (self.attributes.get("class") or "").split()


class Outline(html.parser.HTMLParser):
    """All elements of a page, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(page)
        self.close()
        assert not self._open, "elements that are not closed"

    def handle_starttag(self, tag, attrs):
        element = Element(tag, dict(attrs))
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop().tag == tag

    def handle_data(self, data):
        for element in self._open:
            element.text += data

    def all(self, tag: str, kind: str = "") -> list[Element]:
        """The elements of a tag, and of a class where one is named."""
        return [element for element in self.elements if element.tag == tag and (not kind or kind in element.classes)]

    def texts(self, tag: str, kind: str = "") -> list[str]:
        """Their texts."""
        return [element.text for element in self.all(tag, kind)]
