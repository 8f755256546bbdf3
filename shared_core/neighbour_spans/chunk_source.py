"""Where neighbours come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shared_core.neighbour_spans.chunks import Chunk, Neighbourhood


class ChunkSource(Protocol):
    """Finds the neighbours of chunks.

    It is called once for all seeds of a query, so that a store behind it can answer in batches. A
    source with embeddings has another method, ``continuity(pairs)``, like `PassageNeighbours` of
    `shared_core.neighbour_spans.neighbours`. It is called once, with all pairs of adjacent chunks
    that `around` returned; there may be none. It returns a list with the cosine in [-1, 1] of each
    pair, or None where unknown; instead of the list, None if there are no embeddings.
    """

    def around(self, seeds: Sequence[Chunk], window: int) -> Sequence[Neighbourhood]:
        """Return up to `window` neighbours on each side of each seed.

        Parameters
        ----------
        seeds
            Chunks of the caller. The source identifies them by id, or by document and number.
        window
            At least 1.

        Returns
        -------
        sequence of Neighbourhood
            One per seed, in their order. A chunk that does not exist ends its side as
            ``"missing"``, is never skipped and raises nothing; so does a loop of links. An unknown
            seed is returned unchanged, without neighbours.
        """
        ...
