"""The sentences of a text: where they are, and how some of them are marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

CharSpan: TypeAlias = tuple[int, int]
"""Half-open interval [start, end) of characters of a text."""

_SENTENCE_END = re.compile(
    # the lookbehind: match only at the first of a run of stops, or long runs take forever
    r"(?<![.!?])[.!?]+[\"')\]\u2019\u201d]*(?=\s)"
    r"|[\u3002\uff01\uff1f]+[\u2019\u201d\u300d\u300f]*"
    r"|[\r\n]+|\Z"
)


def sentence_spans(text: str) -> list[CharSpan]:
    """Return the sentences of a text as intervals of characters, without surrounding space.

    A sentence ends at a line break, after a full stop, question or exclamation mark followed by
    space, and after a CJK one. An abbreviation ends one too early, which only makes the evidence
    finer.
    """
    spans, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        part = text[start : end.end()]
        if part.strip():
            begin = start + len(part) - len(part.lstrip())
            spans.append((begin, start + len(part.rstrip())))
        start = end.end()
    return spans


def mark_spans(text: str, spans: Sequence[CharSpan], *, marks: tuple[str, str]) -> str:
    """Return a text with a mark before and after each of some parts.

    Parameters
    ----------
    text
        Text of a document.
    spans
        Intervals of characters, ascending and disjoint.
    marks
        What to insert before and after.

    Raises
    ------
    ValueError
        If a part is not within the text, or overlaps or precedes the previous one.
    """
    before, behind = marks
    pieces, at = [], 0
    for start, end in spans:
        if not at <= start <= end <= len(text):
            raise ValueError(
                f"spans must ascend within the {len(text)} characters, got [{start}, {end}) "
                f"after {at}"
            )
        pieces += [text[at:start], before, text[start:end], behind]
        at = end
    return "".join([*pieces, text[at:]])
