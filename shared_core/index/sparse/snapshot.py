"""An immutable snapshot of the sparse leg."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Ints, Rows
from shared_core.index.sparse.bm25 import BM25Options
from shared_core.index.sparse.postings import Segment
from shared_core.index.sparse.vocabulary import Vocabulary
from shared_core.native.kernels import Norm
from shared_core.types import Tokenizer

COMPACT = 1000
"""Rows from which deleted ones are to be dropped once they are the majority."""


@dataclass(frozen=True)
class SparseSnapshot:
    """A snapshot; adding or deleting makes a new one.

    Attributes
    ----------
    segments
        Postings, in row order.
    lengths
        Tokens of each row, shape (rows,).
    df
        Number of alive rows that hold each term, shape (terms,).
    vocabulary
        Numbers the terms. Shared with later snapshots, up to one that drops terms.
    alive
        Rows that are not deleted, shape (rows,); None if none is.
    """

    options: BM25Options
    segments: tuple[Segment, ...]
    lengths: Ints
    df: npt.NDArray[np.int64]
    vocabulary: Vocabulary
    alive: Bools | None = None

    @classmethod
    def empty(cls, options: BM25Options, tokenizer: Tokenizer | None = None) -> SparseSnapshot:
        """Return that of an index without texts; `tokenizer` as in `Vocabulary`."""
        return cls(options, (), np.zeros(0, np.int32), np.zeros(0, np.int64), Vocabulary(tokenizer))

    def apart(self) -> SparseSnapshot:
        """Return the same snapshot without anything that other snapshots, or searches, add to."""
        return replace(self, vocabulary=self.vocabulary.apart())  # a new object, with no cached idf

    @property
    def size(self) -> int:
        """Number of rows, deleted ones included."""
        return self.lengths.size

    @cached_property
    def alive_count(self) -> int:
        """Number of rows that are not deleted."""
        return self.size if self.alive is None else int(np.count_nonzero(self.alive))

    @property
    def mostly_deleted(self) -> bool:
        """Whether it is time to drop the deleted rows."""
        return self.size >= COMPACT and 2 * self.alive_count < self.size

    @cached_property
    def norm(self) -> Norm:
        """See `BM25Options.length_norm`; the mean is that of the alive rows, 0 for none."""
        lengths = self.lengths if self.alive is None else self.lengths[self.alive]
        return self.options.length_norm(float(lengths.sum(dtype=np.float64)) / max(lengths.size, 1))

    @cached_property
    def idf(self) -> Idf:
        """The inverse document frequencies, computed term by term when first read."""
        return Idf(self)

    def extended(self, documents: Sequence[Sequence[int]]) -> SparseSnapshot:
        """Return the snapshot with `documents`, lists of their terms, in new rows at the end."""
        if not documents:
            return self
        segment = Segment.build(documents, self.size)
        segments = [*self.segments, segment]
        while len(segments) > 1 and segments[-2].size <= 2 * segments[-1].size:
            segments[-2:] = [Segment.merge(segments[-2:], None)]
        df = np.zeros(len(self.vocabulary), np.int64)
        df[: self.df.size] = self.df
        df[segment.terms] += np.diff(segment.starts)
        lengths = np.fromiter(map(len, documents), np.int32, len(documents))
        alive = self.alive
        if alive is not None:
            alive = np.append(alive, np.ones(len(documents), np.bool_))
        return replace(
            self,
            segments=tuple(segments),
            lengths=np.append(self.lengths, lengths),
            df=df,
            alive=alive,
        )

    def without(self, rows: Rows) -> SparseSnapshot:
        """Return the snapshot without `rows`; those deleted before are ignored."""
        alive = np.ones(self.size, np.bool_) if self.alive is None else self.alive.copy()
        dying = np.zeros(self.size, np.bool_)
        dying[rows] = True
        dying &= alive
        gone = dying.nonzero()[0].tolist()
        if not gone:
            return self
        df = self.df.copy()
        for segment in self.segments:
            if len(gone) <= 5:  # comparing is faster than looking up
                at = np.concatenate([(segment.rows == row).nonzero()[0] for row in gone])
            else:
                at = dying[segment.rows].nonzero()[0]
            df -= np.bincount(segment.terms_at(at), minlength=df.size)
        return replace(self, alive=alive & ~dying, df=df)

    def compacted(self) -> SparseSnapshot:
        """Return the snapshot without the deleted rows and the terms that no other row holds.

        Rows and terms are renumbered in order. A term without a row is from texts that have been
        deleted, or that could not be added.
        """
        held, alive = self.df > 0, self.alive
        if alive is None and held.all():
            return self
        merged = Segment.merge(self.segments, alive)
        terms = (np.cumsum(held, dtype=np.int32) - 1)[merged.terms]
        return SparseSnapshot(
            self.options,
            (merged._replace(terms=terms),),
            self.lengths if alive is None else self.lengths[alive],
            self.df[held],
            Vocabulary(self.vocabulary.tokenizer, compress(self.vocabulary.ids, held.tolist())),
        )


class Idf(dict[int, float | None]):
    """Term -> inverse document frequency; None for a term that no alive row holds."""

    def __init__(self, snapshot: SparseSnapshot) -> None:
        super().__init__()
        self._options, self._df = snapshot.options, snapshot.df
        self._n = snapshot.alive_count
        self._mean = self._options.mean_idf(self._df, self._n)

    def __missing__(self, term: int) -> float | None:
        df = int(self._df[term]) if term < self._df.size else 0
        self[term] = idf = self._options.idf(df, self._n, self._mean) if df else None
        return idf
