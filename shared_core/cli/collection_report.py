"""What a collection holds, line by line, and what to do if something is amiss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

LINES = {
    "passages": "{:,}",
    "mean_length": "{:,.1f} words a passage",
    "words": "{:,} different ones",
    "dim": "vectors of dimension {}",
    "metric": "{}",
    "dense": "{}",
    "k1": "{}",
    "b": "{}",
}
"""What is shown of `CollectionEngine.describe`, where it is there, and how."""


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each number and option."""
    for name, line in LINES.items():
        if name in found:
            yield f"  {name.replace('_', ' '):<12} {line.format(found[name])}"


def advice(found: Mapping[str, Any]) -> str:
    """Return what is amiss and what to do about it; empty if nothing is."""
    if "amiss" in found:
        return f"{found['amiss']}. Scores are wrong: index the documents anew, by another name."
    return "" if found["passages"] else "it is empty: posrag index fills it."
