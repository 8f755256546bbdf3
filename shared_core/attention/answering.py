"""What a method is asked and what it returns, and the steps shared by those on a local model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from shared_core.generation.hugging_face import HuggingFaceModel


@dataclass(frozen=True, kw_only=True)
class Case:
    """A question and the documents to answer it with, in the order of the first prompt."""

    question: str
    documents: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class PlacedAnswer:
    """An answer, and how its documents were placed.

    Attributes
    ----------
    answer
        The final answer.
    first_answer
        That of the first round.
    order
        Slot -> document.
    scores
        Relevance of each document, by document; higher is better. For a method that only ranks
        them: n for the first of n, down to 1 for the last.
    rounds
        How often the model was asked; 1 where the first answer is the final one.
    """

    answer: str
    first_answer: str
    order: tuple[int, ...]
    scores: tuple[float, ...]
    rounds: int


class AnsweringMethod(Protocol):
    """Anything that answers cases, and reports how the documents were placed."""

    def run(
        self,
        model: HuggingFaceModel,
        cases: Sequence[Case],
        *,
        on_answer: Callable[[int], None] | None = None,
    ) -> Sequence[PlacedAnswer]:
        """Return one answer per case, in order.

        `on_answer` is called with the number of cases that have just received their final answer.
        """
        ...


A = TypeVar("A", bound=PlacedAnswer)


def in_batches(
    answer: Callable[[HuggingFaceModel, Sequence[Case]], list[A]],
    model: HuggingFaceModel,
    cases: Sequence[Case],
    on_answer: Callable[[int], None] | None,
) -> list[A]:
    """Answer cases in batches as large as the model takes, and report each batch."""
    found: list[A] = []
    for start in range(0, len(cases), model.batch_size):
        batch = cases[start : start + model.batch_size]
        found += answer(model, batch)
        if on_answer is not None:
            on_answer(len(batch))
    return found


def second_round(
    model: HuggingFaceModel, firsts: Sequence[A], prompts: Mapping[int, str]
) -> list[A]:
    """Ask again where there is a second prompt; `prompts` are by index of `firsts`."""
    answers = dict(zip(prompts, model.generate([*prompts.values()]), strict=True))
    return [
        replace(first, answer=answers[at], rounds=2) if at in answers else first
        for at, first in enumerate(firsts)
    ]
