"""How relevant a model finds each document: the rows and layers that say so, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.errors import GenerationError
from shared_core.sensitivity.curve import finite_scores

LayerSet: TypeAlias = Literal["all", "lower", "upper"]
"""The sets of layers that the methods read."""

RowSet: TypeAlias = Literal["answer", "producer", "edges", "first", "query"]
"""Whose attention is read: all answer tokens, the tokens before each, which produced them, the
tokens t_b and t_e that begin and end the answer, the first generated token, or the question's."""

Recorded: TypeAlias = tuple[RowSet, LayerSet]

TokenSpan: TypeAlias = tuple[int, int]
"""Half-open interval [start, end) of tokens of a prompt."""

CONTENT_FREE = "N/A"
"""The content-free question (Chen et al. 2024), which shows attention by position alone."""


@dataclass(frozen=True)
class Estimator:
    """Over which rows and layers a document's attention is averaged.

    Attributes
    ----------
    rows, layers
        As in `AnswerAttention.scores`.
    calibrated
        Whether what a content-free question attends to is subtracted; see `calibrated_scores`.
    """

    rows: RowSet
    layers: LayerSet
    calibrated: bool = False


ESTIMATORS: dict[str, Estimator] = {
    "answer": Estimator("answer", "upper"),
    "producer": Estimator("producer", "upper"),
    "attention_sorting": Estimator("first", "all"),
    "icr": Estimator("query", "all", calibrated=True),
}
"""By name: S_{y, L_h} of GoodPositions; the same one token earlier, where each answer token was
chosen; Attention Sorting (Peysakhovich & Lerer 2023), one pass of it, as GoodPositions compares
(section 5.1); in-context re-ranking (Chen et al. 2024)."""


def layer_sets(config: Any) -> dict[LayerSet, dict[int, float]]:
    """Return the layers of each set, each with the number of tokens that it sees.

    That is infinite for a layer without a window. The lower and the upper half are L_l and L_h of
    Algorithm 2: 0 to ``L // 2``, and from ``ceil(L / 2)`` on. Of an odd number of layers the middle
    one is in neither, so that the halves weigh the same; a single layer is both.

    Parameters
    ----------
    config
        Configuration of the model, a ``PretrainedConfig``.

    Raises
    ------
    GenerationError
        If its layers attend to anything but tokens.
    """
    text = config.get_text_config()
    number = text.num_hidden_layers
    # if the layers are not described, all have the window
    kinds = getattr(text, "layer_types", None) or ["sliding_attention"] * number
    if compressed := sorted({kind for kind in kinds if "compressed" in kind}):
        raise GenerationError(
            f"{text.model_type} has layers of {', '.join(compressed)}, whose rows are not read: "
            "their keys stand for several tokens each; use another model"
        )
    size = getattr(text, "sliding_window", None) or getattr(text, "attention_chunk_size", None)
    windows = [
        float(size) if size and ("sliding" in kind or "chunked" in kind) else inf for kind in kinds
    ]
    half = max(1, number // 2)
    sets: dict[LayerSet, range] = {
        "all": range(number),
        "lower": range(half),
        "upper": range(number - half, number),
    }
    return {name: {layer: windows[layer] for layer in layers} for name, layers in sets.items()}


def document_scores(token_scores: npt.ArrayLike, spans: Sequence[TokenSpan]) -> Scores:
    """Average token scores by document (eq. 2); higher is more attended.

    The mean removes the influence of the document's length, as the equation does.

    Parameters
    ----------
    token_scores
        Scores of a prompt's tokens (eq. 1), shape (n,).
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
    return np.array([part.mean() for part in _parts(token_scores, spans)], np.float64)


def calibrated_scores(
    token_scores: npt.ArrayLike,
    spans: Sequence[TokenSpan],
    content_free: npt.ArrayLike,
    content_free_spans: Sequence[TokenSpan],
) -> Scores:
    """Sum token scores by document, less those of a content-free question (ICR).

    From each token's score its score under the question `CONTENT_FREE` is subtracted; within each
    document, tokens whose difference is more than two standard deviations (of the population) below
    the mean are dropped; the others are summed, so a long document can gain more. Scores are means
    over heads and layers where the paper sums, which scales all of them equally.

    Parameters
    ----------
    token_scores, spans
        As in `document_scores`.
    content_free, content_free_spans
        The same of the prompt with the same documents and the content-free question.

    Raises
    ------
    ValueError
        As `document_scores`.
    """
    asked, unasked = _parts(token_scores, spans), _parts(content_free, content_free_spans)
    gains = [one - other for one, other in zip(asked, unasked, strict=True)]
    # >= rather than >: with equal scores the deviation is 0, and all of them count
    kept = [gain[gain >= gain.mean() - 2 * gain.std()] for gain in gains]
    return np.array([gain.sum() for gain in kept], np.float64)


def ranking_of(scores: npt.ArrayLike) -> tuple[int, ...]:
    """Return documents by decreasing score; equal ones stay in order.

    Raises
    ------
    ValueError
        If a score is not finite.
    """
    return tuple(np.argsort(-finite_scores(scores), kind="stable").tolist())


def _parts(token_scores: npt.ArrayLike, spans: Sequence[TokenSpan]) -> list[Scores]:
    """Return the token scores of each span."""
    scores = finite_scores(token_scores)
    for number, (start, end) in enumerate(spans):
        if not 0 <= start < end <= len(scores):
            raise ValueError(
                f"span {number} is [{start}, {end}), which is empty or not within the "
                f"{len(scores)} tokens that have scores"
            )
    return [scores[start:end] for start, end in spans]
