"""One immutable state of a hybrid index."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from shared_core.arrays import Bools
from shared_core.index.dense import DenseView
from shared_core.index.metadata import MetadataColumns, Where
from shared_core.index.sparse_view import SparseView
from shared_core.types import Passage


@dataclass(frozen=True)
class State:
    """One immutable state of an index: its two legs and the passages, row by row."""

    dense: DenseView
    sparse: SparseView
    passages: list[Passage] = field(default_factory=list)
    """Shared between states and only ever appended to; a state sees its first `size`."""

    @property
    def size(self) -> int:
        """Number of rows, deleted ones included."""
        return self.sparse.size

    @cached_property
    def columns(self) -> MetadataColumns:
        """Metadata by key, for filters."""
        return MetadataColumns(self.passages, self.size)

    def allowed(self, where: Where) -> Bools | None:
        """Return the rows that are alive and pass the filter; None if all do."""
        passing, alive = self.columns.allowed(where), self.sparse.alive
        if passing is None or alive is None:
            return alive if passing is None else passing
        return passing & alive

    def alive_rows(self) -> list[int]:
        """Return the rows that are not deleted, ascending."""
        alive = self.sparse.alive
        return list(range(self.size)) if alive is None else alive.nonzero()[0].tolist()
