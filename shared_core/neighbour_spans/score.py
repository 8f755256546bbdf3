"""The score of a span: similarity, adjacency, continuity and the parent, weighted.

RetriVex: ``score = w0 * similarity + w1 * adjacency + w2 * continuity + w3 * parent``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from shared_core.neighbour_spans.chunks import Chunk, Seed
from shared_core.neighbour_spans.spans import SpanScore
from shared_core.neighbour_spans.sweep import Continuity, Window, headings_differ, section_openings

Weights = tuple[float, float, float, float]


def adjacency(places: Sequence[int], decay: float) -> float:
    """Return how close seeds are to each other: the sum over all pairs, over their number.

    ``sum(exp(-decay * abs(s - t)) for s in places for t in places) / len(places)``: 1 for one
    seed, and another at distance 1, 2, 3 adds 0.50, 0.25, 0.12 at a decay of 0.7. RetriVex sums
    over the neighbours as well, which are close by construction: there a span gains by every
    chunk, here only by hits that support each other. Less than ``1 / tanh(decay / 2)`` for any
    number of seeds.

    Parameters
    ----------
    places
        Places of the seeds in their document, ascending and distinct, at least one.
    decay
        Cost of a distance of 1, at least 0.
    """
    nearer = math.exp(-decay)
    to_earlier = pairs = 0.0
    for before, place in pairwise(places):
        to_earlier = (to_earlier + 1) * nearer ** (place - before)
        pairs += to_earlier
    return 1 + 2 * pairs / len(places)


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scores spans of one query.

    Attributes
    ----------
    weights, decay
        As in `NeighbourSpans`.
    continuity
        Cosine of two adjacent chunks; None: the source has no embeddings.
    opening
        Ids of chunks that are first in their section.
    section_sizes
        Seed id -> number of chunks in its section, where known.
    """

    weights: Weights
    decay: float
    continuity: Continuity | None
    opening: set[str]
    section_sizes: Mapping[str, int]

    @classmethod
    def of(
        cls,
        windows: Sequence[Window],
        weights: Weights,
        decay: float,
        continuity: Continuity | None,
    ) -> Scorer:
        """Return the scorer for the windows of a query."""
        opening: set[str] = set()
        sizes = {}
        for window in windows:
            around = window.neighbourhood
            opening |= section_openings(around.run, around.before_end)
            if around.section_size is not None:
                sizes[around.seed.id] = around.section_size
        return cls(weights, decay, continuity, opening, sizes)

    def __call__(self, chunks: Sequence[Chunk], seeds: Mapping[str, Seed]) -> SpanScore:
        """Score the span of these chunks.

        Parameters
        ----------
        chunks
            In document order.
        seeds
            Chunk id -> seed, for at least one of the chunks.
        """
        places = [place for place, chunk in enumerate(chunks) if chunk.id in seeds]
        best = max(places, key=lambda place: seeds[chunks[place].id].score)
        similarity = seeds[chunks[best].id].score
        near = adjacency(places, self.decay)
        flow, flow_from = self._flow(chunks)
        parent, parent_from = self._parent(chunks, best)
        parts = similarity, near, flow, parent
        total = sum(weight * part for weight, part in zip(self.weights, parts, strict=True))
        return SpanScore(total, *parts, flow_from, parent_from)

    def _flow(self, chunks: Sequence[Chunk]) -> tuple[float, str]:
        if self.continuity is None:
            return 0.0, "unknown: the source has no embeddings"
        if len(chunks) == 1:
            return 1.0, "one chunk"
        pairs = list(pairwise(chunks))
        known = [cosine for a, b in pairs if (cosine := self.continuity(a, b)) is not None]
        if not known:
            return 0.0, "unknown: the chunks have no embeddings"
        return sum(known) / len(known), f"{len(known)} of {len(pairs)} pairs of adjacent chunks"

    def _parent(self, chunks: Sequence[Chunk], best: int) -> tuple[float, str]:
        first, last = best, best
        while first > 0 and not headings_differ(chunks[first - 1], chunks[first]):
            first -= 1
        while last + 1 < len(chunks) and not headings_differ(chunks[last], chunks[last + 1]):
            last += 1
        if chunks[first].id in self.opening:
            return 1.0, "the first chunk of the section is there"
        size = self.section_sizes.get(chunks[best].id)
        if size is None:
            return 0.0, "unknown: neither the first chunk nor the size of its section is known"
        # A chunk with an unknown heading does not end a section, and does not count towards it.
        same = sum(chunk.heading == chunks[best].heading for chunk in chunks[first : last + 1])
        covered = min(same, size)
        return covered / size, f"{covered} of the {size} chunks of the section"
