"""Models for ``posrag compare``, named as module:attribute."""

from __future__ import annotations

from collections.abc import Sequence

from tests.cli.interrupting import count
from tests.core.comparison.making import last

__all__ = ["last"]


def interrupted(prompts: Sequence[str]) -> list[str]:
    """Answer like `last`, count the prompts in a file, and be interrupted or killed after some."""
    count(prompts)
    return last(prompts)


def shortest_last(question: str, texts: Sequence[str]) -> list[float]:
    """Rank texts by their lengths."""
    return [float(len(text)) for text in texts]


def broken(prompts: Sequence[str]) -> list[str]:
    """Raise what a model's own code may raise."""
    raise RuntimeError("the weights are gone")
