"""Where neighbours come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shared_core.expansion.chunks import Chunk, Neighbourhood


class ChunkSource(Protocol):
    """Anything that knows which chunks stand next to which.

    Asked once for all seeds of a query, so that a store behind it can answer in batches. One that
    knows embeddings, too, is an `EmbeddedChunkSource`.
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
