"""What is put into sentences: numbers, and words of others."""

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


def shortened(text: str, most: int) -> str:
    """Return the beginning of a text, at most `most` characters, with ... where it goes on."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def visible(text: str) -> str:
    r"""Return a text with its control characters written out, as ``\x1b``.

    They are those of C0 and C1, but for tab and line feed, and halves of surrogate pairs, which
    cannot be written. What comes from a file, a model or a server so moves no cursor and sets no
    colour.
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Return a text in one line, with its control characters written out."""
    return visible(" ".join(text.splitlines()))
