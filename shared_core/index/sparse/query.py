"""A query against one snapshot of the sparse leg: the best rows, and the exact score of any."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import cached_property
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Found, Rows, Scores, Vectors, top_k
from shared_core.index.sparse.snapshot import SparseSnapshot
from shared_core.index.tokenize import tokenize
from shared_core.native import kernels
from shared_core.native.kernels import Norm, Scan

UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, Kana, Chinese."""


class SparseQuery:
    """A query prepared against a snapshot.

    The compiled kernel leaves out rows that only hold words too frequent to lift them to the best
    k; numpy scores every row that holds a word. Both sum a score over the words in the same order,
    weightiest first, so they agree bit for bit, and equal passages have equal scores.

    Parameters
    ----------
    snapshot
        The state of the leg.
    text
        The query. If the default tokenizer finds no known word in a script without spaces, a
        warning names the way out.

    Raises
    ------
    ValueError
        If `text` is not a string.
    """

    def __init__(self, snapshot: SparseSnapshot, text: str) -> None:
        self.snapshot = snapshot
        counts, _ = snapshot.vocabulary.count(text)
        if not counts and snapshot.size and snapshot.vocabulary.tokenizer is tokenize:
            _warn_if_unspaced(text)
        idf, gain = snapshot.idf, snapshot.options.gain
        weighed = [
            (known * count * gain, term)
            for term, count in counts.items()
            if (known := idf[term]) is not None
        ]
        weighed.sort(key=itemgetter(0), reverse=True)  # equal ones as in the query
        self.weights = [weight for weight, _ in weighed]
        self.terms = [term for _, term in weighed]

    def scores_of_rows(self, rows: Rows) -> Scores:
        """Return the exact scores of `rows`, shape (len(rows),); 0 for rows that do not match."""
        if not kernels.built:
            return self._everywhere[0][rows]
        snapshot = self.snapshot
        return kernels.postings_at(
            snapshot.segments, self.terms, self.weights, snapshot.norm, snapshot.size, rows
        )

    def scores_of_texts(self, texts: Sequence[str]) -> Scores:
        """Score texts from outside the index by its statistics, shape (len(texts),)."""
        counted = [self.snapshot.vocabulary.count(text) for text in texts]
        lengths = np.array([length for _, length in counted])
        scores = np.zeros(len(texts))
        for term, weight in zip(self.terms, self.weights, strict=True):
            counts = np.array([counts.get(term, 0) for counts, _ in counted])
            scores += _saturated(weight, counts, lengths, self.snapshot.norm)
        return scores

    def top_k(self, k: int, allowed: Bools | None) -> Found:
        """Return what `sparse_top_k` does, by numpy."""
        scores, matching = self._everywhere
        rows = (matching if allowed is None else matching & allowed).nonzero()[0]
        return top_k(rows, scores[rows], k)

    @cached_property
    def _everywhere(self) -> tuple[Scores, Bools]:
        """The score of every row, and whether it holds a term, each of shape (rows,)."""
        segments, size = self.snapshot.segments, self.snapshot.size
        found = [segment.find(term) for term in self.terms for segment in segments]
        if not found:
            return np.zeros(size), np.zeros(size, np.bool_)
        rows = np.concatenate([rows for rows, _, _ in found], dtype=np.intp)
        counts = np.concatenate([counts for _, counts, _ in found])
        lengths = np.concatenate([lengths for _, _, lengths in found])
        sizes = [rows.size for rows, _, _ in found]
        weights = np.repeat(np.repeat(self.weights, len(segments)), sizes)
        matching = np.zeros(size, np.bool_)
        matching[rows] = True
        values = _saturated(weights, counts, lengths, self.snapshot.norm)
        scores = np.bincount(rows, values, size)  # sums in this order
        return np.asarray(scores, np.float64), matching


def sparse_top_k(
    queries: Sequence[SparseQuery], k: int, allowed: Bools | None = None
) -> list[Found]:
    """Return for each query the best `k` rows that share a term with it, and their scores.

    Parameters
    ----------
    queries
        At least one, all against the same snapshot.
    k
        At least 1. Ties go to earlier rows.
    allowed
        Rows that may be found, shape (rows,), no deleted ones; None: all.
    """
    if not kernels.built:
        return [query.top_k(k, allowed) for query in queries]
    pools = pools_by_kernels(queries, k, allowed)
    return [(rows, sparse) for rows, _, sparse in pools]


def pools_by_kernels(
    queries: Sequence[SparseQuery],
    k: int,
    allowed: Bools | None,
    scan: Scan | None = None,
    vectors: Vectors | None = None,
) -> list[tuple[Rows, Scores, Scores]]:
    """Return what `kernels.pools` does for queries, all against the same snapshot."""
    snapshot = queries[0].snapshot
    words = tuple([(query.terms, query.weights) for query in queries])
    return kernels.pools(
        scan, vectors, snapshot.segments, words, snapshot.norm, snapshot.size, k, allowed
    )


def _warn_if_unspaced(text: str) -> None:
    if UNSPACED.search(text):
        warnings.warn(
            "BM25 knows no word of a query in a script without spaces, which the default tokenizer "
            "does not split: give a tokenizer for the language as tokenizer=",
            stacklevel=3,
        )


def _saturated(
    weight: float | Scores,
    counts: npt.NDArray[np.integer],
    lengths: npt.NDArray[np.integer],
    norm: Norm,
) -> Scores:
    """Return what a term adds to scores, given counts and lengths of shape (n,)."""
    slope, base = norm
    return weight * (counts / (counts + (lengths.astype(np.float64) * slope + base)))
