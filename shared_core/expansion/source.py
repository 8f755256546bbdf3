"""Where neighbours come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from shared_core.arrays import Vectors
from shared_core.expansion.chunks import Chunk, Neighbourhood


class ChunkSource(Protocol):
    """Anything that knows which chunks stand next to which.

    Asked once for all seeds of a query, so that a store behind it can answer in batches. What
    more it knows it tells by the methods of `EmbeddedChunkSource` and `WholeTextSource`.
    """

    def around(self, seeds: Sequence[Chunk], window: int) -> Sequence[Neighbourhood]:
        """Return up to `window` neighbours on each side of each seed.

        Parameters
        ----------
        seeds
            Chunks as the caller has them. The source reads of them what it knows them by: the
            id, or document and number.
        window
            At least 1.

        Returns
        -------
        sequence of Neighbourhood
            One a seed, in their order. A chunk that is not there ends its side as ``"missing"``,
            never skipped and never raised; so does a loop of links. A seed that the source does
            not know comes back as it was given, without neighbours.
        """
        ...


class EmbeddedChunkSource(ChunkSource, Protocol):
    """A source that knows the embeddings of its chunks."""

    def continuity(self, pairs: Sequence[tuple[Chunk, Chunk]]) -> Sequence[float | None]:
        """Return the cosine of the embeddings of each pair, in [-1, 1]; None where unknown.

        Parameters
        ----------
        pairs
            Chunks that `around` returned, the second next after the first; all of a query at once.
        """
        ...


class WholeTextSource(ChunkSource, Protocol):
    """A source that has its documents at hand, so that spans keep what splitters strip."""

    def text_between(self, document: str, start: int, end: int) -> str | None:
        """Return the text of a document between two offsets; None where it is not known."""
        ...


def cosines(first: Vectors, second: Vectors, *, unit: bool = False) -> list[float]:
    """Return the cosine of each row of two matrices, both of shape (n, dim); 0 for a zero row.

    With `unit` the rows are known to be of unit length, or zero, and are taken as they are.
    """
    found = np.vecdot(first, second)
    if not unit:
        lengths = np.sqrt(np.vecdot(first, first)) * np.sqrt(np.vecdot(second, second))
        found = np.divide(found, lengths, out=np.zeros_like(found), where=lengths > 0)
    return found.clip(-1, 1).tolist()  # type: ignore[no-any-return]
