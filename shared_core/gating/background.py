"""How similar questions that have nothing to do with the corpus are to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shared_core.arrays import Bools, Rows, Scores, Vectors

KEPT = 64
"""Nearest contexts kept per question: as many can be deleted before its maximum is unknown."""

SPARE = 1e-5
"""Bound on the rounding error of a matrix product of unit vectors."""


@dataclass(frozen=True, slots=True)
class Background:
    """The highest similarity of each of some questions to a changing corpus.

    Each question keeps its nearest contexts, so that its highest similarity stays exact when
    contexts are deleted, and a bound on the similarities of the others.

    Attributes
    ----------
    questions
        Unit vectors, shape (m, dim).
    similarities, contexts
        Similarities of each question's nearest contexts, descending, and the numbers of these
        contexts, shape (m, 64); ``-inf`` and -1 where there is none.
    left_out
        Upper bound on the similarity of every context not kept, shape (m,).
    """

    questions: Vectors
    similarities: Scores
    contexts: Rows
    left_out: Scores

    @classmethod
    def of(cls, questions: Vectors) -> Background:
        """Return the background of an empty corpus."""
        m = len(questions)
        nothing = np.full((m, KEPT), -np.inf), np.full((m, KEPT), -1, np.intp)
        return cls(questions, *nothing, np.full(m, -np.inf))

    def extended(self, numbers: Rows, vectors: Vectors) -> Background:
        """Return this with contexts added: numbers, shape (n,), and unit vectors, (n, dim)."""
        near = (self.questions @ vectors.T).astype(np.float64)
        rows = np.argsort(-near, axis=1, kind="stable")[:, :KEPT]
        left_out = self.left_out
        if near.shape[1] > KEPT:
            left_out = np.maximum(left_out, np.partition(near, -KEPT - 1, axis=1)[:, -KEPT - 1])
        # One dot product per pair: unlike a matrix product it does not depend on the other rows.
        exact = np.vecdot(vectors[rows], self.questions[:, None, :]).astype(np.float64)
        similarities = np.concatenate([self.similarities, exact], axis=1)
        contexts = np.concatenate([self.contexts, numbers[rows]], axis=1)
        order = np.argsort(-similarities, axis=1, kind="stable")
        similarities = np.take_along_axis(similarities, order, axis=1)
        contexts = np.take_along_axis(contexts, order, axis=1)
        left_out = np.maximum(left_out, similarities[:, KEPT:].max(axis=1, initial=-np.inf))
        return Background(
            self.questions, similarities[:, :KEPT].copy(), contexts[:, :KEPT].copy(), left_out
        )

    def without(self, numbers: Rows) -> Background:
        """Return this without the contexts of these numbers."""
        gone: Bools = np.isin(self.contexts, numbers)
        return Background(
            self.questions,
            np.where(gone, -np.inf, self.similarities),
            np.where(gone, -1, self.contexts),
            self.left_out,
        )

    def highest(self) -> Scores:
        """Return each question's highest similarity, shape (m,); ``-inf`` without a context.

        Raises
        ------
        ValueError
            If so many contexts near a question were deleted that its maximum is not known.
        """
        least, most = self._bounds()
        if unknown := int(np.count_nonzero(least < most)):
            raise self._unknown(unknown)
        return least

    def median(self) -> float:
        """Return the median over the questions of the highest similarity.

        Where a question's maximum is not known, it lies between the highest similarity kept and
        the bound on the others. The median is known if both bounds give the same one.

        Raises
        ------
        ValueError
            If it is not known.
        """
        least, most = self._bounds()
        median = float(np.median(least))
        if median < np.median(most):
            raise self._unknown(int(np.count_nonzero(least < most)))
        return median

    def _bounds(self) -> tuple[Scores, Scores]:
        """Return lower and upper bounds on the highest similarities, shape (m,) each."""
        least: Scores = self.similarities.max(axis=1)
        return least, np.where(least < self.left_out - SPARE, self.left_out, least)

    def _unknown(self, count: int) -> ValueError:
        return ValueError(
            f"all {KEPT} contexts nearest to {count} of {len(self.questions)} background "
            "questions were deleted, so their similarity to the corpus is unknown: fit the gate "
            "again"
        )
