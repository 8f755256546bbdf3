"""Chunks that follow each other, put together into one text without repeating what overlaps."""

from __future__ import annotations

from collections.abc import Sequence

from shared_core.expansion.chunks import Chunk

SHORTEST_OVERLAP = 5
"""Characters from which equal text at a seam counts as an overlap where offsets do not tell; what
other lengths get wrong, ``python -m tests.benchmarks.expansion --seams`` prints."""

LONGEST_INDENT = 24
"""Columns up to which a gap between offsets is taken for line breaks and an indent."""


def stitch(chunks: Sequence[Chunk]) -> str:
    """Return the text of chunks that follow each other in one document.

    Where offsets tell that two chunks overlap, and the texts bear them out, the overlap stands
    there once. Where offsets are not known, or contradict the texts, the longest end of the one
    that is the beginning of the other, of 5 characters or more, is taken for the overlap that a
    text splitter leaves: shorter ones come about by chance. Chunks that do not overlap are joined
    by white space, made up as splitters strip it: one line break where the number of characters
    is not known; else one where it is odd and a blank line where it is even, as indents are even,
    and the rest an indent of up to 24 columns; and a blank line for more, which was not white
    space alone.
    ``python -m tests.benchmarks.expansion --seams`` prints how often that is what stood there.

    Parameters
    ----------
    chunks
        In the order of the document. Empty texts leave no trace.
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
        elif overlap is not None and _borne_out(text, chunk.text, overlap):
            text += chunk.text[overlap:]
            end = max(end, chunk.end)  # type: ignore[type-var]
        else:
            overlap = common(text, chunk.text)
            text += chunk.text[overlap:] if overlap else "\n" + chunk.text
            end = chunk.end
    return text


def _gap(gap: int) -> str:
    if not gap:
        return ""
    breaks = 1 if gap % 2 else 2
    indent = gap - breaks
    return "\n" * breaks + " " * indent if indent <= LONGEST_INDENT else "\n\n"


def _borne_out(text: str, following: str, overlap: int) -> bool:
    """Whether `following` begins so many characters before the end of `text`."""
    return overlap <= len(text) and text.startswith(following[:overlap], len(text) - overlap)


def common(text: str, following: str) -> int:
    """Return the length of the longest end of `text` that `following` begins with, if decent.

    Parameters
    ----------
    text, following
        Texts that follow each other.

    Returns
    -------
    int
        Characters in common; 0 below `SHORTEST_OVERLAP`.
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
