"""Joining consecutive chunks into one text without repeating overlaps."""

from __future__ import annotations

from collections.abc import Sequence

from shared_core.neighbour_spans.chunks import Chunk

SHORTEST_OVERLAP = 5
"""Characters from which equal text at a seam counts as an overlap if offsets are unknown;
``python -m benchmarks.expansion --seams`` prints the errors of other lengths."""

LONGEST_INDENT = 24
"""Columns up to which a gap between offsets is taken for line breaks and an indent."""


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
