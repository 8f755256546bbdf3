"""Token counts without a tokenizer."""

from __future__ import annotations

import math

BYTES_PER_TOKEN = 3.5
"""For English technical prose and Python; see `estimate_tokens`."""


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has: its UTF-8 bytes over 3.5, rounded up.

    Bytes, because the tokenizers of today's models work on them: a character beyond Latin script
    takes two to four bytes and about as many tokens as they suggest, where a count of characters
    falls short by a factor. ``python -m benchmarks.expansion --tokens`` prints how far off
    the estimate is; a budget that must hold needs the model's own tokenizer.

    Examples
    --------
    >>> estimate_tokens("Neighbours of a chunk"), estimate_tokens("")
    (6, 0)
    """
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return math.ceil(size / BYTES_PER_TOKEN)
