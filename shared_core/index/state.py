"""Immutable states of an index of passages, without and with vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from shared_core.arrays import Bools, Vectors
from shared_core.index.dense import DenseSnapshot
from shared_core.index.metadata import MetadataColumns, Where
from shared_core.index.sparse.view import SparseView
from shared_core.neighbour_spans.place_table import Places
from shared_core.types import Passage


@dataclass(frozen=True, kw_only=True)
class PassageState:
    """Passages and the sparse leg, row by row.

    Data shared between states is only ever appended to, and each state looks at its own rows alone,
    so a reader of one state is not affected by a writer that prepares the next.

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
    places
        Where the passages are in their documents. Shared.
    """

    sparse: SparseView
    passages: list[Passage] = field(default_factory=list)
    rows: dict[str, tuple[int, ...]] = field(default_factory=dict)
    columns: MetadataColumns = field(default_factory=MetadataColumns)
    places: Places = field(default_factory=Places)

    def holding(self, sparse: SparseView, passages: Sequence[Passage]) -> Self:
        """Return a state of these passages, which shares nothing with others."""
        rows: dict[str, tuple[int, ...]] = {p.id: (row,) for row, p in enumerate(passages)}
        return replace(
            self,
            sparse=sparse,
            passages=list(passages),
            rows=rows,
            columns=MetadataColumns(),
            places=Places(),
        )

    def apart(self) -> Self:
        """Return the same state without anything that other states, or searches, add to."""
        return self.holding(self.sparse.apart(), self.passages[: self.size])

    @property
    def embeddings(self) -> tuple[Vectors | None, bool]:
        """The vectors by row, if there are any, and whether they are known to be of unit length."""
        return None, False

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
        """Return a state with `passages` in new rows, in place of those with their ids."""
        documents = [self.sparse.lexicon.learn(passage.text) for passage in passages]
        former = [row for p in passages if (row := self.row(p.id)) is not None]
        sparse = self.sparse.without(np.array(former, np.intp)).extended(documents)
        del self.passages[self.size :]  # left by an interrupted attempt
        self.passages.extend(passages)
        for row, passage in enumerate(passages, self.size):
            self.rows[passage.id] = (*self.rows.get(passage.id, ()), row)
        return replace(self, sparse=sparse)

    def without(self, rows: Sequence[int]) -> Self:
        """Return a state with rows deleted."""
        return replace(self, sparse=self.sparse.without(np.array(rows, np.intp)))

    def compacted(self) -> Self:
        """Return a state of the rows that are not deleted and of their words, in order."""
        alive, sparse = self.sparse.alive, self.sparse.compacted()
        if alive is None:
            return self if sparse is self.sparse else replace(self, sparse=sparse)
        return self.holding(sparse, [self.passages[row] for row in self.alive_rows])

    def allowed(self, where: Where) -> Bools | None:
        """Return the rows that are alive and pass the filter; None if all do."""
        return self.columns.allowed(where, self.passages, self.size, self.sparse.alive)

    @cached_property
    def alive_rows(self) -> Sequence[int]:
        """Rows that are not deleted, ascending."""
        alive = self.sparse.alive
        return range(self.size) if alive is None else alive.nonzero()[0].tolist()


@dataclass(frozen=True, kw_only=True)
class State(PassageState):
    """Passages and both legs.

    Attributes
    ----------
    dense
        The dense leg.
    """

    dense: DenseSnapshot

    @classmethod
    def of(cls, dense: DenseSnapshot, sparse: SparseView, passages: Sequence[Passage]) -> State:
        """Return a state that shares nothing with others."""
        return cls(dense=dense, sparse=sparse).holding(sparse, passages)

    @property
    def embeddings(self) -> tuple[Vectors, bool]:
        """The vectors by row, and whether they are known to be of unit length."""
        return self.dense.vectors, self.dense.metric == "cosine"

    def apart(self) -> State:
        """Return the same state without anything that other states, or searches, add to."""
        return replace(super().apart(), dense=self.dense.apart())

    def compacted(self) -> State:
        """Return a state of the rows that are not deleted and of their words, in order."""
        alive, kept = self.sparse.alive, super().compacted()
        return kept if alive is None else replace(kept, dense=self.dense.compacted(alive))
