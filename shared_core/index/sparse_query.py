"""A query against one state of a sparse index: the best rows, and the exact score of any row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Rows, Scores
from shared_core.index.select import distinct, reaching
from shared_core.index.sparse_view import SparseView

DIRECT = 4096
"""Postings that are cheaper to score all than to prune."""

FEW = 1024
"""Rows that are cheaper to score all than to narrow down."""

ROUNDING = 1e-9
"""Sums of weights in another order differ by less."""

SORTED = 64
"""Rows that are compared in the time that sorting one takes."""

SPARE = 4
"""Rare terms are those whose postings together stay below one in so many rows."""


class SparseQuery:
    """A query prepared against a view.

    Its terms are split in two. The rare ones are scored through their postings, all of them. The
    frequent ones (stop words, mostly) are scored only where a row can still reach the best k,
    by the upper bound of their weight (MaxScore: Turtle and Flood, Information Processing &
    Management 31(6), 1995). The result is exact.

    Parameters
    ----------
    view
        The state of the index.
    terms
        Term number -> occurrences in the query.
    """

    def __init__(self, view: SparseView, terms: Mapping[int, int]) -> None:
        self._view = view
        options, n, mean_idf = view.options, view.alive_count, view.mean_idf
        known = [term for term in terms if term < view.df.size]
        by_df = sorted(zip(view.df[known].tolist() if known else (), known, strict=True))
        self._terms = [term for df, term in by_df if df]
        self._df = [df for df, _ in by_df if df]
        self._weights = [
            options.idf(df, n, mean_idf) * terms[term] * options.gain
            for df, term in zip(self._df, self._terms, strict=True)
        ]
        self._rare = self._split()
        self._scored = _Scored(view.size)
        self._scored.add(view, self._terms[: self._rare], self._weights[: self._rare])

    def top(self, k: int, allowed: Bools | None = None) -> Rows:
        """Return the best `k` rows that share a term with the query, best first.

        Ties go by row. `allowed` marks the rows that may be found, shape (rows,); deleted rows
        never are.
        """
        alive = self._view.alive
        if alive is not None:
            allowed = alive if allowed is None else allowed & alive
        rows = self._narrowed(self._near(k, allowed), k)
        scores = self.at(rows)
        best = reaching(scores, k)
        return rows[best[(-scores[best]).argsort(kind="stable")[:k]]]

    def at(self, rows: Rows) -> Scores:
        """Return the exact scores of `rows`, shape (len(rows),); 0 for rows that do not match."""
        scores = self._scored.everywhere[rows]
        frequent = self._terms[self._rare :]
        if frequent:
            view = self._view
            counts = np.array([view.column(term)[rows] for term in frequent], np.float64)
            scores += _saturate(counts, view.norms[rows], self._weights[self._rare :])
        return scores

    def weigh(self, texts: Sequence[Mapping[int, int]], lengths: Sequence[int]) -> Scores:
        """Score passages from outside the index by its statistics.

        Parameters
        ----------
        texts
            Term number -> occurrences, for each passage.
        lengths
            Tokens of each passage.
        """
        view = self._view
        counts = np.zeros((len(self._terms), len(texts)))
        for row, term in enumerate(self._terms):
            counts[row] = [text.get(term, 0) for text in texts]
        norms = view.options.length_norm(np.array(lengths), view.mean_length)
        return _saturate(counts, norms, self._weights)

    def _split(self) -> int:
        """Return how many terms are rare: the rarest, up to a budget of postings."""
        budget = max(DIRECT, self._view.size // SPARE)
        if sum(self._df) <= budget or min(self._weights) < 0:
            return len(self._df)
        rare, spent = 1, self._df[0]
        while rare < len(self._df) and spent + self._df[rare] <= budget:
            spent += self._df[rare]
            rare += 1
        return rare

    def _near(self, k: int, allowed: Bools | None) -> Rows:
        """Return matching rows, ascending, among which the best `k` are."""
        slack = sum(self._weights[self._rare :])
        rows = self._scored.near(k, slack, allowed)
        if self._rare == len(self._terms):
            return rows
        sums = self._scored.everywhere[rows]
        kth = float(np.partition(sums, -k)[-k]) if sums.size >= k else 0.0
        if kth > slack:  # no row that only the frequent terms find can come among the best
            return rows
        scored = self._rare
        while self._rare < len(self._terms) and sum(self._weights[self._rare :]) >= kth:
            self._rare += 1
        added = slice(scored, self._rare)
        self._scored.add(self._view, self._terms[added], self._weights[added])
        return self._near(k, allowed)

    def _narrowed(self, rows: Rows, k: int) -> Rows:
        """Leave out, term by term, the rows that the frequent ones cannot lift to the best `k`."""
        view, scores = self._view, self._scored.everywhere[rows]
        for at in range(self._rare, len(self._terms)):
            if rows.size <= FEW:
                break
            counts = view.column(self._terms[at])[rows].astype(np.float64)
            scores += _saturate(counts[None], view.norms[rows], self._weights[at : at + 1])
            # Summed in another order than the scores that decide.
            near = reaching(scores, k, sum(self._weights[at + 1 :]) + ROUNDING)
            rows, scores = rows[near], scores[near]
        return rows


class _Scored:
    """The scores that some terms give to all rows.

    Attributes
    ----------
    everywhere
        Score by row, shape (rows,); 0 where none of the terms occurs.
    """

    def __init__(self, size: int) -> None:
        self.everywhere: Scores = np.zeros(size)
        self._rows: Rows = np.zeros(0, np.intp)
        self._lists = 0
        self._positive = True

    def add(self, view: SparseView, terms: list[int], weights: list[float]) -> None:
        """Score all postings of more terms."""
        found = [hit for segment in view.segments for hit in segment.find(terms)]
        if not found:
            return
        rows = np.concatenate([rows for _, rows, _ in found], dtype=np.intp)
        counts = np.concatenate([counts for _, _, counts in found])
        weight = np.repeat([weights[term] for term, _, _ in found], [r.size for _, r, _ in found])
        values = weight / (view.norms.take(rows) / counts + 1.0)
        np.add.at(self.everywhere, rows, values)
        self._rows = np.concatenate([self._rows, rows]) if self._lists else rows
        self._lists += len(terms)
        self._positive = self._positive and min(weights) > 0

    def near(self, k: int, slack: float, allowed: Bools | None) -> Rows:
        """Return rows that hold one of the terms, ascending: those within `slack` of the best `k`.

        And some more: where the postings are gone through, a row comes once for each of its
        terms, so the k-th best row is at least as good as the one in place k times the number of
        terms.
        """
        if self._positive and self._rows.size > self.everywhere.size:
            scores = self.everywhere if allowed is None else np.where(allowed, self.everywhere, 0.0)
            rows = reaching(scores, k, slack)
            return rows[scores[rows] > 0]
        rows = self._rows if allowed is None else self._rows[allowed[self._rows]]
        scores = self.everywhere.take(rows)
        near = reaching(scores, k * max(self._lists, 1), slack)
        if near.size * SORTED > self.everywhere.size and (least := scores[near].min()) > 0:
            found: Rows = (self.everywhere >= least).nonzero()[0]
            return found if allowed is None else found[allowed[found]]
        return distinct(rows[near])


def _saturate(counts: npt.NDArray[np.number], norms: Scores, weights: Sequence[float]) -> Scores:
    """Sum ``weight * count / (count + norm)`` over terms; counts (t, n), norms (n,).

    Term by term, so that equal passages have equal scores to the last bit.
    """
    scores = np.zeros(norms.size)
    for weight, count in zip(weights, counts, strict=True):
        scores += weight * (count / (count + norms))
    return scores
