"""Chunks, seeds and their neighbourhoods, and the text of consecutive chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

SHORTEST_OVERLAP = 5
"""Characters from which equal text at a seam counts as an overlap if offsets are unknown;
``python -m benchmarks.expansion --seams`` prints the errors of other lengths."""

LONGEST_INDENT = 24
"""Columns up to which a gap between offsets is taken for line breaks and an indent."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document.

    Attributes
    ----------
    id
        Unique within its source, not empty.
    text
        The text that is stitched; may be empty.
    document
        Id of its document.
    number
        Its place in the document, an integer: the neighbours are one lower and one higher. None
        if they are known otherwise, as by links.
    start
        Offset of its first character in the document, if known.
    heading
        Headings above it, outermost first; ``()`` before the first one, None if unknown.
    source
        The framework's object, passed along unchanged and never compared.
    """

    id: str
    text: str
    document: str
    number: int | None = None
    start: int | None = None
    heading: tuple[str, ...] | None = None
    source: Any = field(default=None, compare=False, repr=False)

    @property
    def place(self) -> tuple[str, float]:
        """Its document, and its number or else its start there; infinite if neither is known."""
        known = self.start if self.number is None else self.number
        return self.document, math.inf if known is None else known

    @property
    def end(self) -> int | None:
        """Offset just after its last character in the document, if known."""
        return None if self.start is None else self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Seed:
    """A retrieved chunk and its score.

    Attributes
    ----------
    chunk
        The chunk.
    score
        Finite, higher is better, on any scale; may be negative.

    Raises
    ------
    ValueError
        If the score is not finite.
    """

    chunk: Chunk
    score: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", float(self.score))
        if not math.isfinite(self.score):
            raise ValueError(f"the score of {self.chunk.id!r} must be finite, got {self.score}")


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The chunks around a seed, as many as a source was asked for.

    Attributes
    ----------
    seed
        The seed's chunk as it is in the source.
    before, after
        Its neighbours without a gap, in document order: the last of `before` and the first of
        `after` are next to the seed.
    """

    seed: Chunk
    before: tuple[Chunk, ...] = ()
    after: tuple[Chunk, ...] = ()

    @property
    def run(self) -> tuple[Chunk, ...]:
        """All chunks in document order; the seed is at ``len(self.before)``."""
        return (*self.before, self.seed, *self.after)


@runtime_checkable
class ChunkSource(Protocol):
    """Finds the neighbours of chunks.

    It is called once for all seeds of a query, so that a store behind it can answer in batches. A
    source with embeddings has another method, ``continuity(pairs)``, like `PassageNeighbours`. It
    is called once, with all pairs of adjacent chunks that `around` returned; there may be none. It
    returns a list with the cosine in [-1, 1] of each pair, or None where unknown; instead of the
    list, None if there are no embeddings.
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
            One per seed, in their order. A chunk that does not exist ends its side, is never
            skipped and raises nothing; so does a loop of links. An unknown seed is returned
            unchanged, without neighbours.
        """
        ...


def stitch(chunks: Sequence[Chunk]) -> str:
    """Return the text of consecutive chunks of one document.

    If two chunks overlap according to their offsets, and the texts agree, the overlap occurs once.
    If offsets are unknown or contradict the texts, the longest end of the first text that begins
    the second is taken for an overlap made by the splitter, from 5 characters: shorter ones occur
    by chance.

    Chunks that do not overlap are joined by white space, a guess at what the splitter stripped. If
    its length is unknown, it is a line break. If the length is odd, it is a line break and an
    indent; if even, a blank line and an indent, because indents are even. With an indent of more
    than 24 columns it was not white space alone, and a blank line takes its place.
    ``python -m benchmarks.expansion --seams`` prints how often the guess is right.

    Parameters
    ----------
    chunks
        In document order. Empty texts are ignored.
    """
    text, end = "", None
    for chunk in chunks:
        if not chunk.text:
            continue
        overlap = None if end is None or chunk.start is None else end - chunk.start
        if not text:
            text, end = chunk.text, chunk.end
        elif overlap is not None and overlap <= 0:
            text += _gap(-overlap) + chunk.text
            end = chunk.end
        elif overlap is not None and _overlaps_by(text, chunk.text, overlap):
            text += chunk.text[overlap:]
            end = max(end, chunk.end)  # type: ignore[type-var]
        else:
            overlap = overlap_length(text, chunk.text)
            text += chunk.text[overlap:] if overlap else "\n" + chunk.text
            end = chunk.end
    return text


def _gap(gap: int) -> str:
    if not gap:
        return ""
    breaks = 1 if gap % 2 else 2
    indent = gap - breaks
    return "\n" * breaks + " " * indent if indent <= LONGEST_INDENT else "\n\n"


def _overlaps_by(text: str, following: str, overlap: int) -> bool:
    """Return whether `following` begins `overlap` characters before the end of `text`."""
    return overlap <= len(text) and text.startswith(following[:overlap], len(text) - overlap)


def overlap_length(text: str, following: str) -> int:
    """Return the length of the longest end of `text` with which `following` begins.

    Parameters
    ----------
    text, following
        Consecutive texts.

    Returns
    -------
    int
        Number of characters; 0 below `SHORTEST_OVERLAP`.
    """
    opening = following[:SHORTEST_OVERLAP]
    if len(opening) < SHORTEST_OVERLAP:
        return 0
    at = text.find(opening, max(0, len(text) - len(following)))
    while at >= 0:
        if following.startswith(text[at:]):
            return len(text) - at
        at = text.find(opening, at + 1)
    return 0
