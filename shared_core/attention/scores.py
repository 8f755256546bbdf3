"""From attention rows to scores of tokens and documents (GoodPositions, eqs. 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.checking import check_count
from shared_core.sensitivity.region import finite_scores

LayerSet: TypeAlias = Literal["all", "lower", "upper"]
"""The sets of layers that the methods read."""

RowSet: TypeAlias = Literal["answer", "producer", "edges", "first", "query"]
"""Whose attention is read: all answer tokens, the tokens before each, which produced them, the
tokens t_b and t_e that begin and end the answer, the first generated token, or the question's."""

TokenSpan: TypeAlias = tuple[int, int]
"""Half-open interval [start, end) of tokens of a prompt."""


def layer_halves(layers: int) -> tuple[range, range]:
    """Return the lower and the upper half of a model's layers (L_l and L_h of Algorithm 2).

    With an odd number of layers the middle one is in neither, so that the halves weigh the same.

    Parameters
    ----------
    layers
        Number of layers, >= 1.

    Returns
    -------
    lower, upper
        Layers 0 to ``layers // 2``, and from ``ceil(layers / 2)`` on; both empty for one layer.

    Raises
    ------
    ValueError
        If `layers` is below 1.
    """
    check_count(layers, "layers")
    return range(layers // 2), range((layers + 1) // 2, layers)


def token_scores(rows: npt.ArrayLike, *, layers: LayerSet | Sequence[int] = "all") -> Scores:
    """Average attention rows to one score a context token (eq. 1); higher is more attended.

    The mean over layers, heads and rows, of the weights as they are: what a row gives to tokens
    outside the documents is not redistributed.

    Parameters
    ----------
    rows
        Attention weights, shape (layers, heads, m, n): m query rows over n key positions.
    layers
        ``"all"``, ``"lower"`` or ``"upper"`` half, or indices of layers.

    Returns
    -------
    Scores
        Shape (n,).

    Raises
    ------
    ValueError
        If `rows` has another number of dimensions, an empty dimension, or a weight that is not
        finite, or if `layers` is empty, repeats a layer or names one that does not exist.
    """
    weights = np.asarray(rows)
    if weights.ndim != 4 or 0 in weights.shape[:3]:
        raise ValueError(
            "rows must have shape (layers, heads, m, n) with at least one layer, head and row, "
            f"got {weights.shape}"
        )
    chosen = weights[_indices(layers, len(weights))]
    return finite_scores(chosen.mean(axis=(0, 1, 2), dtype=np.float64))


def document_scores(token_scores: npt.ArrayLike, spans: Sequence[TokenSpan]) -> Scores:
    """Average token scores by document (eq. 2); higher is more attended.

    The mean removes the influence of the document's length, as the equation does.

    Parameters
    ----------
    token_scores
        Scores of a prompt's tokens, shape (n,).
    spans
        Content span of each document in the prompt, [start, end) in tokens, not empty.

    Returns
    -------
    Scores
        One score per span, in the order given.

    Raises
    ------
    ValueError
        If a span is empty or leaves the prompt, or a score is not finite.
    """
    return np.array([part.mean() for part in parts_of(token_scores, spans)], np.float64)


def parts_of(token_scores: npt.ArrayLike, spans: Sequence[TokenSpan]) -> list[Scores]:
    """Return the token scores of each span; raise as `document_scores` does."""
    scores = finite_scores(token_scores)
    for number, (start, end) in enumerate(spans):
        if not 0 <= start < end <= len(scores):
            raise ValueError(
                f"span {number} is [{start}, {end}), which is empty or not within the "
                f"{len(scores)} tokens that have scores"
            )
    return [scores[start:end] for start, end in spans]


def _indices(layers: LayerSet | Sequence[int], total: int) -> list[int]:
    if isinstance(layers, str):
        lower, upper = layer_halves(total)
        named = {"all": range(total), "lower": lower, "upper": upper}
        if layers not in named:
            raise ValueError(
                f"layers must be 'all', 'lower', 'upper' or indices of layers, got {layers!r}"
            )
        chosen = list(named[layers])
    else:
        chosen = list(layers)
    if not chosen:
        raise ValueError(f"no layers: {layers!r} of {total} layers is empty")
    if len({*chosen}) < len(chosen) or not 0 <= min(chosen) <= max(chosen) < total:
        raise ValueError(f"layers must differ and be within 0..{total - 1}, got {chosen}")
    return chosen
