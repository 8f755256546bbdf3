"""Models for ``posrag compare``, named as module:attribute."""

from __future__ import annotations

from collections.abc import Sequence

from tests.cli.interrupting import count
from tests.core.comparison.making import last, shown

__all__ = ["last"]


def interrupted(prompts: Sequence[str]) -> list[str]:
    """Answer like `last`, count the prompts in a file, and be interrupted or killed after some."""
    count(prompts)
    return last(prompts)


def picky(prompts: Sequence[str]) -> list[str]:
    """Refuse the question on thing 2."""
    if any(shown(prompt)[0] == 2 for prompt in prompts):
        raise RuntimeError("refused")
    return last(prompts)


def shortest_last(question: str, texts: Sequence[str]) -> list[float]:
    """Rank texts by their lengths."""
    return [float(len(text)) for text in texts]


class Scoring:
    """Answers like `last`; a code that ends in x1 is what it is distracted by."""

    name = "scoring"

    def generate(self, prompts: Sequence[str]) -> list[str]:
        return last(prompts)

    def log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> list[list[float]]:
        return [[-3.0 if shown(prompt)[1][0].endswith("x1") else -0.1] for prompt in prompts]


scoring = Scoring()


def broken(prompts: Sequence[str]) -> list[str]:
    """Raise what a model's own code may raise."""
    raise RuntimeError("the weights are gone")
