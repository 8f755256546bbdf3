"""Passages with their neighbours: the pipelines whose name ends in ``+spans``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shared_core.comparison.questions import RankedCase
from shared_core.neighbour_spans import (
    ChunkKeys,
    NeighbourSpans,
    PassageNeighbours,
    Span,
    expand_passages,
)
from shared_core.neighbour_spans.budget import admit_chunks
from shared_core.placement import Place
from shared_core.tokens import estimate_tokens
from shared_core.types import Passage

SPANNED = "+spans"
"""Ends the name of such a pipeline; and the key under which a span's metadata name its passages."""

KEYS = ChunkKeys(document="document", number="number", source="document")
"""Where a passage of a comparison says what it is a part of."""


def neighbours_of(passages: Sequence[Passage]) -> PassageNeighbours:
    """Return the neighbours among the passages of a collection.

    Raises
    ------
    ValueError
        If a passage does not give its place in its document, or two have the same place.
    """
    places: dict[tuple[str, int], Passage] = {}
    for passage in passages:
        place = KEYS.numbered(passage, otherwise=False)
        if place is None:
            raise ValueError(
                f"{SPANNED} needs document and number of every passage, its place in its document; "
                f"passage {passage.id!r} has {dict(passage.metadata)}"
            )
        if (other := places.setdefault(place, passage)) is not passage:
            raise ValueError(
                f"{SPANNED} needs a different place for every passage; {other.id!r} and "
                f"{passage.id!r} are both number {place[1]} of document {place[0]!r}"
            )
    return PassageNeighbours.of(passages, KEYS)


def as_spans(case: RankedCase, neighbours: PassageNeighbours, method: NeighbourSpans) -> RankedCase:
    """Return a case whose passages are spans with their neighbours, the best span first.

    A span has the ids of its passages, joined by ``+``, and names them in its metadata. Its score
    is the one that spans are ranked by.
    """
    ranks = range(len(case.passages), 0, -1)
    scores = ranks if method.token_budget is None else case.relevance
    spans = expand_passages(case.passages, scores, method, KEYS, neighbours)[0].spans
    return replace(
        case,
        passages=tuple(map(_passage, spans)),
        scores=tuple(span.score.total for span in spans),
    )


def fitting(case: RankedCase, token_budget: int) -> RankedCase:
    """Return a case with the passages that fit into a budget, best first."""
    chunks = [*map(KEYS.chunk, case.passages)]
    kept, _ = admit_chunks(chunks, {}, lambda piece: estimate_tokens(piece[0].text), token_budget)
    return case.at(rank for rank, chunk in enumerate(chunks) if chunk.id in kept)


def members(passage: Passage) -> Sequence[str]:
    """Return the ids of the passages of a span; for any other passage, its own id."""
    found: Sequence[str] = passage.metadata.get(SPANNED, (passage.id,))
    return found


def _passage(span: Span) -> Passage:
    ids, (document, number) = [chunk.id for chunk in span.chunks], span.chunks[0].place
    return Passage("+".join(ids), span.text, {SPANNED: ids, "document": document, "number": number})


def places_of(passages: Sequence[Passage]) -> list[Place]:
    """Return document and number of each passage; one without them is its own document."""
    return [KEYS.chunk(passage).place for passage in passages]
