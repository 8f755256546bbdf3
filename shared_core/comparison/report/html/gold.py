"""Plots of where the gold passages are: by rank, and by slot under each strategy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element

from shared_core.comparison.records import SettingResult, StrategyResult
from shared_core.comparison.report.html.elements import Attributes, element
from shared_core.comparison.report.html.intervals import AXIS, BASE, drawing, text_at

BAR, STRIP, CELL = 112, 44, 20
"""Heights of the tallest bar, of a strategy's row, and of the cells in it; in pixels."""

MOST_FIGURES = 12
"""With more slots there is no room for figures."""

DEEPEST = 0.5
"""Opacity of the fullest cell: figures on it stay readable on a light and a dark page."""


def rank_plot(setting: SettingResult, known: int, *, name: str) -> Element:
    """Return how many questions have their best gold passage at each rank.

    Parameters
    ----------
    setting
        What was retrieved.
    known
        Number of its questions whose gold passages are known.
    name
        Id of the drawing in the page.
    """
    found = [rank for rank in setting.gold_ranks if rank is not None]
    counts = [found.count(rank) for rank in range(setting.k)] + [known - len(found)]
    labels = [*_slots(setting.k), "none"]
    width, most = 100 / len(counts), max(1, *counts)
    parts = []
    for number, (label, count) in enumerate(zip(labels, counts, strict=True)):
        height = round(BAR * count / most)
        middle = f"{width * (number + 0.5):.2f}%"
        box = {"x": f"{width * (number + 0.1):.2f}%", "width": f"{width * 0.8:.2f}%"}
        kind = "bar missing" if label == "none" else "bar"
        parts.append(
            element("rect", {**box, "y": 18 + BAR - height, "height": height, "class": kind})
        )
        if len(counts) <= MOST_FIGURES and count:
            parts.append(text_at(middle, 18 + BAR - height - 4, "tick", str(count)))
        parts.append(text_at(middle, 18 + BAR + BASE, "tick", label))
    ranks = "; ".join(f"rank {rank + 1}: {count}" for rank, count in enumerate(counts[:-1]))
    return drawing(
        18 + BAR + AXIS,
        *parts,
        name=name,
        title=f"Rank of the best gold passage: {setting.name}",
        description=f"{ranks}; not among them: {counts[-1]}",
    )


def slot_plot(setting: SettingResult, *, name: str) -> Element:
    """Return how often each strategy puts the best gold passage into each slot."""
    shares = [_shares(setting, strategy) for strategy in setting.strategies]
    most = max(max(each) for each in shares) or 1.0
    parts: list[Element] = []
    for number, (strategy, each) in enumerate(zip(setting.strategies, shares, strict=True)):
        parts.append(text_at("0", number * STRIP + BASE, "label", strategy.name))
        parts += _strip(each, most, number * STRIP + BASE + 6)
    bottom = len(shares) * STRIP
    width = 100 / setting.k
    for slot, label in enumerate(_slots(setting.k)):
        parts.append(text_at(f"{width * (slot + 0.5):.2f}%", bottom + BASE, "tick", label))
    return drawing(
        bottom + AXIS,
        *parts,
        name=name,
        title=f"Slot of the best gold passage by strategy: {setting.name}",
        description="; ".join(
            f"{strategy.name}: " + " ".join(f"{share:.0%}" for share in each)
            for strategy, each in zip(setting.strategies, shares, strict=True)
        ),
    )


def _shares(setting: SettingResult, strategy: StrategyResult) -> list[float]:
    """Return the share of the found gold passages in each slot; one left out is in none."""
    counts = [0.0] * setting.k
    found = 0
    for rank, orders in zip(setting.gold_ranks, strategy.orders, strict=True):
        if rank is None:
            continue
        found += 1
        for order in orders:
            if rank in order:
                counts[order.index(rank)] += 1 / len(orders)
    return [count / max(1, found) for count in counts]


def _strip(shares: Sequence[float], most: float, top: int) -> Iterable[Element]:
    width = 100 / len(shares)
    for slot, share in enumerate(shares):
        box: Attributes = {
            "x": f"{width * slot:.2f}%",
            "width": f"{width:.2f}%",
            "y": top,
            "height": CELL,
        }
        opacity = f"{DEEPEST * share / most:.3f}"
        yield element("rect", {**box, "class": "cell", "fill-opacity": opacity})
        if len(shares) <= MOST_FIGURES and share >= 0.005:
            figure = f"{100 * share:.0f}"
            yield text_at(f"{width * (slot + 0.5):.2f}%", top + 14, "tick share", figure)


def _slots(k: int) -> list[str]:
    """Return labels of slots from 1; only every fifth where there is no room for all."""
    return [
        str(slot) if k <= MOST_FIGURES or slot == 1 or slot % 5 == 0 else ""
        for slot in range(1, k + 1)
    ]
