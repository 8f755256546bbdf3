"""Models whose behaviour by slot is known: they read the prompt and know where the value stands."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from shared_core.generation.templates import ABSTENTION
from shared_core.sensitivity import ProbeQuestion


def questions(n: int, k: int = 10, *, hard: bool = False) -> list[ProbeQuestion]:
    """Make questions whose passages say ``code of <number>: <value>``."""
    made = []
    for number in range(n):
        others = tuple(f"code of {number}x{other}: wrong{other}" for other in range(k - 1))
        made.append(
            ProbeQuestion(
                question=f"code of {number}",
                answers=(f"value{number}",),
                gold=f"code of {number}: value{number}",
                distractors=others,
                hard_distractor=f"code of {number}: decoy{number}" if hard else None,
            )
        )
    return made


class SlotReader:
    """Finds the asked passage, and reads it with the chance given for its slot.

    The chance is drawn by the question alone, so that a question read in one slot is read in
    every slot of the same or a higher chance: the outcomes of a question are correlated, as
    those of a real model are.
    """

    batch_size = 4

    def __init__(self, chances: Sequence[float], name: str = "slot-reader", seed: int = 0) -> None:
        self.name = name
        self.chances = chances
        self.seed = seed
        self.asked: list[str] = []

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """Answer with the value, or with nothing that helps."""
        self.asked += prompts
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: str) -> str:
        slot, value = self._found(prompt)
        return value if self._draw(prompt) < self.chances[slot] else ABSTENTION

    def _draw(self, prompt: str) -> float:
        question = prompt.rpartition("Question: ")[2]
        return random.Random(f"{self.seed} {question}").random()

    def _found(self, prompt: str) -> tuple[int, str]:
        context, _, rest = prompt.partition("Context:\n")[2].partition("\n\nQuestion: ")
        asked = rest.removesuffix("\nAnswer:")
        for slot, passage in enumerate(context.split("\n\n")):
            about, _, value = passage.partition(": ")
            if about == asked:
                return slot, value
        raise AssertionError(f"no passage about {asked!r} in {prompt!r}")


class ScoringReader(SlotReader):
    """Gives each of two tokens of any continuation the chance of the slot, if it is the value.

    An abstention has what the value leaves.
    """

    def log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> list[list[float]]:
        """Return two log-probabilities a continuation."""
        return [
            self._scores(prompt, continuation)
            for prompt, continuation in zip(prompts, continuations, strict=True)
        ]

    def _scores(self, prompt: str, continuation: str) -> list[float]:
        slot, value = self._found(prompt)
        chance = self.chances[slot]
        if continuation == f" {ABSTENTION}":
            return [math.log1p(-chance), 0.0]
        assert continuation == f" {value}"
        return [math.log(chance), math.log(chance)]
