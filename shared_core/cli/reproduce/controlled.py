"""PositionalBias, section 4: one relevant passage, rotated among distractors of known effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shared_core.arrays import Scores
from shared_core.evaluation import JudgedRanking, distractor_kind, resolve_grader
from shared_core.generation import Asker, Generator, Journal
from shared_core.generation.templates import PromptTemplate
from shared_core.sensitivity import PositionProfile, Probe, ProbeQuestion
from shared_core.sensitivity.measures import resolve_measure
from shared_core.sensitivity.rotation import Rotation

K = 5
"""Passages in the prompt."""

HARD_SLOTS = {"Position 3": 2, "Position 5": 4}
"""Where a hard distractor stands, by the name of the row."""

GRADER = "subspan"
"""An accepted answer stands in what the model says; the papers ask a model, or look for it."""


def controlled_question(
    ranking: JudgedRanking, effects: Sequence[float], answers: tuple[str, ...]
) -> ProbeQuestion | None:
    """Return the best ranked relevant passage among weak distractors, and the best ranked hard one.

    None where nothing relevant was retrieved, or fewer than four weak distractors.
    """
    kinds = [
        "relevant" if relevant else distractor_kind(effect)
        for relevant, effect in zip(ranking.relevant, effects, strict=True)
    ]
    by_kind = {
        kind: [text for text, each in zip(ranking.passages, kinds, strict=True) if each == kind]
        for kind in ("relevant", "weak", "hard")
    }
    if not by_kind["relevant"] or len(by_kind["weak"]) < K - 1:
        return None
    return ProbeQuestion(
        question=ranking.question,
        answers=answers,
        gold=by_kind["relevant"][0],
        distractors=tuple(by_kind["weak"][: K - 1]),
        hard_distractor=by_kind["hard"][0] if by_kind["hard"] else None,
    )


@dataclass(frozen=True, kw_only=True)
class Controlled:
    """What came of it.

    Attributes
    ----------
    profile
        Accuracy by slot among weak distractors; the distracting effect of a hard one by slot, if
        there are any.
    outcomes
        Row of Table 1 -> how right each question was in each slot, shape (n, 5), in [0, 1]; nan
        where the hard distractor stands. Without hard distractors there is the row None alone.
    with_hard
        The rows of ``outcomes["None"]`` that the other ones are about.
    """

    profile: PositionProfile
    outcomes: dict[str, Scores]
    with_hard: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Controls:
    """Asks a model, with every answer kept.

    Attributes
    ----------
    model, journal
        Who is asked, and where answers are kept.
    template, abstain
        The prompt, and the one that gives leave to abstain.
    """

    model: Generator
    journal: Journal
    template: PromptTemplate
    abstain: PromptTemplate

    def calls(self, questions: Sequence[ProbeQuestion]) -> int:
        """Return how many answers `run` takes."""
        hard = sum(question.hard_distractor is not None for question in questions)
        return len(questions) * K + hard * (K + len(HARD_SLOTS) * (K - 1))

    def run(
        self,
        questions: Sequence[ProbeQuestion],
        *,
        on_answer: Callable[[int], None],
        on_wait: Callable[[str], None],
    ) -> Controlled:
        """Rotate the relevant passage, and then the hard distractor without it."""
        accuracy = Probe(k=K, grader=GRADER, template=self.template, looks=1)
        profile = accuracy.run(
            self.model, questions, journal=self.journal, on_answer=on_answer, on_wait=on_wait
        )
        outcomes = {"None": np.array(profile.outcomes)}
        with_hard = [at for at, each in enumerate(questions) if each.hard_distractor is not None]
        hard = [questions[at] for at in with_hard]
        if hard:
            for name, slot in HARD_SLOTS.items():
                outcomes[name] = self._beside(hard, slot, on_answer, on_wait)
            effect = Probe(k=K, measure="distraction", template=self.abstain).run(
                self.model, hard, journal=self.journal, on_answer=on_answer, on_wait=on_wait
            )
            profile = replace(
                profile, distraction=effect.distraction, distraction_n=effect.distraction_n
            )
        return Controlled(
            profile=profile,
            outcomes=outcomes,
            with_hard=tuple(with_hard),
        )

    def _beside(
        self,
        questions: Sequence[ProbeQuestion],
        hard_at: int,
        on_answer: Callable[[int], None],
        on_wait: Callable[[str], None],
    ) -> Scores:
        """Return outcomes with the hard distractor in one slot, shape (n, 5), nan in that slot."""
        outcomes = np.full((len(questions), K), np.nan)
        measure = resolve_measure("accuracy", self.model, self.template, resolve_grader(GRADER))
        asker = Asker.of(self.model, journal=self.journal)
        # Rotated past it, the relevant passage moves the hard distractor by one slot.
        sides = {hard_at - 1: tuple(range(hard_at)), hard_at: tuple(range(hard_at + 1, K))}
        for among, slots in sides.items():
            if slots:
                moved = [_with_hard(question, among) for question in questions]
                rotation = Rotation(self.model, measure, asker, slots, K)
                responses = asker.answers(
                    rotation.requests(moved), on_answer=on_answer, on_wait=on_wait
                )
                outcomes[:, slots] = rotation.values(moved, responses)
        return outcomes


def _with_hard(question: ProbeQuestion, among: int) -> ProbeQuestion:
    """Put the hard distractor at a place among the others, which it makes one fewer."""
    others = list(question.distractors[: K - 2])
    others.insert(among, str(question.hard_distractor))
    return replace(question, distractors=tuple(others))
