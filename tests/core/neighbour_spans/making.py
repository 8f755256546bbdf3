"""Documents cut into chunks, and where a span's text stands in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from shared_core import HybridIndex, Passage
from shared_core.index import Where
from shared_core.index.engine import neighbours_in
from shared_core.neighbour_spans import (
    Chunk,
    ChunkKeys,
    ChunkReader,
    ChunkSource,
    DocumentNeighbours,
    Expansion,
    Neighbourhood,
    PassageNeighbours,
    Seed,
    Span,
)


class ChunkGiven:
    """Reads of a passage the chunk that it was made of."""

    def chunk(self, passage: Passage) -> Chunk:
        chunk: Chunk = passage.source
        return chunk

    def links(self, passage: Passage) -> None:
        return None

    def document_of(self, passage: Passage) -> tuple[str, str]:
        return "document", passage.metadata["document"]


GIVEN = ChunkGiven()


def passages_of(chunks: Sequence[Chunk]) -> list[Passage]:
    return [Passage(c.id, c.text, {"document": c.document}, source=c) for c in chunks]


def neighbours_of(
    chunks: Sequence[Chunk], vectors: npt.ArrayLike | None = None
) -> PassageNeighbours:
    """Return chunks as a source of neighbours; with vectors it knows their continuity."""
    return PassageNeighbours(passages_of(chunks), GIVEN, vectors)


def index_of(passages: Sequence[Passage]) -> HybridIndex:
    index = HybridIndex()
    put(index, passages)
    return index


def put(index: HybridIndex, passages: Sequence[Passage]) -> None:
    """Add passages with vectors that do not matter."""
    index.add(passages, np.ones((len(passages), 8)))


def neighbours(
    index: HybridIndex, reader: ChunkReader | None = None, where: Where = None
) -> DocumentNeighbours:
    return neighbours_in(index, reader or ChunkKeys(), where)


def around(source: ChunkSource, seed: Passage, window: int = 99) -> Neighbourhood:
    (found,) = source.around([ChunkKeys().chunk(seed)], window)
    return found


def run_ids(found: Neighbourhood) -> list[str]:
    return [chunk.id for chunk in found.run]


def prose(words: int) -> str:
    """Return a text in which no stretch of ten characters occurs twice."""
    return " ".join(f"word{number:04}" for number in range(words))


def split(
    text: str,
    size: int = 100,
    *,
    overlap: int = 0,
    document: str = "d",
    headings: Sequence[tuple[str, ...] | None] = (),
    offsets: bool = True,
) -> list[Chunk]:
    """Return a text in chunks of `size` characters named ``d0, d1, ...``."""
    chunks = []
    for number, start in enumerate(range(0, max(1, len(text) - overlap), size - overlap)):
        chunks.append(
            Chunk(
                f"{document}{number}",
                text[start : start + size],
                document,
                number,
                start if offsets else None,
                headings[number] if headings else None,
            )
        )
    return chunks


def row(*texts: str, document: str = "d", **fields: object) -> list[Chunk]:
    """Return chunks of these texts, numbered from 0."""
    return [
        replace(Chunk(f"{document}{number}", text, document, number), **fields)  # type: ignore[arg-type]
        for number, text in enumerate(texts)
    ]


def distinct(count: int, words: int, document: str = "d") -> list[Chunk]:
    """Return chunks of so many words each, no word twice, without offsets."""
    texts = [" ".join(f"{document}{at}x{word}" for word in range(words)) for at in range(count)]
    return row(*texts, document=document)


def seeds(chunks: Sequence[Chunk], scores: dict[int, float]) -> list[Seed]:
    """Return seeds by the place of their chunk."""
    return [Seed(chunks[at], score) for at, score in scores.items()]


def ids(span: Span) -> list[str]:
    return [chunk.id for chunk in span.chunks]


def all_ids(expansion: Expansion) -> list[list[str]]:
    return [ids(span) for span in expansion.spans]


def words(text: str) -> int:
    """Count tokens for tests: words."""
    return len(text.split())
