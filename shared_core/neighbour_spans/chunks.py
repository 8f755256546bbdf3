"""Chunks, seeds and neighbourhoods: plain data without rules."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

End: TypeAlias = Literal["more", "document", "missing"]
"""What lies beyond the last chunk of a side: more chunks, the edge of the document, or a missing
chunk. It is "missing" also if it is not known whether the document ends."""


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

    Raises
    ------
    ValueError
        If the id is empty, number or start is not an integer, or start is negative.
    """

    id: str
    text: str
    document: str
    number: int | None = None
    start: int | None = None
    heading: tuple[str, ...] | None = None
    source: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise ValueError(
                f"the id of a chunk must be a string that is not empty, got {self.id!r}"
            )
        if type(self.number) is not int and self.number is not None:
            object.__setattr__(self, "number", _integer(self.number, self.id, "number"))
        if type(self.start) is not int and self.start is not None:
            object.__setattr__(self, "start", _integer(self.start, self.id, "start"))
        if self.start is not None and self.start < 0:
            raise ValueError(f"start of chunk {self.id!r} must be >= 0, got {self.start}")

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
    before_end, after_end
        What lies beyond; ``"more"`` if as many chunks were found as asked for.
    section_size
        Number of chunks under the seed's heading, if known.
    """

    seed: Chunk
    before: tuple[Chunk, ...] = ()
    after: tuple[Chunk, ...] = ()
    before_end: End = "missing"
    after_end: End = "missing"
    section_size: int | None = None

    @property
    def run(self) -> tuple[Chunk, ...]:
        """All chunks in document order; the seed is at ``len(self.before)``."""
        return (*self.before, self.seed, *self.after)


def _integer(value: object, id: str, name: str) -> int:
    if isinstance(value, np.integer):
        return int(value)
    raise ValueError(
        f"{name} of chunk {id!r} must be an integer, got {value!r}: convert it, or number the "
        "chunks of each document in order"
    )
