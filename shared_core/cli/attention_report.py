"""How a model's attention looks in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.attention.by_slot import AttentionByPosition, DocumentScores
from shared_core.cli.console import empty_table
from shared_core.placement.by_attention import attention_placement
from shared_core.sensitivity.curve import TENTHS, PositionalCurve, parts_of_region

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def parts(found: AttentionByPosition) -> Iterator[RenderableType]:
    """Yield the parts of the report."""
    yield "How much the answer attends to the passage in each position (1 = the mean):"
    yield table(found)
    yield from curve_lines(found)


def figures_of(file: Path) -> tuple[Path, Path]:
    """Return the files of the documents' and the curve's figures, beside that of the curve."""
    return file.with_suffix(".documents.png"), file.with_suffix(".curve.png")


def lines(curve: PositionalCurve, file: Path, *, spec: str) -> Iterator[str]:
    """Yield what can be copied: how to use the curve of the model `spec`, and the files."""
    model = f'"{spec}"' if ":" not in spec or Path(spec).exists() else "model"
    known_by = curve.model if file == PositionalCurve.file_of(curve.model) else file
    documents_figure, curve_figure = figures_of(file)
    yield ""
    yield "To place passages by this curve, without an extra round of the model:"
    yield "    from langchain_posrag import AttentionPlacement"
    yield f'    placement = AttentionPlacement({model}, curve="{known_by}")'
    yield "or llamaindex_posrag.AttentionPlacementPostprocessor, with the same arguments."
    yield ""
    yield f"curve    {file}"
    yield f"figures  {documents_figure}"
    yield f"         {curve_figure}"


def table(found: AttentionByPosition) -> Table:
    """Return the scores of the documents, position by position."""
    built = empty_table(gap=2)
    shuffled = found.documents["unordered", "answer", "all"]
    spans = [f"[{lower:.2f}, {upper:.2f}]" for lower, upper in _relative(shuffled.band, shuffled)]
    columns = {
        "position": [str(position) for position in range(1, len(spans) + 1)],
        "shuffled": _means(shuffled),
        f"{found.curve.confidence:.0%}": spans,
        "best last": _means(found.documents["ordered", "answer", "all"]),
        "lower layers": _means(found.documents["unordered", "answer", "lower"]),
        "upper layers": _means(found.documents["unordered", "answer", "upper"]),
    }
    for name in columns:
        built.add_column(name, justify="right", no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        built.add_row(*row)
    return built


def _means(scores: DocumentScores) -> list[str]:
    return [f"{value:.2f}" for value in _relative(scores.mean, scores)]


def _relative(values: npt.ArrayLike, scores: DocumentScores) -> Scores:
    """Return values in multiples of the mean over the positions."""
    relative: Scores = np.asarray(values) / (np.mean(scores.mean) or 1.0)
    return relative


def curve_lines(found: AttentionByPosition) -> Iterator[str]:
    """Describe the shape of the positional curve, and what it means."""
    curve, ordered = found.curve, found.curves["ordered"]
    tenths = parts_of_region(np.array(curve.scores), TENTHS)
    k = curve.k or TENTHS
    order = attention_placement(range(k), curve.scores_for(k * TENTHS), [TENTHS] * k)
    yield (
        "Attention due to position alone (of the tokens before and at the end of the answer, in "
        "the lower layers), by tenth of the shuffled documents (1 = the mean):"
    )
    yield "  " + " ".join(f"{tenth:.2f}" for tenth in tenths)
    yield (
        f"Edges over middle {_shown(curve, 'edges')}: start {_shown(curve, 'start')}, end "
        f"{_shown(curve, 'end')} ({curve.confidence:.0%} intervals; 1 is flat). Best last: edges "
        f"{ordered.edges:.2f}, start {ordered.start:.2f}, end {ordered.end:.2f}."
    )
    yield meaning(curve)
    yield (
        f"By this curve, {k} passages of equal length, ranked 1 to {k}, are placed in the order "
        f"{' '.join(str(rank + 1) for rank in order)}."
    )
    yield "Looking is not reading: posrag probe measures where the model answers correctly."


def meaning(curve: PositionalCurve) -> str:
    """Say what shape the curve is shown to have."""
    start, end = (_against_middle(curve, which) for which in ("start", "end"))
    if start == end == MORE:
        return "A U: both ends get more attention than the middle."
    if start == end == ALIKE and any(_is_wide(curve, which) for which in ("start", "end")):
        return f"Not known: each end {ALIKE}, but the intervals are wide; ask more questions."
    if start == end == ALIKE:
        return f"Flat, as far as {curve.n} questions show: each end {ALIKE}."
    return f"No U: the start {start}, the end {end}."


MORE = "gets more attention than the middle"
LESS = "gets less attention than the middle"
ALIKE = "is not shown to differ from the middle"
WIDE = 1.5
"""If an interval reaches this ratio of an end to the middle, or its inverse, the curve may be far
from flat, and is not called so."""


def _against_middle(curve: PositionalCurve, which: str) -> str:
    lower, upper = curve.intervals[which]
    return MORE if lower > 1 else LESS if upper < 1 else ALIKE


def _is_wide(curve: PositionalCurve, which: str) -> bool:
    lower, upper = curve.intervals[which]
    return lower < 1 / WIDE or upper > WIDE


def _shown(curve: PositionalCurve, which: str) -> str:
    lower, upper = curve.intervals[which]
    return f"{getattr(curve, which):.2f} [{lower:.2f}, {upper:.2f}]"
