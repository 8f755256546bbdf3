"""A query against one state of a sparse index: the best rows, and the exact score of any row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Found, Rows, Scores
from shared_core.index.select import best_of
from shared_core.index.sparse.postings import Segment
from shared_core.index.sparse.view import SparseView
from shared_core.native import kernels
from shared_core.native.kernels import Norm


class SparseQuery:
    """A query prepared against a view.

    The compiled kernel leaves out rows that only hold words too frequent to lift them to the best
    k; numpy scores every row that holds a word. Both sum a score over the words in the same order,
    weightiest first, so they agree bit for bit, and equal passages have equal scores.

    Parameters
    ----------
    view
        The state of the index.
    terms
        Term number -> occurrences in the query.

    Attributes
    ----------
    view
        As given.
    """

    def __init__(self, view: SparseView, terms: Mapping[int, int]) -> None:
        self.view = view
        idf, gain = view.idf, view.options.gain
        weighed = [
            (known * count * gain, term)
            for term, count in terms.items()
            if (known := idf[term]) is not None
        ]
        weighed.sort(key=itemgetter(0), reverse=True)  # equal ones as in the query
        self._weights = [weight for weight, _ in weighed]
        self._terms = [term for _, term in weighed]

    @property
    def frequency(self) -> int:
        """Number of alive rows that hold a term, summed over the terms."""
        df = self.view.df
        return sum(int(df[term]) for term in self._terms)

    @property
    def postings(self) -> tuple[tuple[Segment, ...], list[int], list[float], Norm]:
        """Segments, terms, weights and norm, for the kernels."""
        return self.view.segments, self._terms, self._weights, self.view.norm

    def best(self, k: int, allowed: Bools | None = None) -> Found:
        """Return the best `k` rows that share a term with the query.

        Ties go to earlier rows. `allowed` marks the rows that may be found, shape (rows,);
        deleted rows never are.
        """
        return self.best_of_each([self], k, allowed)[0]

    @staticmethod
    def best_of_each(
        queries: Sequence[SparseQuery], k: int, allowed: Bools | None = None
    ) -> list[Found]:
        """Return `best` for each query; at least one, all against the same view."""
        view = queries[0].view
        if view.alive is not None:
            allowed = view.alive if allowed is None else allowed & view.alive
        if kernels.built:
            words = tuple([(query._terms, query._weights) for query in queries])
            return kernels.best_postings(view.segments, words, view.norm, view.size, k, allowed)
        return [query._best(k, allowed) for query in queries]

    def _best(self, k: int, allowed: Bools | None) -> Found:
        scores, matching = self._everywhere
        rows = (matching if allowed is None else matching & allowed).nonzero()[0]
        return best_of(rows, scores[rows], k)

    def ranked(self, k: int, allowed: Bools | None = None) -> Found:
        """Return the rows of `best` and their scores, best first, ties by row."""
        rows, scores = self.best(k, allowed)
        order = np.lexsort((rows, -scores))
        return rows[order], scores[order]

    def exact(self, rows: npt.ArrayLike) -> Scores:
        """Return the scores of rows, in their shape; IndexError if there is no such row."""
        wanted, size = np.ascontiguousarray(rows, dtype=np.intp), self.view.size
        for row in wanted[(wanted < 0) | (wanted >= size)]:
            raise IndexError(f"there is no row {row}: there are {size}, counted from 0")
        return self.at(wanted.ravel()).reshape(np.shape(rows))

    def of(self, rows: Sequence[int | None], text_at: Callable[[int], str]) -> Scores:
        """Score texts of which some are in the view; see `BM25Index.scores_of`."""
        foreign = [at for at, row in enumerate(rows) if row is None]
        if not foreign:
            return self.exact(rows)  # type: ignore[arg-type]
        scores = np.empty(len(rows))
        known = np.ones(len(rows), np.bool_)
        known[foreign] = False
        scores[known] = self.exact([row for row in rows if row is not None])
        scores[foreign] = self.weigh([text_at(at) for at in foreign])
        return scores

    def at(self, rows: Rows) -> Scores:
        """Return the exact scores of `rows`, shape (len(rows),); 0 for rows that do not match."""
        view = self.view
        if kernels.built:
            return kernels.postings_at(*self.postings, view.size, rows)
        return self._everywhere[0][rows]

    def weigh(self, texts: Sequence[str]) -> Scores:
        """Score texts from outside the view by its statistics, shape (len(texts),)."""
        view = self.view
        measured = [view.lexicon.measure(text) for text in texts]
        sizes = np.array([length for _, length in measured])
        scores = np.zeros(len(texts))
        for term, weight in zip(self._terms, self._weights, strict=True):
            counts = np.array([counts.get(term, 0) for counts, _ in measured])
            scores += _saturated(weight, counts, sizes, view.norm)
        return scores

    @cached_property
    def _everywhere(self) -> tuple[Scores, Bools]:
        """The score of every row, and whether it holds a term, each of shape (rows,)."""
        view = self.view
        found = [segment.find(term) for term in self._terms for segment in view.segments]
        if not found:
            return np.zeros(view.size), np.zeros(view.size, np.bool_)
        rows = np.concatenate([rows for rows, _, _ in found], dtype=np.intp)
        counts = np.concatenate([counts for _, counts, _ in found])
        lengths = np.concatenate([lengths for _, _, lengths in found])
        sizes = [rows.size for rows, _, _ in found]
        weights = np.repeat(np.repeat(self._weights, len(view.segments)), sizes)
        matching = np.zeros(view.size, np.bool_)
        matching[rows] = True
        values = _saturated(weights, counts, lengths, view.norm)
        scores = np.bincount(rows, values, view.size)  # sums in this order
        return np.asarray(scores, np.float64), matching


def _saturated(
    weight: float | Scores,
    counts: npt.NDArray[np.integer],
    lengths: npt.NDArray[np.integer],
    norm: Norm,
) -> Scores:
    """Return what a term adds to scores, given counts and lengths of shape (n,)."""
    slope, base = norm
    return weight * (counts / (counts + (lengths.astype(np.float64) * slope + base)))
