"""Turns answers into a result: grades them, compares strategies, and gives verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from shared_core.comparison.pipelines import Pipeline
from shared_core.comparison.prompts import OrderedAnswers
from shared_core.comparison.questions import Question
from shared_core.comparison.records import (
    Estimate,
    Failure,
    SettingResult,
    StrategyResult,
    Verdict,
)
from shared_core.comparison.result import ComparisonResult
from shared_core.comparison.retrieval import RetrievalSetting
from shared_core.comparison.spans import members
from shared_core.comparison.statistics import Against, Testing, alike
from shared_core.comparison.verdict import VerdictBasis, overall_verdict, setting_verdict
from shared_core.evaluation.complete_cases import complete_cases
from shared_core.evaluation.retrieval import retrieval_measures
from shared_core.generation.fingerprint import model_fingerprint
from shared_core.generation.responses import Failed
from shared_core.sensitivity.records import versions
from shared_core.types import Passage

if TYPE_CHECKING:
    from shared_core.comparison.job import ComparisonJob

ByOrder: TypeAlias = tuple[tuple[float, ...], ...]
"""Question -> arrangement -> outcome."""

Graded: TypeAlias = dict[str, dict[str, ByOrder]]
"""Strategy -> grader -> outcomes."""


@dataclass(frozen=True)
class CompleteCases:
    """The questions of one setting that no strategy failed on.

    Attributes
    ----------
    questions
        Their numbers, from 0.
    failures
        Of each other question the first one.
    answers
        Strategy -> its answers to `questions`.
    """

    questions: tuple[int, ...]
    failures: tuple[Failure, ...]
    answers: Mapping[str, Sequence[OrderedAnswers]]

    @classmethod
    def of(cls, found: Mapping[str, Sequence[OrderedAnswers | Failed]]) -> CompleteCases:
        """Leave out questions that any strategy failed on, for all strategies."""
        cases = [*zip(*found.values(), strict=True)]
        complete = complete_cases(cases)
        failures: dict[int, Failure] = {}
        for number, case in enumerate(cases):
            for name, each in zip(found, case, strict=True):
                if isinstance(each, Failed):
                    failure = Failure(question=number, strategy=name, reason=each.reason)
                    failures.setdefault(number, failure)
        return cls(
            tuple(complete),
            tuple(failures.values()),
            {name: [case[at] for case in complete.values()] for at, name in enumerate(found)},
        )


def analyse(
    job: ComparisonJob, found: Sequence[Mapping[str, Sequence[OrderedAnswers | Failed]]]
) -> ComparisonResult:
    """Return the result of a comparison.

    Parameters
    ----------
    job
        What was asked, and how it is judged.
    found
        Setting by setting, strategy -> question -> answers or failure.
    """
    options = job.options
    settings, verdict, tests = _judged(job, [CompleteCases.of(each) for each in found])
    embedded = any(Pipeline(setting.pipeline).embedded for setting in settings)
    return ComparisonResult(
        model=job.model.name,
        identity=model_fingerprint(job.model),
        questions=job.data.questions,
        passages=_passage_texts(job.prompts.settings),
        settings=settings,
        verdict=verdict,
        graders=tuple(grading.name for grading in job.gradings),
        tests=tests,
        shuffles=options.shuffles,
        confidence=options.confidence,
        power=options.power,
        effect=options.effect,
        seed=options.seed,
        template=options.template.text,
        profile=None if options.known_profile is None else options.known_profile.model,
        embedding=options.embedding if embedded else None,
        version=versions().get("posrag"),
    )


def _judged(
    job: ComparisonJob, complete: Sequence[CompleteCases]
) -> tuple[tuple[SettingResult, ...], Verdict, int]:
    """Return the results of the settings, the verdict on all, and the number of tests."""
    testing = job.options.testing
    graded = [_graded(job, each) for each in complete]
    decisive = job.gradings[0].name
    outcomes = [{name: by[decisive] for name, by in each.items()} for each in graded]
    compared, tests = testing.compare(outcomes)
    bases = [
        VerdictBasis(
            against=against,
            n=len(each.questions),
            fewest=testing.fewest(tests),
            needed=testing.needed(by_strategy, tests),
            effect=testing.effect,
            power=testing.power,
            level=testing.level,
            alike=alike(by_strategy),
        )
        for against, each, by_strategy in zip(compared, complete, outcomes, strict=True)
    ]
    parts = zip(job.prompts.settings, complete, graded, compared, bases, strict=True)
    settings = tuple(_Setting(job.data.questions, testing, *each).result() for each in parts)
    verdicts = {
        setting.name: (setting.verdict, rests_on)
        for setting, rests_on in zip(settings, bases, strict=True)
    }
    return settings, overall_verdict(verdicts), tests


def _graded(job: ComparisonJob, complete: CompleteCases) -> Graded:
    asked = [job.data.questions[number] for number in complete.questions]
    return {
        name: {
            grading.name: tuple(
                tuple(grading(question, text) for text in each.answers)
                for question, each in zip(asked, answered, strict=True)
            )
            for grading in job.gradings
        }
        for name, answered in complete.answers.items()
    }


def _passage_texts(settings: Sequence[RetrievalSetting]) -> dict[str, str]:
    """Return id -> text of all passages that were retrieved."""
    return {
        passage.id: passage.text
        for setting in settings
        for case in setting.cases
        for passage in case.passages
    }


@dataclass(frozen=True)
class _Setting:
    """What the result of one setting is made from."""

    asked: Sequence[Question]
    testing: Testing
    setting: RetrievalSetting
    complete: CompleteCases
    graded: Graded
    against: Against
    basis: VerdictBasis

    def result(self) -> SettingResult:
        numbers = self.complete.questions
        found = [self.setting.cases[number].passages for number in numbers]
        gold = [
            tuple(relevant_ids(ranked, self.asked[number].gold))
            for number, ranked in zip(numbers, found, strict=True)
        ]
        ids = tuple(tuple(passage.id for passage in ranked) for ranked in found)
        return SettingResult(
            pipeline=self.setting.pipeline,
            k=self.setting.k,
            questions=numbers,
            failures=self.complete.failures,
            passages=ids,
            gold_ranks=tuple(map(_gold_rank, ids, gold)),
            retrieval=self._retrieval(ids, gold),
            strategies=tuple(map(self._strategy, self.graded)),
            questions_needed=self.basis.needed,
            verdict=setting_verdict(self.basis),
        )

    def _strategy(self, name: str) -> StrategyResult:
        answered, by_order = self.complete.answers[name], self.graded[name]
        outcomes = {
            grader: tuple(sum(each) / len(each) for each in by_question)
            for grader, by_question in by_order.items()
        }
        return StrategyResult(
            name=name,
            orders=tuple(each.orders for each in answered),
            answers=tuple(each.answers for each in answered),
            by_order=by_order,
            outcomes=outcomes,
            estimates={grader: self.testing.estimate(each) for grader, each in outcomes.items()},
            against=self.against.get(name, {}),
        )

    def _retrieval(
        self, ids: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]
    ) -> dict[str, Estimate]:
        """Return the measures of rankings, over the questions whose gold passages are known."""
        known = [row for row, relevant in enumerate(gold) if relevant]
        if not known:
            return {}
        k = self.setting.k
        found = retrieval_measures(
            # A retriever may have returned a passage twice; its first place counts.
            {str(row): [*dict.fromkeys(ids[row])] for row in known},
            {str(row): dict.fromkeys(gold[row], 1) for row in known},
            [*dict.fromkeys(("hit@1", f"hit@{k}", f"nDCG@{k}", "MRR"))],
        )
        return {name: self.testing.estimate(values.tolist()) for name, values in found.items()}


def relevant_ids(ranked: Sequence[Passage], gold: Sequence[str]) -> Iterator[str]:
    """Yield the ids of what holds the answer; a span with a gold passage stands for it."""
    missing = {*gold}
    for passage in ranked:
        found = {*members(passage)} & {*gold}
        if found:
            yield passage.id
        missing -= found
    yield from (id for id in gold if id in missing)


def _gold_rank(ranked: Sequence[str], gold: Sequence[str]) -> int | None:
    """Return the best rank of a passage that holds the answer; None if there is no such passage."""
    return next((rank for rank, id in enumerate(ranked) if id in gold), None)
