"""Where a model looks, drawn: figures 2 and 3 of GoodPositions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared_core._extras import require
from shared_core.attention.by_slot import AttentionByPosition, DocumentScores, Order
from shared_core.sensitivity.curve import middles
from shared_core.sensitivity.figure import finish_axes, thinned, write_figure
from shared_core.sensitivity.records import Interval

LABELS: dict[Order, str] = {
    "unordered": "unordered (shuffled)",
    "ordered": "ordered (most relevant last)",
}


def draw_document_scores(found: AttentionByPosition, path: str | Path) -> Path:
    """Draw the attention of the answer by position (figure 2), and return the file.

    On the left all layers, unordered and ordered; on the right the lower and the upper half of
    the layers, unordered. Bands are separate intervals for each position.

    Parameters
    ----------
    found
        What to draw.
    path
        File to write; its suffix sets the format (``.png``, ``.svg``, ``.pdf``).

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ValueError
        If the suffix is not a known format.
    """
    figure, left, right = _two_axes(found)
    orders = {LABELS[order]: found.documents[order, "answer", "all"] for order in LABELS}
    _draw_documents(left, orders)
    left.set(title="all layers", ylabel="document score (rows of the answer)")
    halves = {
        "lower half": found.documents["unordered", "answer", "lower"],
        "upper half": found.documents["unordered", "answer", "upper"],
    }
    _draw_documents(right, halves)
    right.set(title="halves of the layers, unordered")
    return _save(figure, path)


def draw_positional_curve(found: AttentionByPosition, path: str | Path) -> Path:
    """Draw the attention that is due to position (figure 3), and return the file.

    On the left by passage, as in the paper; on the right the curves, token by token. Both in the
    lower layers, unordered and ordered. Bands are separate intervals for each point.

    Parameters
    ----------
    found
        What to draw.
    path
        File to write, as in `draw_document_scores`.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ValueError
        If the suffix is not a known format.
    """
    figure, left, right = _two_axes(found)
    orders = {LABELS[order]: found.documents[order, "edges", "lower"] for order in LABELS}
    _draw_documents(left, orders)
    left.set(title="by passage", ylabel="positional score (rows t_b and t_e, lower layers)")
    for order, curve in found.curves.items():
        at = middles(len(curve.scores))
        _draw(right, at, curve.scores, curve.band, label=LABELS[order])
    right.axhline(1.0, color="grey", linewidth=0.8, linestyle=":")
    right.set(
        title="positional curve",
        xlabel="relative position in the documents",
        ylabel="multiples of the mean",
        xlim=(0, 1),
    )
    _finish(right)
    return _save(figure, path)


def _two_axes(found: AttentionByPosition) -> tuple[Any, Any, Any]:
    figure: Any = require("matplotlib.figure", extra="eval").Figure(figsize=(9, 3.6), dpi=130)
    curve = found.curve
    model = curve.model.replace("$", r"\$")
    figure.suptitle(f"{model}, n = {curve.n}, {curve.confidence:.0%} bands")
    left, right = figure.subplots(1, 2)
    return figure, left, right


def _draw_documents(axes: Any, named: Mapping[str, DocumentScores]) -> None:
    k = max(len(scores.mean) for scores in named.values())
    positions = range(1, k + 1)
    for label, scores in named.items():
        _draw(axes, positions, scores.mean, scores.band, label=label, marker="o")
    axes.set(xlabel=f"position of the passage, of {k}")
    axes.set_xticks(thinned(positions))
    _finish(axes)


def _draw(
    axes: Any,
    at: Any,
    values: Sequence[float],
    band: Sequence[Interval] | None,
    *,
    label: str,
    marker: str = "",
) -> None:
    [line] = axes.plot(at, values, marker=marker, label=label)
    if band is not None:
        lower, upper = zip(*band, strict=True)
        axes.fill_between(at, lower, upper, color=line.get_color(), alpha=0.2, linewidth=0)


def _finish(axes: Any) -> None:
    axes.set_ylim(bottom=0)
    finish_axes(axes)


def _save(figure: Any, path: str | Path) -> Path:
    figure.tight_layout()
    return write_figure(figure, path)
