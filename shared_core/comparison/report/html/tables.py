"""Tables that a click on a head sorts: by figures where there are any, else by text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from shared_core.comparison.report.html.elements import NONE, Attributes, element


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes
    ----------
    text
        What is shown.
    value
        What it is sorted by; None if it is not a figure.
    kind
        Class of the cell, if any.
    """

    text: str
    value: float | None = None
    kind: str = ""


EMPTY = Cell("")


@dataclass(frozen=True)
class Column:
    """Head of a column.

    Attributes
    ----------
    head
        Its text.
    is_figure
        Whether its cells are sorted by their values.
    group
        Head above it and its neighbours of the same group.
    """

    head: str
    is_figure: bool = True
    group: str = ""


def table(label: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> Element:
    """Return a table that scrolls within itself; the first cell of a row is its head."""
    heads = [element("tr", NONE, *map(_head, columns))]
    if any(column.group for column in columns):
        heads.insert(0, element("tr", {"class": "groups"}, *_groups(columns)))
    made = element(
        "table",
        NONE,
        element("thead", NONE, *heads),
        element("tbody", NONE, *(_row(columns, row) for row in rows)),
    )
    # In the tab order, so that the keyboard can scroll it.
    box: Attributes = {"class": "scroll", "role": "region", "aria-label": label, "tabindex": 0}
    return element("div", box, made)


def _head(column: Column) -> Element:
    attributes = {"scope": "col", **({"class": "figure"} if column.is_figure else {})}
    return element("th", attributes, column.head)


def _groups(columns: Sequence[Column]) -> Iterable[Element]:
    at = 0
    while at < len(columns):
        group = columns[at].group
        span = 1
        while group and at + span < len(columns) and columns[at + span].group == group:
            span += 1
        yield (
            element("th", {"colspan": span, "scope": "colgroup"}, group) if group else element("td")
        )
        at += span


def _row(columns: Sequence[Column], cells: Sequence[Cell]) -> Element:
    made = element("tr")
    for number, (column, cell) in enumerate(zip(columns, cells, strict=True)):
        kinds = " ".join(filter(None, ["figure" if column.is_figure else "", cell.kind]))
        attributes = {"class": kinds} if kinds else {}
        if cell.value is not None:
            attributes["data-value"] = f"{cell.value:.10g}"
        if number == 0:
            attributes["scope"] = "row"
        made.append(element("td" if number else "th", attributes, cell.text))
    return made
