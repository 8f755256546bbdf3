"""Postings: which rows hold a term, and how often. Weights come at query time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Ints, Rows, run_starts
from shared_core.native.kernels import Narrow


class Segment(NamedTuple):
    """The postings of a run of rows, by term. Never changed once made.

    Attributes
    ----------
    terms
        Term numbers, ascending, shape (t,).
    starts
        Where each term's postings begin, shape (t + 1,).
    rows, counts, lengths
        Row and occurrences of each posting, and the tokens of that row, shape (p,); rows ascend
        within a term. A row's length is stored with each of its counts, since a search that looked
        it up by row would wait for memory most of the time.
    extremes
        The most occurrences among a term's postings, and the tokens of its shortest row, shape
        (t, 2): they bound what the term adds to a score.
    """

    terms: Ints
    starts: npt.NDArray[np.int64]
    rows: Ints
    counts: Narrow
    lengths: Narrow
    extremes: Ints

    @classmethod
    def build(cls, documents: Sequence[Sequence[int]], first_row: int) -> Segment:
        """Count the term numbers of documents, whose rows begin at `first_row`."""
        lengths = np.fromiter(map(len, documents), np.int32, len(documents))
        words = int(lengths.sum(dtype=np.int64))
        numbers = np.fromiter(chain.from_iterable(documents), np.int32, words)
        rows = np.repeat(np.arange(len(documents), dtype=np.int32), lengths)
        keys = numbers * np.int64(len(documents)) + rows
        keys.sort()
        first = run_starts(keys)
        numbers, rows = np.divmod(keys[first], max(len(documents), 1))
        counts = np.diff(np.append(first, keys.size))
        return cls._from_sorted(numbers, rows + first_row, counts, lengths[rows])

    @classmethod
    def merge(cls, segments: Sequence[Segment], keep: Bools | None) -> Segment:
        """Merge segments of ascending rows into one.

        Parameters
        ----------
        segments
            In row order.
        keep
            Rows to keep, by row; the kept ones are renumbered from 0. None keeps all as is.
        """
        numbers = np.concatenate([np.repeat(s.terms, np.diff(s.starts)) for s in segments])
        rows = np.concatenate([s.rows for s in segments])
        counts = np.concatenate([s.counts for s in segments])
        lengths = np.concatenate([s.lengths for s in segments])
        if keep is not None:
            kept = keep[rows]
            rows = (np.cumsum(keep, dtype=np.int32) - 1)[rows[kept]]
            numbers, counts, lengths = numbers[kept], counts[kept], lengths[kept]
        order = np.argsort(numbers, kind="stable")
        return cls._from_sorted(numbers[order], rows[order], counts[order], lengths[order])

    @classmethod
    def _from_sorted(
        cls,
        numbers: npt.NDArray[np.integer],
        rows: npt.NDArray[np.integer],
        counts: npt.NDArray[np.integer],
        lengths: npt.NDArray[np.integer],
    ) -> Segment:
        starts = run_starts(numbers)
        terms = numbers[starts].astype(np.int32)
        starts = np.append(starts, numbers.size).astype(np.int64)
        return cls.of(terms, starts, rows.astype(np.int32), counts, lengths)

    @classmethod
    def of(
        cls,
        terms: Ints,
        starts: npt.NDArray[np.int64],
        rows: Ints,
        counts: npt.NDArray[np.integer],
        lengths: npt.NDArray[np.integer],
    ) -> Segment:
        """Return a segment with counts and lengths as narrow as the lengths allow."""
        narrow = lengths.max(initial=0) < 2**16

        def fit(values: npt.NDArray[np.integer]) -> Narrow:
            if narrow:
                return values.astype(np.uint16, copy=False)
            return values.astype(np.int32, copy=False)

        most = np.maximum.reduceat(counts, starts[:-1])
        shortest = np.minimum.reduceat(lengths, starts[:-1])
        extremes = np.stack([most, shortest], axis=1, dtype=np.int32)
        return cls(terms, starts, rows, fit(counts), fit(lengths), extremes)

    @property
    def size(self) -> int:
        """Number of postings."""
        return self.rows.size

    def find(self, term: int) -> tuple[Ints, Narrow, Narrow]:
        """Return the rows that hold a term, how often each does, and their lengths."""
        wanted = np.int32(term)
        first = self.terms.searchsorted(wanted)
        after = self.terms.searchsorted(wanted, "right")
        span = slice(self.starts[first], self.starts[after])
        return self.rows[span], self.counts[span], self.lengths[span]

    def terms_at(self, positions: Rows) -> Ints:
        """Return the terms of some postings."""
        return self.terms[self.starts.searchsorted(positions, "right") - 1]
