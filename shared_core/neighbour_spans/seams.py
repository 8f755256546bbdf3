"""Whether the texts of chunks bear out that they follow each other in one text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from shared_core.neighbour_spans.chunks import Chunk
from shared_core.neighbour_spans.stitch import (
    LONGEST_INDENT,
    SHORTEST_OVERLAP,
    overlap_length,
    stitch,
)

MOST_STRIPPED = 100
"""Most characters that a splitter is taken to have stripped between two chunks; a wider gap means
that a chunk is missing."""

MOST_STRIPPED_AMONG_LOST = LONGEST_INDENT + 2
"""The same where a document has chunks of unknown start, one of which may lie in the gap."""


def begins(one: Chunk, other: Chunk) -> bool:
    """Return whether one of two chunks begins the other, as a line that a splitter repeats."""
    return one.text.startswith(other.text) or other.text.startswith(one.text)


def continues(one: Chunk, other: Chunk) -> bool:
    """Return whether a chunk has the same text as one that starts earlier where they overlap."""
    rest = one.text[(other.start or 0) - (one.start or 0) :]
    return rest[: len(other.text)] == other.text[: len(rest)]


def fills(chunks: Sequence[Chunk]) -> bool:
    """Return whether chunks are as long as the text from the start of the first to their end.

    They may be shorter by the white space that splitters strip between them, and by a character
    for each line break within one, as `CharacterTextSplitter` drops blank lines. They may be longer
    by overlaps too short to be noticed.
    """
    seams = len(chunks) - 1
    ends = [chunk.end for chunk in chunks if chunk.end is not None]
    shorter = max(ends) - (chunks[0].start or 0) - len(stitch(chunks))
    breaks = sum(chunk.text.count("\n") for chunk in chunks if chunk.start is None)
    return -SHORTEST_OVERLAP * seams <= shorter <= MOST_STRIPPED_AMONG_LOST * seams + breaks


def first_apart(chunks: Sequence[Chunk]) -> Chunk | None:
    """Return the first chunk that does not overlap the one before it; None if all do."""
    apart = (b for a, b in pairwise(chunks) if not overlap_length(a.text, b.text))
    return next(apart, None)
