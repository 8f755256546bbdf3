"""HTML elements, made with the standard library's: text stays text, whatever it contains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias
from xml.etree.ElementTree import Element, tostring

Child: TypeAlias = Element | str
Attributes: TypeAlias = Mapping[str, str | int]

NONE: Attributes = {}


def element(tag: str, attributes: Attributes = NONE, *children: Child) -> Element:
    """Return an element with its attributes, and text and elements as its content."""
    made = Element(tag, {name: str(value) for name, value in attributes.items()})
    for child in children:
        if isinstance(child, Element):
            made.append(child)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + child
        else:
            made.text = (made.text or "") + child
    return made


def document(root: Element) -> str:
    """Return a whole page; what cannot be encoded, such as half a surrogate pair, is "?"."""
    text = tostring(root, encoding="unicode", method="html")
    return f"<!DOCTYPE html>\n{text}\n".encode("utf-8", "replace").decode()


def paragraph(text: str, kind: str = "") -> Element:
    """Return a paragraph, with a class if `kind` is given."""
    return element("p", {"class": kind} if kind else NONE, text)


def folded(summary: str, *children: Element) -> Element:
    """Return elements that are shown at a click on their summary."""
    return element("details", NONE, element("summary", NONE, summary), *children)


def definitions(pairs: Iterable[tuple[str, str]]) -> Element:
    """Return a list of terms with their meanings."""
    rows = (
        element("div", NONE, element("dt", NONE, term), element("dd", NONE, meaning))
        for term, meaning in pairs
    )
    return element("dl", NONE, *rows)
