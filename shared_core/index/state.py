"""One immutable state of a hybrid index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from shared_core.arrays import Bools
from shared_core.index.dense import DenseSnapshot
from shared_core.index.metadata import MetadataColumns, Where
from shared_core.index.neighbours.place_table import Places
from shared_core.index.sparse.view import SparseView
from shared_core.types import Passage


@dataclass(frozen=True)
class State:
    """The two legs and the passages, row by row.

    Data shared between states is only ever appended to, and each state looks at its own rows alone,
    so a reader of one state is not affected by a writer that prepares the next.

    Attributes
    ----------
    dense, sparse
        The legs.
    passages
        Row -> passage. Shared.
    rows
        Id -> the rows it has had, ascending. Shared.
    columns
        Metadata by key, for filters. Shared.
    places
        Where the passages are in their documents. Shared.
    """

    dense: DenseSnapshot
    sparse: SparseView
    passages: list[Passage] = field(default_factory=list)
    rows: dict[str, tuple[int, ...]] = field(default_factory=dict)
    columns: MetadataColumns = field(default_factory=MetadataColumns)
    places: Places = field(default_factory=Places)

    @classmethod
    def of(cls, dense: DenseSnapshot, sparse: SparseView, passages: Sequence[Passage]) -> State:
        """Return a state that shares nothing with others."""
        rows: dict[str, tuple[int, ...]] = {p.id: (row,) for row, p in enumerate(passages)}
        return cls(dense, sparse, list(passages), rows)

    def apart(self) -> State:
        """Return the same state without anything that other states, or searches, add to."""
        return State.of(self.dense.apart(), self.sparse.apart(), self.passages[: self.size])

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

    def extended(
        self, dense: DenseSnapshot, sparse: SparseView, passages: Sequence[Passage]
    ) -> State:
        """Return a state with `passages` in new rows, given its legs."""
        del self.passages[self.size :]  # left by an interrupted attempt
        self.passages.extend(passages)
        for row, passage in enumerate(passages, self.size):
            self.rows[passage.id] = (*self.rows.get(passage.id, ()), row)
        return replace(self, dense=dense, sparse=sparse)

    def without(self, sparse: SparseView) -> State:
        """Return a state with rows deleted, given its sparse leg."""
        return replace(self, sparse=sparse)

    def compacted(self) -> State:
        """Return a state of the rows that are not deleted and of their words, in order."""
        alive, sparse = self.sparse.alive, self.sparse.compacted()
        if alive is None:
            return self if sparse is self.sparse else replace(self, sparse=sparse)
        passages = [self.passages[row] for row in self.alive_rows]
        return State.of(self.dense.compacted(alive), sparse, passages)

    def allowed(self, where: Where) -> Bools | None:
        """Return the rows that are alive and pass the filter; None if all do."""
        return self.columns.allowed(where, self.passages, self.size, self.sparse.alive)

    @cached_property
    def alive_rows(self) -> Sequence[int]:
        """Rows that are not deleted, ascending."""
        alive = self.sparse.alive
        return range(self.size) if alive is None else alive.nonzero()[0].tolist()
