"""Immutable snapshots of an index of passages, without and with vectors, and a search on one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from shared_core.arrays import Bools, Found, Rows, Scores, Vectors, distinct
from shared_core.index.dense import DenseSnapshot
from shared_core.index.metadata import MetadataColumns, Where
from shared_core.index.sparse.query import SparseQuery, pools_by_kernels, sparse_top_k
from shared_core.index.sparse.snapshot import SparseSnapshot
from shared_core.neighbour_spans import PassageNeighbours
from shared_core.types import Passage, Pool, Query

BLOCK = 16
"""Queries that both legs search for at once: a pass over the vectors serves all of them."""

NOTHING = np.zeros(0)


@dataclass(frozen=True, kw_only=True)
class PassageSnapshot:
    """Passages and the sparse leg, row by row.

    Data shared between snapshots is only ever appended to, and each looks at its own rows alone,
    so a reader of one is not affected by a writer that prepares the next.

    Attributes
    ----------
    sparse
        The sparse leg.
    passages
        Row -> passage. Shared.
    rows
        Id -> the rows it has had, ascending. Shared.
    columns
        Metadata by key, for filters. Shared.
    sources
        Documents that were read for their neighbours; see `DocumentNeighbours`.
    """

    sparse: SparseSnapshot
    passages: list[Passage] = field(default_factory=list)
    rows: dict[str, tuple[int, ...]] = field(default_factory=dict)
    columns: MetadataColumns = field(default_factory=MetadataColumns)
    sources: dict[Any, PassageNeighbours] = field(default_factory=dict, init=False, repr=False)

    def holding(self, sparse: SparseSnapshot, passages: Sequence[Passage]) -> Self:
        """Return a snapshot of these passages, which shares nothing with others."""
        return replace(
            self,
            sparse=sparse,
            passages=list(passages),
            rows={passage.id: (row,) for row, passage in enumerate(passages)},
            columns=MetadataColumns(),
        )

    def apart(self) -> Self:
        """Return the same snapshot without anything that others, or searches, add to."""
        return self.holding(self.sparse.apart(), self.passages[: self.size])

    @property
    def vectors(self) -> Vectors | None:
        """The vectors by row, if there are any."""
        return None

    @property
    def size(self) -> int:
        """Number of rows, deleted ones included."""
        return self.sparse.size

    def row(self, id: object) -> int | None:
        """Return the row of the passage with that id; None if there is none."""
        alive = self.sparse.alive
        for row in reversed(self.rows.get(id, ())):  # type: ignore[call-overload]
            if row < self.size and self.passages[row].id == id:
                return row if alive is None or alive[row] else None
        return None

    def extended(self, passages: Sequence[Passage]) -> Self:
        """Return a snapshot with `passages` in new rows, in place of those with their ids."""
        documents = [self.sparse.vocabulary.learn(passage.text) for passage in passages]
        former = [row for p in passages if (row := self.row(p.id)) is not None]
        sparse = self.sparse.without(np.array(former, np.intp)).extended(documents)
        del self.passages[self.size :]  # left by an interrupted attempt
        self.passages.extend(passages)
        for row, passage in enumerate(passages, self.size):
            self.rows[passage.id] = (*self.rows.get(passage.id, ()), row)
        return replace(self, sparse=sparse)

    def without(self, rows: Sequence[int]) -> Self:
        """Return a snapshot with rows deleted."""
        return replace(self, sparse=self.sparse.without(np.array(rows, np.intp)))

    def compacted(self) -> Self:
        """Return a snapshot of the rows that are not deleted and of their words, in order."""
        alive, sparse = self.sparse.alive, self.sparse.compacted()
        if alive is None:
            return self if sparse is self.sparse else replace(self, sparse=sparse)
        return self.holding(sparse, [self.passages[row] for row in self.alive_rows])

    def allowed(self, where: Where) -> Bools | None:
        """Return the rows that are alive and pass the filter; None if all do."""
        return self.columns.allowed(where, self.passages, self.size, self.sparse.alive)

    def ranked(self, found: Found) -> list[tuple[Passage, float]]:
        """Return the passages of rows and their scores, best first, ties by row."""
        rows, scores = found
        best = np.lexsort((rows, -scores))
        return [(self.passages[rows[at]], float(scores[at])) for at in best]

    @cached_property
    def alive_rows(self) -> Sequence[int]:
        """Rows that are not deleted, ascending."""
        alive = self.sparse.alive
        return range(self.size) if alive is None else alive.nonzero()[0].tolist()


@dataclass(frozen=True, kw_only=True)
class HybridSnapshot(PassageSnapshot):
    """Passages and both legs.

    Attributes
    ----------
    dense
        The dense leg.
    """

    dense: DenseSnapshot

    @property
    def vectors(self) -> Vectors:
        """The vectors by row."""
        return self.dense.vectors

    def apart(self) -> HybridSnapshot:
        """Return the same snapshot without anything that others, or searches, add to."""
        return replace(super().apart(), dense=self.dense.apart())

    def compacted(self) -> HybridSnapshot:
        """Return a snapshot of the rows that are not deleted and of their words, in order."""
        alive, kept = self.sparse.alive, super().compacted()
        return kept if alive is None else replace(kept, dense=self.dense.compacted(alive))


def pools(
    snapshot: HybridSnapshot, queries: Sequence[Query], depth: int, allowed: Bools | None
) -> Iterator[Pool]:
    """Yield for each query what either leg finds, scored by both.

    Parameters
    ----------
    snapshot
        What is searched.
    queries
        With vectors.
    depth
        Rows that each leg fetches, at least 1.
    allowed
        Rows that may be found, shape (rows,), no deleted ones; None: all.

    Raises
    ------
    ValueError
        If a text is not a string, or a vector does not fit.
    """
    if snapshot.size == 0 or (allowed is not None and not allowed.any()):
        for query in queries:
            yield Pool((), NOTHING, NOTHING, query=query.text.strip())
        return
    scan = snapshot.dense.scan(allowed)
    for start in range(0, len(queries), BLOCK):
        block = queries[start : start + BLOCK]
        units = [snapshot.dense.unit(query.vector) for query in block]
        vectors = units[0][None] if len(units) == 1 else np.array(units)  # which takes longer
        words = [SparseQuery(snapshot.sparse, query.text) for query in block]
        if scan is not None:
            found = pools_by_kernels(words, depth, allowed, scan, vectors)
        else:
            dense_hits = snapshot.dense.top_k(vectors, depth, allowed)
            sparse_hits = sparse_top_k(words, depth, allowed)
            legs = zip(vectors, words, dense_hits, sparse_hits, strict=True)
            found = [_scored(snapshot, *each) for each in legs]
        for query, (rows, dense, sparse) in zip(block, found, strict=True):
            nearest = float(dense[dense.argmax()]) if snapshot.dense.metric == "cosine" else None
            passages = RowPassages(snapshot.passages, rows.tolist())
            yield Pool(passages, dense, sparse, nearest=nearest, query=query.text.strip())


class RowPassages(Sequence[Passage]):
    """The passages of some rows. Of a pool a few are looked at, and the others left in memory."""

    def __init__(self, passages: list[Passage], rows: list[int]) -> None:
        self._passages, self._rows = passages, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: Any) -> Any:
        """Return the passage at a place, or those of a slice."""
        if isinstance(at, slice):
            return [self._passages[row] for row in self._rows[at]]
        return self._passages[self._rows[at]]


def _scored(
    snapshot: HybridSnapshot,
    vector: Vectors,
    words: SparseQuery,
    dense_hits: Found,
    sparse_hits: Found,
) -> tuple[Rows, Scores, Scores]:
    """Return the rows that either leg found, ascending, and both scores of each."""
    rows = distinct(np.concatenate([dense_hits[0], sparse_hits[0]]))
    return rows, snapshot.dense.scores_of_rows(vector, rows), words.scores_of_rows(rows)
