"""Passages with their neighbours: the pipelines whose name ends in ``+spans``."""

from __future__ import annotations

from collections.abc import Sequence

from shared_core.comparison.ranked import RankedPassages
from shared_core.expansion import Chunk, ChunkTable, NeighbourSpans, Seed, Span
from shared_core.types import Passage

SPANNED = "+spans"

MEMBERS = SPANNED
"""Under which the metadata of a span name its passages."""


def chunks_of(passages: Sequence[Passage]) -> ChunkTable:
    """Return a collection as chunks that know their neighbours.

    Raises
    ------
    ValueError
        If a passage does not say where in which document it stands.
    """
    return ChunkTable(map(_chunk, passages))


def as_spans(ranked: RankedPassages, chunks: ChunkTable) -> RankedPassages:
    """Return ranked passages as spans with their neighbours, the best span first.

    A span has the ids of its passages, joined by ``+``, and names them in its metadata. Its score
    is the one by which spans are ranked.
    """
    found = chunks.get(passage.id for passage in ranked.passages)
    seeds = [Seed(chunk, len(ranked.passages) - rank) for rank, chunk in enumerate(found)]
    spans = NeighbourSpans(token_budget=None).expand(seeds, chunks).spans
    return RankedPassages(
        passages=tuple(map(_passage, spans)), scores=tuple(span.score.total for span in spans)
    )


def members(passage: Passage) -> Sequence[str]:
    """Return the ids of the passages that a span is made of; of any other its own."""
    found: Sequence[str] = passage.metadata.get(MEMBERS, (passage.id,))
    return found


def _passage(span: Span) -> Passage:
    ids = [chunk.id for chunk in span.chunks]
    return Passage("+".join(ids), span.text, {MEMBERS: ids})


def _chunk(passage: Passage) -> Chunk:
    document, number = passage.metadata.get("document"), passage.metadata.get("number")
    if document is None or number is None:
        raise ValueError(
            f"{SPANNED} needs document and number of every passage, its place in its document; "
            f"passage {passage.id!r} has {dict(passage.metadata)}"
        )
    return Chunk(passage.id, passage.text, str(document), number)
