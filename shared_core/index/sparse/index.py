"""A BM25 index that grows and shrinks without being rebuilt."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Rows, Scores
from shared_core.checking import check_count, check_several
from shared_core.index.sparse.bm25 import BM25Options, Variant
from shared_core.index.sparse.lexicon import Lexicon
from shared_core.index.sparse.query import SparseQuery
from shared_core.index.sparse.view import SparseView
from shared_core.types import Tokenizer


class BM25Index:
    """BM25 over postings that hold counts; weights are applied at query time.

    No weight is ever recomputed, and every score is what an index rebuilt from the remaining texts
    would give. Rows are numbered in insertion order. Safe to read from many threads while one
    writes: a search works on the snapshot it starts from.

    Parameters
    ----------
    variant
        ``"lucene"`` (no zero or negative idf) or ``"okapi"`` (BM25Okapi of rank-bm25).
    k1, b, epsilon
        See `BM25Options`. `k1` of None is the variant's usual one: 1.2, or 1.5 for ``okapi``.
    tokenizer
        Text to tokens; by default `tokenize`, which lower-cases and splits identifiers.

    Raises
    ------
    ValueError
        If an option is out of range.
    """

    def __init__(
        self,
        *,
        variant: Variant = "lucene",
        k1: float | None = None,
        b: float = 0.75,
        epsilon: float = 0.25,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        self.options = BM25Options(variant=variant, k1=k1, b=b, epsilon=epsilon)
        self._writing = threading.Lock()
        self._view = SparseView.empty(self.options, tokenizer)

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        *,
        variant: Variant = "lucene",
        k1: float | None = None,
        b: float = 0.75,
        epsilon: float = 0.25,
        tokenizer: Tokenizer | None = None,
    ) -> BM25Index:
        """Build an index of `texts`, see `add`; options as in the constructor."""
        index = cls(variant=variant, k1=k1, b=b, epsilon=epsilon, tokenizer=tokenizer)
        index.add(texts)
        return index

    @classmethod
    def from_rank_bm25(cls, bm25: Any, *, tokenizer: Tokenizer) -> BM25Index:
        """Convert a ``rank_bm25.BM25Okapi``; the scores stay the same.

        Parameters
        ----------
        bm25
            The object; its counts, ``k1``, ``b`` and ``epsilon`` are taken over.
        tokenizer
            The tokenizer its corpus was split with; the object does not hold it.

        Raises
        ------
        ValueError
            If `bm25` is of another class, whose formula differs.
        """
        index = cls()
        index._view = read_rank_bm25(bm25, tokenizer)
        index.options = index._view.options
        return index

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for ``copy`` and ``pickle``, neither of which changes it."""
        with self._writing:
            return {"view": self._view.apart()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self._view = kept["view"]
        self.options = self._view.options
        self._writing = threading.Lock()

    @property
    def view(self) -> SparseView:
        """The present snapshot; it stays as it is whatever is added or deleted later."""
        return self._view

    @property
    def lexicon(self) -> Lexicon:
        """The terms of the present snapshot, and the tokenizer."""
        return self._view.lexicon

    def __len__(self) -> int:
        return self._view.alive_count

    def add(self, texts: Iterable[str]) -> range:
        """Add texts and return their rows; nothing is added if one fails.

        Raises
        ------
        ValueError
            If `texts` is a single string, or one of them is not a string.
        """
        check_several(texts, "texts")
        with self._writing:
            return self._extend([self.lexicon.learn(text) for text in texts])

    def append(self, documents: Sequence[Sequence[int]]) -> range:
        """Add texts that have already been read, and return their rows.

        Parameters
        ----------
        documents
            What ``lexicon.learn`` returned for each text. A compaction in between replaces the
            lexicon, and the new one has to read them again.
        """
        with self._writing:
            return self._extend(documents)

    def _extend(self, documents: Sequence[Sequence[int]]) -> range:
        first = self._view.size
        self._view = self._view.extended(documents)
        return range(first, first + len(documents))

    def restore(self, view: SparseView) -> None:
        """Go back to an earlier snapshot of this index."""
        with self._writing:
            self._view = view

    def delete(self, rows: Iterable[int]) -> None:
        """Delete rows; the numbers of the others stay.

        Raises
        ------
        ValueError
            If a row is out of range.
        """
        with self._writing:
            self._view = self._view.without(np.fromiter(rows, np.intp))

    def compact(self) -> None:
        """Drop deleted rows for good and renumber the remaining ones in order."""
        with self._writing:
            self._view = self._view.compacted()

    def query(self, text: str) -> SparseQuery:
        """Prepare a query against the present snapshot."""
        view = self._view
        return SparseQuery(view, view.lexicon.lookup(text))

    def search(self, query: str, k: int, *, allowed: Bools | None = None) -> tuple[Rows, Scores]:
        """Return the best rows and their scores, best first, ties by row.

        Parameters
        ----------
        query
            Query text. Without a token of the corpus nothing is found.
        k
            Number of rows at most, >= 1.
        allowed
            Rows that may be found, shape (rows,); all by default.

        Returns
        -------
        rows, scores
            Only rows that share a token with the query, shape (<= k,).

        Raises
        ------
        ValueError
            If `k` is below 1.
        """
        mask = None if allowed is None else np.ascontiguousarray(allowed, np.bool_)
        return self.query(query).ranked(check_count(k, "k"), mask)

    def scores(self, query: str) -> Scores:
        """Return the score of every row, shape (rows,), higher is better; 0 for deleted rows."""
        prepared = self.query(query)
        scores = prepared.at(np.arange(prepared.view.size))
        alive = prepared.view.alive
        return scores if alive is None else np.where(alive, scores, 0.0)

    def scores_at(self, query: str, rows: npt.ArrayLike) -> Scores:
        """Return the exact scores of `rows`, in their shape; 0 for those that do not match.

        Raises
        ------
        IndexError
            If there is no such row.
        """
        return self.query(query).exact(rows)

    def score_texts(self, query: str, texts: Sequence[str]) -> Scores:
        """Score texts that are not in the index, with the statistics of those that are.

        Returns
        -------
        ndarray
            Shape (len(texts),), comparable with the scores of indexed rows.

        Raises
        ------
        ValueError
            If `texts` is a single string.
        """
        check_several(texts, "texts")
        return self.query(query).weigh(texts)

    def scores_of(
        self, query: str, rows: Sequence[int | None], text_at: Callable[[int], str]
    ) -> Scores:
        """Score texts of which some are in the index, all against the same snapshot.

        Parameters
        ----------
        query
            Query text.
        rows
            The row of each text; None for one that is not in the index.
        text_at
            Returns the text at a position of `rows`; called only where `rows` holds None.

        Returns
        -------
        ndarray
            Shape (len(rows),): where there is a row, its score as `scores_at` returns it, else
            that of the text as `score_texts` returns it.

        Raises
        ------
        IndexError
            If there is no such row.
        """
        return self.query(query).of(rows, text_at)


def read_rank_bm25(bm25: Any, tokenizer: Tokenizer) -> SparseView:
    """Return the counts of a ``rank_bm25.BM25Okapi``; see `BM25Index.from_rank_bm25`."""
    if type(bm25).__name__ != "BM25Okapi":
        raise ValueError(
            f"only rank_bm25.BM25Okapi converts, got {type(bm25).__name__}; "
            "build the index from the texts instead"
        )
    options = BM25Options(variant="okapi", k1=bm25.k1, b=bm25.b, epsilon=bm25.epsilon)
    empty = SparseView.empty(options, tokenizer)
    numbered = empty.lexicon.ids
    return empty.extended(
        [
            [
                numbered.setdefault(token, len(numbered))
                for token, count in document.items()
                for _ in range(count)
            ]
            for document in bm25.doc_freqs
        ]
    )
