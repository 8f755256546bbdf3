"""How relevant a model finds each document: the estimators of GoodPositions and its baselines.

An estimator of `ESTIMATORS` turns token scores (eq. 1) of a prompt into document scores, and states
over which rows and layers they must have been averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.attention.scores import LayerSet, RowSet, TokenSpan, document_scores, parts_of
from shared_core.sensitivity.region import finite_scores

CONTENT_FREE = "N/A"
"""The content-free question (Chen et al. 2024), which shows attention by position alone."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The attention to the same documents without a question.

    Attributes
    ----------
    token_scores
        Scores of the tokens of the prompt whose question is `CONTENT_FREE`, shape (n,).
    spans
        Content span of each document in that prompt, in the same order.
    """

    token_scores: npt.ArrayLike
    spans: Sequence[TokenSpan]


class Estimator:
    """A rule that turns token scores into document scores; higher is more relevant.

    Subclasses set `rows` and `layers`, over which the token scores must have been averaged, and
    `calibrated` if they need a `Calibration`. This base class averages over a document's tokens.
    """

    rows: ClassVar[RowSet]
    layers: ClassVar[LayerSet]
    calibrated: ClassVar[bool] = False

    def __call__(
        self,
        token_scores: npt.ArrayLike,
        spans: Sequence[TokenSpan],
        calibration: Calibration | None = None,
    ) -> Scores:
        """Return one score per document, in the order of the spans (eq. 2).

        Parameters
        ----------
        token_scores
            Scores of the prompt's tokens over this estimator's rows and layers, shape (n,).
        spans
            Content span of each document in the prompt, [start, end) in tokens, not empty.
        calibration
            For an estimator that is `calibrated`, and only for those.

        Raises
        ------
        ValueError
            If a span is empty or leaves the prompt, a score is not finite, or the calibration is
            missing, not needed or of other documents.
        """
        if calibration is not None:
            raise ValueError(f"{type(self).__name__} is not calibrated: leave calibration out")
        return document_scores(token_scores, spans)


@dataclass(frozen=True)
class AnswerTokens(Estimator):
    """Mean attention of all answer tokens in the upper layers (GoodPositions, S_{y, L_h})."""

    rows = "answer"
    layers = "upper"


@dataclass(frozen=True)
class ProducerTokens(Estimator):
    """Mean attention of the tokens that produced the answer's, in the upper layers.

    Each answer token is read at the token before it, where it was chosen. A variant of
    `AnswerTokens`, which reads at the token itself, after it was chosen.
    """

    rows = "producer"
    layers = "upper"


@dataclass(frozen=True)
class FirstToken(Estimator):
    """Attention Sorting: mean attention of the first generated token in all layers.

    Peysakhovich & Lerer 2023, one pass of it, as GoodPositions compares (section 5.1).
    """

    rows = "first"
    layers = "all"


@dataclass(frozen=True)
class CalibratedQuery(Estimator):
    """ICR: attention of the question's tokens in all layers, less that of an empty question.

    In-context re-ranking, Chen et al. 2024. From each token's score its score under a content-free
    question is subtracted; within each document, tokens whose difference is more than two standard
    deviations (of the population) below the mean are dropped; the others are summed, so a long
    document can gain more. Scores are means over heads and layers where the paper sums, which
    scales all of them equally.
    """

    rows = "query"
    layers = "all"
    calibrated = True

    def __call__(
        self,
        token_scores: npt.ArrayLike,
        spans: Sequence[TokenSpan],
        calibration: Calibration | None = None,
    ) -> Scores:
        """Return the sum of each document's calibrated token scores without the outliers."""
        if calibration is None:
            raise ValueError(
                "CalibratedQuery subtracts the attention of a content-free question: give as "
                f"calibration the scores of the prompt that asks {CONTENT_FREE!r}"
            )
        asked = parts_of(token_scores, spans)
        unasked = parts_of(calibration.token_scores, calibration.spans)
        lengths, others = ([len(part) for part in parts] for parts in (asked, unasked))
        if lengths != others:
            raise ValueError(
                f"the calibration is of documents of {others} tokens, these have {lengths}; "
                "render the same documents in the same order"
            )
        differences = (one - other for one, other in zip(asked, unasked, strict=True))
        return np.array([_sum_without_outliers(each) for each in differences], np.float64)


ESTIMATORS: dict[str, type[Estimator]] = {
    "answer": AnswerTokens,
    "producer": ProducerTokens,
    "attention_sorting": FirstToken,
    "icr": CalibratedQuery,
}


def _sum_without_outliers(scores: Scores) -> float:
    # >= rather than >: with equal scores the deviation is 0, and all of them count
    return float(scores[scores >= scores.mean() - 2 * scores.std()].sum())


def ranking_of(scores: npt.ArrayLike) -> tuple[int, ...]:
    """Return documents by decreasing score; equal ones stay in order.

    Raises
    ------
    ValueError
        If a score is not finite.
    """
    return tuple(np.argsort(-finite_scores(scores), kind="stable").tolist())
