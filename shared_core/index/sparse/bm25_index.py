"""BM25 over a fixed list of texts, and the BM25 of other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from shared_core.arrays import Found, Scores
from shared_core.checking import check_count, check_several
from shared_core.index.sparse.bm25 import BM25Options, Variant
from shared_core.index.sparse.query import SparseQuery, sparse_top_k
from shared_core.index.sparse.snapshot import SparseSnapshot
from shared_core.types import Tokenizer


class BM25Index:
    """BM25 over a list of texts, whose rows are its positions; made by `from_texts`.

    It never changes: a `PassageIndex` is what passages are added to and deleted from.
    """

    def __init__(self, snapshot: SparseSnapshot) -> None:
        self._snapshot = snapshot

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
        """Build an index of `texts`.

        Parameters
        ----------
        texts
            The texts.
        variant
            ``"lucene"`` (no zero or negative idf) or ``"okapi"`` (BM25Okapi of rank-bm25).
        k1, b, epsilon
            See `BM25Options`. `k1` of None is the variant's usual one: 1.2, or 1.5 for ``okapi``.
        tokenizer
            Text to tokens; by default `tokenize`, which lower-cases and splits identifiers.

        Raises
        ------
        ValueError
            If an option is out of range, `texts` is a single string, or one is not a string.
        """
        check_several(texts, "texts")
        options = BM25Options(variant=variant, k1=k1, b=b, epsilon=epsilon)
        empty = SparseSnapshot.empty(options, tokenizer)
        return cls(empty.extended([empty.vocabulary.learn(text) for text in texts]))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for ``copy`` and ``pickle``, which no search changes meanwhile."""
        return {"_snapshot": self._snapshot.apart()}

    def __len__(self) -> int:
        return self._snapshot.size

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The custom tokenizer; None: the default."""
        return self._snapshot.vocabulary.custom

    def search(self, query: str, k: int) -> Found:
        """Return the best rows and their scores, best first, ties by row.

        Parameters
        ----------
        query
            Query text. Without a token of the texts nothing is found.
        k
            Number of rows at most, >= 1.

        Returns
        -------
        rows, scores
            Only rows that share a token with the query, shape (<= k,).

        Raises
        ------
        ValueError
            If `k` is below 1, or the query is not a string.
        """
        ((rows, scores),) = sparse_top_k([SparseQuery(self._snapshot, query)], check_count(k, "k"))
        order = np.lexsort((rows, -scores))
        return rows[order], scores[order]

    def scores(self, query: str) -> Scores:
        """Return the score of every row, shape (rows,), higher is better."""
        return SparseQuery(self._snapshot, query).scores_of_rows(np.arange(len(self)))

    def score_texts(self, query: str, texts: Sequence[str]) -> Scores:
        """Score texts that are not in the index, with the statistics of those that are.

        Returns
        -------
        ndarray
            Shape (len(texts),), comparable with the scores of rows.

        Raises
        ------
        ValueError
            If `texts` is a single string.
        """
        check_several(texts, "texts")
        return SparseQuery(self._snapshot, query).scores_of_texts(texts)


def read_rank_bm25(bm25: Any, tokenizer: Tokenizer) -> SparseSnapshot:
    """Return the counts of a ``rank_bm25.BM25Okapi``; see `PassageIndex.from_rank_bm25`."""
    if type(bm25).__name__ != "BM25Okapi":
        raise ValueError(
            f"only rank_bm25.BM25Okapi converts, got {type(bm25).__name__}; "
            "build the index from the texts instead"
        )
    options = BM25Options(variant="okapi", k1=bm25.k1, b=bm25.b, epsilon=bm25.epsilon)
    empty = SparseSnapshot.empty(options, tokenizer)
    numbered = empty.vocabulary.ids
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
