"""Where neighbours come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shared_core.expansion.chunks import Chunk, Neighbourhood


class ChunkSource(Protocol):
    """Anything that knows which chunks stand next to which.

    Asked once for all seeds of a query, so that a store behind it can answer in batches. One that
    knows embeddings has a method ``continuity(pairs)`` beside, as `PassageNeighbours` of
    `shared_core.index.neighbours.source`: it is asked once for the pairs of chunks that `around`
    returned and that follow each other, which may be none, and returns the cosine of each in
    [-1, 1], None where unknown; or None in place of all if it has no embeddings.
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
