"""A query against one state of a sparse index: the best rows, and the exact score of any row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Rows, Scores
from shared_core.index.select import reaching
from shared_core.index.sparse_view import SparseView

DIRECT = 4096
"""Postings that are cheaper to score all than to prune."""

SPARE = 16
"""Rare terms are those whose postings together stay below one in so many rows."""

DENSE = 4
"""Where a posting comes on so many rows or fewer, all rows are given a score at once."""


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
        self._scored = _Scored.of(view, self._terms[: self._rare], self._weights[: self._rare])

    def top(self, k: int, allowed: Bools | None = None) -> Rows:
        """Return the best `k` rows that share a term with the query, best first.

        Ties go by row. `allowed` marks the rows that may be found, shape (rows,); deleted rows
        never are.
        """
        alive = self._view.alive
        if alive is not None:
            allowed = alive if allowed is None else allowed & alive
        rows, scores = self._reaching(k, allowed)
        return rows[(-scores).argsort(kind="stable")[:k]]

    def at(self, rows: Rows) -> Scores:
        """Return the exact scores of `rows`, shape (len(rows),); 0 for rows that do not match."""
        scores = self._scored.at(rows)
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

    def _reaching(self, k: int, allowed: Bools | None) -> tuple[Rows, Scores]:
        """Return matching rows that can be among the best `k`, ascending, and their scores."""
        while True:
            rows, sums = self._scored.matching(allowed)
            bound = sum(self._weights[self._rare :])
            near = reaching(sums, k, bound)
            if bound == 0:
                return rows[near], sums[near]
            if np.count_nonzero(sums > bound) >= k:
                rows = rows[near]
                return rows, self.at(rows)
            self._rare += 1
            rare = slice(self._rare)
            self._scored = _Scored.of(self._view, self._terms[rare], self._weights[rare])


class _Scored:
    """Scores of the rows that hold certain terms; those of all rows where there are few."""

    def __init__(self, rows: Rows, sums: Scores, everywhere: Scores | None) -> None:
        self._rows = rows
        self._sums = sums
        self._everywhere = everywhere

    @classmethod
    def of(cls, view: SparseView, terms: list[int], weights: list[float]) -> _Scored:
        """Score all postings of `terms`."""
        found = [hit for segment in view.segments for hit in segment.find(terms)]
        if not found:
            return cls(np.zeros(0, np.intp), np.zeros(0), None)
        rows = np.concatenate([rows for _, rows, _ in found], dtype=np.intp)
        counts = np.concatenate([counts for _, _, counts in found])
        weight = np.repeat([weights[term] for term, _, _ in found], [r.size for _, r, _ in found])
        values: Scores = weight / (view.norms.take(rows) / counts + 1.0)
        if DENSE * rows.size < view.size:
            distinct, sums = _sum_by_row(rows, values)
            return cls(distinct, sums, None)
        everywhere = np.bincount(rows, values, view.size).astype(float, copy=False)
        if min(weights) > 0:
            distinct = everywhere.nonzero()[0]
        else:
            distinct = np.bincount(rows, minlength=view.size).nonzero()[0]
        return cls(distinct, everywhere[distinct], everywhere)

    def matching(self, allowed: Bools | None) -> tuple[Rows, Scores]:
        """Return the rows that are allowed, ascending, and their scores."""
        if allowed is None:
            return self._rows, self._sums
        kept = allowed[self._rows]
        return self._rows[kept], self._sums[kept]

    def at(self, rows: Rows) -> Scores:
        """Return the scores of `rows`; 0 for those that hold none of the terms."""
        if self._everywhere is not None:
            return self._everywhere[rows]
        if self._rows.size == 0:
            return np.zeros(len(rows))
        place = self._rows.searchsorted(rows)
        place[place == self._rows.size] = 0
        return np.where(self._rows[place] == rows, self._sums[place], 0.0)


def _saturate(counts: npt.NDArray[np.number], norms: Scores, weights: Sequence[float]) -> Scores:
    """Sum ``weight * count / (count + norm)`` over terms; counts (t, n), norms (n,)."""
    saturated = counts / (counts + norms)
    return np.asarray(np.dot(weights, saturated))


def _sum_by_row(rows: Rows, values: Scores) -> tuple[Rows, Scores]:
    """Sum the values of equal rows; return the distinct rows, ascending, and their sums."""
    order = rows.argsort(kind="stable")
    rows = rows[order]
    first = np.empty(rows.size, np.bool_)
    first[0] = True
    np.not_equal(rows[1:], rows[:-1], out=first[1:])
    starts = first.nonzero()[0]
    return rows[starts], np.add.reduceat(values[order], starts)
