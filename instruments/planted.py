"""Rankings with planted hard distractors: what each passage is, and how it scored, is known."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from instruments.corpus import Key, Style, ask, keys, write
from instruments.words import VALUES
from shared_core.sensitivity import ProbeQuestion

Kind = Literal["gold", "hard", "weak"]

NEAR, FAR = (0.6, 1.0), (0.0, 0.5)
"""Scores of what shares the noun of the question, and of the others: uniform between the bounds."""


@dataclass(frozen=True)
class PlantedPassage:
    """A document, what it is to its question, and its score in the ranking."""

    text: str
    kind: Kind
    score: float


@dataclass(frozen=True)
class PlantedRanking:
    """A question, its answer, and documents with the best scored first."""

    question: str
    answer: str
    passages: tuple[PlantedPassage, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the documents, the best ranked first."""
        return tuple(each.text for each in self.passages)

    @property
    def scores(self) -> list[float]:
        """Return their scores, descending."""
        return [each.score for each in self.passages]

    @property
    def gold_rank(self) -> int:
        """Return the rank of the gold document, 0 being the best."""
        return [each.kind for each in self.passages].index("gold")

    @property
    def true_effects(self) -> list[float]:
        """Return 1 for the hard distractors, else 0."""
        return [float(each.kind == "hard") for each in self.passages]

    @property
    def relevant(self) -> tuple[bool, ...]:
        """Return whether each document is the gold one."""
        return tuple(each.kind == "gold" for each in self.passages)

    @property
    def probe_question(self) -> ProbeQuestion:
        """Return what a probe asks: the weak distractors are the context."""
        (gold,), (hard, *_) = self._of("gold"), self._of("hard")
        return ProbeQuestion(
            question=self.question,
            answers=(self.answer,),
            gold=gold,
            distractors=self._of("weak"),
            hard_distractor=hard,
        )

    def _of(self, kind: Kind) -> tuple[str, ...]:
        return tuple(each.text for each in self.passages if each.kind == kind)


def planted_rankings(n: int, *, hard: int = 2, weak: int = 7, seed: int) -> list[PlantedRanking]:
    """Return questions on held-out keys, with documents about similar keys ranked among the gold.

    A hard distractor has the noun of the key and another adjective, a weak one neither word. The
    scores tell the two kinds apart, but not a hard one from the gold, which has each of the first
    ``1 + hard`` ranks equally often.
    """
    rng = random.Random(seed)
    return [_planted(rng, hard, weak) for _ in range(n)]


def _planted(rng: random.Random, hard: int, weak: int) -> PlantedRanking:
    adjective, noun = key = rng.choice(keys(True))
    similar = [each for each in keys(True) if each[1] == noun and each != key]
    others = [each for each in keys(True) if each[1] != noun and each[0] != adjective]
    drawn: list[tuple[Key, Kind]] = [(key, "gold")]
    drawn += [(each, "hard") for each in rng.sample(similar, hard)]
    drawn += [(each, "weak") for each in rng.sample(others, weak)]
    values = rng.sample(VALUES, len(drawn))
    passages = []
    for (each, kind), value in zip(drawn, values, strict=True):
        score = rng.uniform(*(FAR if kind == "weak" else NEAR))
        passages.append(PlantedPassage(write(rng, each, value, Style()).text, kind, score))
    ranked = sorted(passages, key=lambda passage: -passage.score)
    return PlantedRanking(ask(rng, key, Style()), values[0], tuple(ranked))
