"""Turns answers into a result: grades them, compares strategies, and gives verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from shared_core.comparison.questions import Question
from shared_core.comparison.result import (
    SEQUENTIAL,
    SHUFFLE,
    WHERE,
    ComparisonResult,
    Failure,
    Flips,
    Layout,
    SettingResult,
    StepResult,
    StrategyResult,
)
from shared_core.comparison.retrieval import ALPHAS, RetrievalSetting, members, parse_pipeline
from shared_core.comparison.statistics import Against, compared, estimate, needed, number_of_tests
from shared_core.comparison.verdict import flip_verdict, overall_verdict, setting_verdict
from shared_core.evaluation.intervals import contrast_interval
from shared_core.evaluation.paired_differences import complete_cases
from shared_core.evaluation.significance import PairedComparison, compare_paired
from shared_core.generation.fingerprint import model_fingerprint
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.responses import Failed, Response
from shared_core.sensitivity.measures import probability_of
from shared_core.sensitivity.records import versions
from shared_core.types import Passage

if TYPE_CHECKING:
    from shared_core.comparison.job import ComparisonJob, Place

Answered: TypeAlias = tuple[tuple[tuple[int, ...], Response], ...]
"""The orders in which a strategy puts a question's passages, and the model's response to each."""

ByOrder: TypeAlias = tuple[tuple[float, ...], ...]
"""Question -> arrangement -> outcome."""


SAME = "same"
"""In place of a grader where there are no accepted answers: is it the answer in ranked order?"""


def analyse(
    job: ComparisonJob,
    found: Mapping[Place, Answered | Failed],
    again: Mapping[Place, Response | Failed],
) -> ComparisonResult:
    """Return the result of a comparison.

    Parameters
    ----------
    job
        What was asked, and how it is judged.
    found
        What came of it at every place.
    again
        Second answers to what is in ranked order.
    """
    options = job.options
    parts = [_Setting(job, number, found, again) for number in range(len(job.settings))]
    outcomes = [part.outcomes for part in parts]
    against, tests = compared(outcomes, options.seed), number_of_tests(outcomes)
    settings = tuple(part.result(each, tests) for part, each in zip(parts, against, strict=True))
    steps = tuple(_steps(job, parts)) if job.gradings else ()
    embedded = any(parse_pipeline(each.pipeline)[0] in ALPHAS for each in settings)
    passages = (each for part in job.settings for case in part.cases for each in case.passages)
    return ComparisonResult(
        model=job.model.name,
        identity=model_fingerprint(job.model),
        questions=job.data.questions,
        passages={passage.id: passage.text for passage in passages},
        settings=settings,
        verdict=overall_verdict(settings, steps),
        graders=tuple(grading.name for grading in job.gradings) or (SAME,),
        tests=tests,
        shuffles=options.shuffles,
        seed=options.seed,
        template=options.template.text,
        profile=None if options.known_profile is None else options.known_profile.model,
        embedding=options.embedding if embedded else None,
        version=versions().get("posrag"),
        token_budget=options.token_budget,
        steps=steps,
    )


def _steps(job: ComparisonJob, parts: Sequence[_Setting]) -> Iterator[StepResult]:
    """Compare the ranked order of each setting with that of those without a step or its layout."""
    ranked = {
        part.retrieved.name: dict(zip(part.answers, part.outcomes[SEQUENTIAL], strict=True))
        for part in parts
    }
    pairs = {
        (step, name): np.array([each[at] + ranked[less][at] for at in each if at in ranked[less]])
        for (name, each), part in zip(ranked.items(), parts, strict=True)
        for step, less in _without(part.retrieved, job.options.layouts[0])
        if less in ranked
    }
    gains = compare_paired(
        {at: (found[:, 0], found[:, 1]) for at, found in pairs.items() if len(found) > 1},
        seed=job.options.seed,
    )
    for (step, name), gain in gains.items():
        yield StepResult(step=step, setting=name, gain=gain, seconds=job.seconds.get(step))


def _without(setting: RetrievalSetting, first: Layout) -> Iterator[tuple[str, str]]:
    """Yield each step of a setting, and its layout, with the name of the setting without it."""
    for step in parse_pipeline(setting.pipeline)[1]:
        yield step, replace(setting, pipeline=setting.pipeline.replace(step, "")).name
    if setting.layout != first:
        step = f"question {WHERE[setting.layout]} instead of {WHERE[first]}"
        yield step, replace(setting, layout=first).name


@dataclass(frozen=True)
class _Setting:
    """One setting, and what came of it at every place."""

    job: ComparisonJob
    number: int
    found: Mapping[Place, Answered | Failed]
    again: Mapping[Place, Response | Failed]

    @property
    def retrieved(self) -> RetrievalSetting:
        return self.job.settings[self.number]

    @cached_property
    def names(self) -> list[str]:
        return [strategy.name for strategy in self.job.strategies]

    @cached_property
    def cases(self) -> list[dict[str, Answered | Failed]]:
        """Question -> strategy -> what came of it."""
        questions = range(len(self.retrieved.cases))
        return [
            {name: self.found[self.number, name, at] for name in self.names} for at in questions
        ]

    @cached_property
    def answers(self) -> dict[int, dict[str, Answered]]:
        """Question -> strategy -> answers; without the questions that any strategy failed on."""
        complete = complete_cases([*case.values()] for case in self.cases)
        return {at: dict(zip(self.names, each, strict=True)) for at, each in complete.items()}

    @property
    def failures(self) -> Iterator[Failure]:
        """The questions that are left out, with the first strategy that failed."""
        for question, case in enumerate(self.cases):
            failed = [(name, each) for name, each in case.items() if isinstance(each, Failed)]
            for name, each in failed[:1]:
                yield Failure(question=question, strategy=name, reason=each.reason)

    @cached_property
    def asked(self) -> list[Question]:
        return [self.job.data.questions[number] for number in self.answers]

    @cached_property
    def graded(self) -> dict[str, dict[str, ByOrder]]:
        """Strategy -> grader -> outcomes."""
        if not self.job.gradings:
            return {name: {SAME: self._same(name)} for name in self.names}
        return {
            name: {
                grading.name: tuple(
                    tuple(grading(question, text) for _, text in answered[name])
                    for question, answered in zip(self.asked, self.answers.values(), strict=True)
                )
                for grading in self.job.gradings
            }
            for name in self.names
        }

    def _same(self, strategy: str) -> ByOrder:
        """Return whether each answer is that to the same question in ranked order."""
        same = self.job.options.same
        return tuple(
            tuple(float(same(str(text), str(ranked))) for _, text in answered[strategy])
            for answered in self.answers.values()
            for _, ranked in answered[SEQUENTIAL]
        )

    @property
    def outcomes(self) -> dict[str, ByOrder]:
        """Strategy -> outcomes by the grader that decides."""
        return {name: next(iter(by_grader.values())) for name, by_grader in self.graded.items()}

    @cached_property
    def flips(self) -> Flips | None:
        """How many answers change with the order."""
        if self.job.by_probability:
            return None
        changed, again, seed = self._changed(), self._changed_again(), self.job.options.seed
        both = [(changed[question], again[question]) for question in changed if question in again]
        if not both:
            alone = [*changed.values()]
            return Flips(changed=estimate(alone, seed), again=None) if alone else None
        interval = None
        if len(both) > 1:
            bounds = contrast_interval(both, [1, -1])
            interval = (max(bounds[0], -1.0), min(bounds[1], 1.0))
        with_it, without = (estimate(column, seed) for column in zip(*both, strict=True))
        return Flips(
            changed=with_it,
            again=without,
            difference=with_it.mean - without.mean,
            interval=interval,
        )

    def _changed(self) -> dict[int, float]:
        """Return which share of the answers to each question other random orders change."""
        shares = {}
        for (question, answered), same in zip(
            self.answers.items(), self._same(SHUFFLE), strict=True
        ):
            ((ranked, _),) = answered[SEQUENTIAL]
            orders = zip(answered[SHUFFLE], same, strict=True)
            others = [1 - each for (order, _), each in orders if order != ranked]
            if others:
                shares[question] = sum(others) / len(others)
        return shares

    def _changed_again(self) -> dict[int, float]:
        """Return whether asking again changes each answer; a local model always gives the same."""
        if isinstance(self.job.model, HuggingFaceModel):
            return dict.fromkeys(self.answers, 0.0)
        changed = {}
        for question, answered in self.answers.items():
            second = self.again.get((self.number, SEQUENTIAL, question))
            if isinstance(second, str):
                ((_, first),) = answered[SEQUENTIAL]
                changed[question] = float(not self.job.options.same(second, str(first)))
        return changed

    def result(self, against: Against, tests: int) -> SettingResult:
        """Return what came of it, with its differences, of so many that all are corrected for."""
        found = [self.retrieved.cases[number].passages for number in self.answers]
        setting = SettingResult(
            pipeline=self.retrieved.pipeline,
            k=self.retrieved.k,
            questions=tuple(self.answers),
            failures=tuple(self.failures),
            passages=tuple(tuple(passage.id for passage in ranked) for ranked in found),
            gold_known=sum(bool(question.gold) for question in self.asked),
            gold_ranks=tuple(
                _gold_rank(ranked, question.gold)
                for question, ranked in zip(self.asked, found, strict=True)
            ),
            strategies=tuple(self._strategy(name, against[name]) for name in self.names),
            questions_needed=needed(self.outcomes, tests),
            layout=self.retrieved.layout,
            flips=self.flips,
        )
        graded = bool(self.job.gradings)
        verdict = setting_verdict(setting, tests) if graded else flip_verdict(self.flips)
        return replace(setting, verdict=verdict)

    def _strategy(self, name: str, against: Mapping[str, PairedComparison]) -> StrategyResult:
        answered = [each[name] for each in self.answers.values()]
        by_order = self.graded[name]
        outcomes = {
            grader: tuple(sum(each) / len(each) for each in by_question)
            for grader, by_question in by_order.items()
        }
        seed = self.job.options.seed
        return StrategyResult(
            name=name,
            orders=tuple(tuple(order for order, _ in each) for each in answered),
            answers=tuple(tuple(_text(response) for _, response in each) for each in answered),
            by_order=by_order,
            outcomes=outcomes,
            estimates={grader: estimate(each, seed) for grader, each in outcomes.items()},
            against=against,
        )


def _text(response: Response) -> str:
    return response if isinstance(response, str) else f"{probability_of(response):.6f}"


def _gold_rank(ranked: Sequence[Passage], gold: Sequence[str]) -> int | None:
    """Return the best rank of a passage or span that holds a gold passage; None if none does."""
    ranks = (rank for rank, each in enumerate(ranked) if not {*gold}.isdisjoint(members(each)))
    return next(ranks, None)
