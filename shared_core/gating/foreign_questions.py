"""The foreign questions of a fit, one of which identifies the embedding model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Embed, Vectors
from shared_core.errors import EmbeddingMismatchError
from shared_core.gating.background import Background
from shared_core.gating.everyday import EVERYDAY_QUESTIONS
from shared_core.vectors import model_mismatch, unit_rows

LEAST_NEGATIVES = 10
"""Fewest foreign questions for a meaningful median."""


@dataclass(frozen=True)
class KnownText:
    """A text and its vector, shape (dim,), not zero."""

    text: str
    vector: Vectors

    def check(self, embed: Embed) -> None:
        """Raise EmbeddingMismatchError if the model gives the text another vector."""
        found = model_mismatch(self.vector, np.asarray(embed([self.text])).reshape(-1))
        if found is not None:
            raise EmbeddingMismatchError(
                "the embedding model is not the one the gate was fitted with: a known question "
                f"{found}; fit the gate again"
            )


def foreign_questions(
    embed: Embed | None, negatives: npt.ArrayLike | None
) -> tuple[Background | None, KnownText | None]:
    """Embed questions that the corpus does not answer.

    Returns their background for an empty corpus, and one text with its vector, by which the model
    can be recognised later.

    Parameters
    ----------
    embed, negatives
        As in `VectorCandidates`. Without both there is no background; with vectors alone there is
        no text.

    Raises
    ------
    ValueError
        If there are too few questions, they are vectors with `embed` or texts without, or their
        vectors are invalid.
    """
    if negatives is None:
        if embed is None:
            return None, None
        negatives = EVERYDAY_QUESTIONS
    rows = [*np.atleast_1d(np.asarray(negatives))]
    if len(rows) < LEAST_NEGATIVES:
        raise ValueError(
            f"a background needs at least {LEAST_NEGATIVES} questions, got {len(rows)}"
        )
    if all(isinstance(row, str) for row in rows) is (embed is None):
        raise ValueError("negatives must be texts where embed= is given, else their vectors")
    texts = [] if embed is None else [str(row) for row in rows]
    vectors = negatives if embed is None else embed(texts)
    questions = unit_rows(vectors, len(rows), "background questions")
    # A zero vector has no direction; without `embed` there are no texts.
    known = (KnownText(*each) for each in zip(texts, questions, strict=False) if each[1].any())
    return Background.of(questions), next(known, None)
