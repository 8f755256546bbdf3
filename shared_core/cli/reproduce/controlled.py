"""PositionalBias, section 4: one relevant passage, rotated among distractors of known effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from shared_core.arrays import Scores
from shared_core.cli.reproduce.failing import each_answered, failures_of
from shared_core.comparison import Failure
from shared_core.evaluation import (
    JudgedRanking,
    complete_cases,
    distractor_kind,
    resolve_grader,
)
from shared_core.generation import Generator, Journal, ModelClient
from shared_core.generation.ask import Request
from shared_core.generation.responses import Failed
from shared_core.generation.templates import PromptTemplate
from shared_core.sensitivity import PositionProfile, Probe, ProbeQuestion
from shared_core.sensitivity.measures import MeasureName, Rotation, resolve_measure
from shared_core.sensitivity.questions import check_questions

K = 5
"""Passages in the prompt."""

HARD_SLOTS = {"Position 3": 2, "Position 5": 4}
"""Slot of the hard distractor, by the name of the row."""

GRADER = "subspan"
"""An accepted answer occurs in the model's; the papers do the same, or ask a model."""

Asked: TypeAlias = tuple[Rotation, Sequence[ProbeQuestion]]
"""What is asked of which questions."""


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
    """Result of the controlled experiment.

    Attributes
    ----------
    profile
        Accuracy by slot among weak distractors; the distracting effect of a hard one by slot, if
        there are any.
    outcomes
        Row of Table 1 -> how right each question was in each slot, shape (n, 5), in [0, 1]; nan
        in the slot of the hard distractor. Without hard distractors None is the only row.
    with_hard
        The rows of ``outcomes["None"]`` whose questions have a hard distractor.
    failures
        Questions that the model failed on, by their place among those asked.
    """

    profile: PositionProfile
    outcomes: dict[str, Scores]
    with_hard: tuple[int, ...]
    failures: tuple[Failure, ...]


@dataclass(frozen=True, kw_only=True)
class Controls:
    """Asks a model, with every answer kept.

    Attributes
    ----------
    model, journal
        The model that is asked, and where its answers are kept.
    template, abstain
        The prompt, and the one that lets the model abstain.
    """

    model: Generator
    journal: Journal
    template: PromptTemplate
    abstain: PromptTemplate

    def calls(self, questions: Sequence[ProbeQuestion]) -> int:
        """Return how many answers `run` takes."""
        return len(self._requests(questions))

    def run(
        self,
        questions: Sequence[ProbeQuestion],
        *,
        on_answer: Callable[[int], None],
        on_wait: Callable[[str], None],
    ) -> Controlled:
        """Rotate the relevant passage, and then the hard distractor without it.

        Raises
        ------
        ValueError
            If a question is repeated.
        GenerationError
            If the model fails on all questions, or for a passing reason that did not pass.
        """
        check_questions(questions, K)
        found = self._asked(questions, on_answer, on_wait)
        kept = [questions[at] for at in complete_cases([each] for each in found)]
        # Everything is in the journal now.
        profile = Probe(k=K, grader=GRADER, template=self.template, looks=1).run(
            self.model, kept, journal=self.journal
        )
        outcomes = {"None": np.array(profile.outcomes)}
        with_hard = [at for at, each in enumerate(kept) if each.hard_distractor is not None]
        hard = [kept[at] for at in with_hard]
        if hard:
            for name, slot in HARD_SLOTS.items():
                outcomes[name] = self._beside(hard, slot)
            effect = Probe(k=K, measure="distraction", template=self.abstain).run(
                self.model, hard, journal=self.journal
            )
            profile = replace(
                profile, distraction=effect.distraction, distraction_n=effect.distraction_n
            )
        return Controlled(
            profile=profile,
            outcomes=outcomes,
            with_hard=tuple(with_hard),
            failures=failures_of(found, range(len(questions)), "Table 1"),
        )

    def _asked(
        self,
        questions: Sequence[ProbeQuestion],
        on_answer: Callable[[int], None],
        on_wait: Callable[[str], None],
    ) -> list[Failed | None]:
        """Ask everything about each question; return those that the model failed on."""

        def ask(some: Sequence[ProbeQuestion], on_answer: Callable[[int], None]) -> list[None]:
            for rotation, asked in self._rotations(some):
                asker.answers(
                    rotation.requests(asked),
                    part_of=lambda: self._requests(questions),
                    on_answer=on_answer,
                    on_wait=on_wait,
                )
            return [None] * len(some)

        asker = self._asker
        return each_answered(
            ask,
            questions,
            asker,
            weight=lambda question: self.calls([question]),
            on_answer=on_answer,
        )

    def _beside(self, questions: Sequence[ProbeQuestion], hard_at: int) -> Scores:
        """Return outcomes with the hard distractor in one slot, shape (n, 5), nan in that slot."""
        outcomes = np.full((len(questions), K), np.nan)
        for rotation, moved in self._rotations_beside(questions, hard_at):
            responses = self._asker.answers(rotation.requests(moved))
            outcomes[:, rotation.slots] = rotation.values(moved, responses)
        return outcomes

    def _requests(self, questions: Sequence[ProbeQuestion]) -> list[Request]:
        rotations = self._rotations(questions)
        return [each for rotation, asked in rotations for each in rotation.requests(asked)]

    def _rotations(self, questions: Sequence[ProbeQuestion]) -> Iterator[Asked]:
        """Yield every request."""
        yield self._rotation("accuracy", range(K)), questions
        hard = [question for question in questions if question.hard_distractor is not None]
        for slot in HARD_SLOTS.values():
            yield from self._rotations_beside(hard, slot)
        yield self._rotation("distraction", range(K)), hard

    def _rotations_beside(
        self, questions: Sequence[ProbeQuestion], hard_at: int
    ) -> Iterator[Asked]:
        # Rotated past it, the relevant passage moves the hard distractor by one slot.
        sides = {hard_at - 1: range(hard_at), hard_at: range(hard_at + 1, K)}
        for among, slots in sides.items():
            if slots:
                moved = [_with_hard(question, among) for question in questions]
                yield self._rotation("accuracy", slots), moved

    def _rotation(self, measure: MeasureName, slots: Sequence[int]) -> Rotation:
        template = self.abstain if measure == "distraction" else self.template
        resolved = resolve_measure(measure, self.model, template, resolve_grader(GRADER))
        return Rotation(self.model, resolved, self._asker, tuple(slots), K)

    @property
    def _asker(self) -> ModelClient:
        return ModelClient.of(self.model, journal=self.journal)


def _with_hard(question: ProbeQuestion, among: int) -> ProbeQuestion:
    """Put the hard distractor at a place among the others, and drop one of them."""
    others = list(question.distractors[: K - 2])
    others.insert(among, str(question.hard_distractor))
    return replace(question, distractors=tuple(others))
