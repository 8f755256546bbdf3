"""Helpers for messages: counted nouns, shortened texts, visible control characters."""

from __future__ import annotations

import re

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number and its noun, as ``1 question`` or ``1,200 questions``.

    Parameters
    ----------
    count
        The number.
    one, many
        The noun for one, and for any other number; by default `one` with an s.
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def is_or_are(count: int) -> str:
    """Return the verb for `counted`."""
    return "is" if count == 1 else "are"


def shortened(text: str, most: int) -> str:
    """Return a text cut to at most `most` characters, ending in ... if it was longer."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def visible(text: str) -> str:
    r"""Return a text with its control characters written out, as ``\x1b``.

    These are C0 and C1 except tab and line feed, and lone surrogates, which cannot be encoded. Text
    from a file, a model or a server can then not move the cursor or set colours.
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Return a text as one line, with its control characters written out."""
    return visible(" ".join(text.splitlines()))
