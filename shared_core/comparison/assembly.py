"""Turns answers into a result: grades them, compares strategies, and gives verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared_core.comparison.asking.arrangements import Answered, ByStrategy
from shared_core.comparison.asking.work import Work
from shared_core.comparison.grading import Grading
from shared_core.comparison.questions import ComparisonData
from shared_core.comparison.records import (
    AskedQuestion,
    Failure,
    SettingResult,
    StrategyResult,
    Verdict,
)
from shared_core.comparison.result import ComparisonResult
from shared_core.comparison.retrieval.measures import gold_rank, relevant_ids, retrieval
from shared_core.comparison.retrieval.pipelines import Pipeline
from shared_core.comparison.retrieval.settings import Setting
from shared_core.comparison.statistics import Against, Testing, alike
from shared_core.comparison.verdict import VerdictBasis, overall_verdict, setting_verdict
from shared_core.evaluation.complete_cases import complete_cases
from shared_core.evaluation.significance import PairedComparison
from shared_core.generation.failures import Failed
from shared_core.sensitivity.provenance import versions

Graded = dict[str, dict[str, tuple[tuple[float, ...], ...]]]
"""Strategy -> grader -> question -> arrangement -> outcome."""


@dataclass(frozen=True)
class Kept:
    """One setting's answers to the questions that no strategy failed on."""

    setting: Setting
    questions: tuple[int, ...]
    failures: tuple[Failure, ...]
    answers: Mapping[str, Sequence[Answered]]

    @classmethod
    def of(cls, setting: Setting, found: ByStrategy) -> Kept:
        """Leave out questions that any strategy failed on, for all strategies."""
        cases = [*zip(*found.values(), strict=True)]
        complete = complete_cases(cases)
        failures = [
            Failure(question=number, strategy=name, reason=each.reason)
            for number, case in enumerate(cases)
            for name, each in zip(found, case, strict=True)
            if isinstance(each, Failed)
        ]
        first = {failure.question: failure for failure in reversed(failures)}
        return cls(
            setting,
            tuple(complete),
            tuple(first[number] for number in sorted(first)),
            {name: [case[at] for case in complete.values()] for at, name in enumerate(found)},
        )


def assemble(
    data: ComparisonData,
    work: Work,
    found: Sequence[ByStrategy],
    gradings: Sequence[Grading],
    testing: Testing,
    *,
    model: str,
    shuffles: int,
    profile: str | None,
    embedding: str | None,
) -> ComparisonResult:
    """Return the result of a comparison.

    Parameters
    ----------
    data, work, found
        What was asked, and the answers and failures of each setting.
    gradings, testing
        How it is judged; the first grader decides.
    model, shuffles, profile, embedding
        For the record; the embedding model is left out if no pipeline used it.
    """
    kept = [Kept.of(*each) for each in zip(work.settings, found, strict=True)]
    settings, verdict, tests = _judged(data, kept, gradings, testing)
    embedded = any(Pipeline(setting.pipeline).embedded for setting in settings)
    return ComparisonResult(
        model=model,
        identity=work.asker.name,
        questions=_asked_questions(data),
        passages=_passage_texts(work.settings),
        settings=settings,
        verdict=verdict,
        graders=tuple(grading.name for grading in gradings),
        tests=tests,
        shuffles=shuffles,
        confidence=testing.confidence,
        power=testing.power,
        effect=testing.effect,
        seed=testing.seed,
        template=work.template.text,
        profile=profile,
        embedding=embedding if embedded else None,
        version=versions().get("posrag"),
    )


def _judged(
    data: ComparisonData,
    kept: Sequence[Kept],
    gradings: Sequence[Grading],
    testing: Testing,
) -> tuple[tuple[SettingResult, ...], Verdict, int]:
    """Return the results of the settings, the verdict on all, and the number of tests."""
    graded = [_graded(data, each, gradings) for each in kept]
    decisive = gradings[0].name
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
        for against, each, by_strategy in zip(compared, kept, outcomes, strict=True)
    ]
    settings = tuple(
        _setting(data, each, by_strategy, against, rests_on, testing)
        for each, by_strategy, against, rests_on in zip(kept, graded, compared, bases, strict=True)
    )
    verdicts = {
        setting.name: (setting.verdict, rests_on)
        for setting, rests_on in zip(settings, bases, strict=True)
    }
    return settings, overall_verdict(verdicts), tests


def _graded(data: ComparisonData, kept: Kept, gradings: Sequence[Grading]) -> Graded:
    questions = [data.questions[number] for number in kept.questions]
    return {
        name: {
            grading.name: grading.outcomes(questions, [each.answers for each in answered])
            for grading in gradings
        }
        for name, answered in kept.answers.items()
    }


def _asked_questions(data: ComparisonData) -> tuple[AskedQuestion, ...]:
    """Return the questions as a result records them."""
    return tuple(
        AskedQuestion(
            id=str(number) if each.id is None else each.id,
            question=each.question,
            answers=each.answers,
            gold=each.gold,
        )
        for number, each in enumerate(data.questions, start=1)
    )


def _passage_texts(settings: Sequence[Setting]) -> dict[str, str]:
    """Return id -> text of all passages that were retrieved."""
    return {
        passage.id: passage.text
        for setting in settings
        for passages in setting.passages
        for passage in passages
    }


def _setting(
    data: ComparisonData,
    kept: Kept,
    graded: Graded,
    against: Against,
    basis: VerdictBasis,
    testing: Testing,
) -> SettingResult:
    found = [kept.setting.passages[number] for number in kept.questions]
    gold = [
        tuple(relevant_ids(ranked, data.questions[number].gold))
        for number, ranked in zip(kept.questions, found, strict=True)
    ]
    ids = tuple(tuple(passage.id for passage in ranked) for ranked in found)
    return SettingResult(
        pipeline=kept.setting.pipeline,
        k=kept.setting.k,
        questions=kept.questions,
        failures=kept.failures,
        passages=ids,
        gold_ranks=tuple(map(gold_rank, ids, gold)),
        retrieval=retrieval(kept.setting.k, ids, gold, testing),
        strategies=tuple(
            _strategy(name, kept.answers[name], by_order, against.get(name, {}), testing)
            for name, by_order in graded.items()
        ),
        questions_needed=basis.needed,
        verdict=setting_verdict(basis),
    )


def _strategy(
    name: str,
    answered: Sequence[Answered],
    by_order: Mapping[str, tuple[tuple[float, ...], ...]],
    against: Mapping[str, PairedComparison],
    testing: Testing,
) -> StrategyResult:
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
        estimates={grader: testing.estimate(values) for grader, values in outcomes.items()},
        against=against,
    )
