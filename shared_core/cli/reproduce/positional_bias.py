"""The experiments of "Do RAG Systems Really Suffer From Positional Bias?": Tables 1 to 4."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from shared_core.arrays import Scores
from shared_core.cli.console import Console
from shared_core.cli.reproduce.controlled import (
    GRADER,
    Controlled,
    Controls,
    K,
    controlled_question,
)
from shared_core.cli.reproduce.data import ids_of
from shared_core.cli.reproduce.failing import each_answered, failures_of
from shared_core.cli.reproduce.judging import check_second_half, depths_of, judged_rankings
from shared_core.cli.reproduce.tables import watched
from shared_core.comparison import Comparison, ComparisonResult, Failure
from shared_core.comparison.retrieval import Retrieval
from shared_core.evaluation import JudgedRanking, complete_cases, distraction_measures
from shared_core.generation import Generator, Journal, ModelClient
from shared_core.generation.responses import Failed
from shared_core.generation.templates import PromptTemplate
from shared_core.sensitivity import distracting_effect


@dataclass(frozen=True, kw_only=True)
class PositionalBiasResult:
    """Results of the experiments.

    Attributes
    ----------
    pipelines
        Names; Tables 1 and 2 are of the first one.
    measures
        Pipeline -> measure, as ``MaxDE@10`` -> outcome of each question, at the depths of Table 4
        that a ranking of the pipeline reaches. Without a model those of relevance alone.
    controlled
        Table 1; None without a model, or if no question of the first half can be asked so.
    compared
        Tables 2 and 3, of the second half; None without a model.
    ids
        Those of all questions.
    left_out
        Questions left out of Tables 1 and 4, as an effect could not be measured.
    """

    pipelines: tuple[str, ...]
    measures: Mapping[str, Mapping[str, Scores]]
    controlled: Controlled | None
    compared: ComparisonResult | None
    ids: tuple[str, ...]
    left_out: tuple[Failure, ...]


def without_model(retrieval: Retrieval, pipelines: tuple[str, ...]) -> PositionalBiasResult:
    """Measure how relevant the top k is, which needs no model.

    Raises
    ------
    ValueError
        As `PositionalBiasExperiment.run`.
    """
    rankings = judged_rankings(retrieval, pipelines)
    depths = depths_of(rankings)
    measures = {}
    for name, ranked in rankings.items():
        unknown = [[0.0] * len(each.passages) for each in ranked]
        values = distraction_measures(ranked, unknown, depths[name])
        measures[name] = {key: values[key] for key in values if key.startswith(("HITS", "Prec"))}
    return PositionalBiasResult(
        pipelines=pipelines,
        measures=measures,
        controlled=None,
        compared=None,
        ids=ids_of(retrieval.data),
        left_out=(),
    )


@dataclass(frozen=True, kw_only=True)
class PositionalBiasExperiment:
    """The experiments that need a model.

    Attributes
    ----------
    console
        Where progress is reported.
    model, journal
        The model that is asked, and where its answers are kept.
    template, abstain
        The prompt, and the one that lets the model abstain.
    retrieval
        Ranks the passages of the data.
    pipelines
        Names of the pipelines.
    """

    console: Console
    model: Generator
    journal: Journal
    template: PromptTemplate
    abstain: PromptTemplate
    retrieval: Retrieval
    pipelines: tuple[str, ...]

    def run(self) -> PositionalBiasResult:
        """Retrieve, and ask the model.

        Raises
        ------
        ValueError
            If there are fewer than four questions, none says which passages are relevant, a
            pipeline lacks what it needs, or no question of the second half has five passages.
        GenerationError
            If the model fails on every question of a part, or for a passing reason that did not
            pass.
        """
        rankings = judged_rankings(self.retrieval, self.pipelines)
        depths = depths_of(rankings)
        check_second_half(self.retrieval, self.pipelines)
        judged = [*zip(*rankings.values(), strict=True)]
        effects = self._effects(judged)
        kept = {at: each for at, (each,) in complete_cases([each] for each in effects).items()}
        controlled = self._controlled({at: (judged[at][0], kept[at][0]) for at in kept})
        return PositionalBiasResult(
            pipelines=self.pipelines,
            measures={
                name: distraction_measures(
                    [judged[at][which] for at in kept],
                    [kept[at][which] for at in kept],
                    depths[name],
                )
                for which, name in enumerate(self.pipelines)
            },
            controlled=controlled,
            compared=self._compared(controlled),
            ids=ids_of(self.retrieval.data),
            left_out=failures_of(effects, self._known, "distracting effect"),
        )

    @property
    def _known(self) -> list[int]:
        """Questions whose gold passages are known; the rankings are of these."""
        asked = self.retrieval.data.questions
        return [number for number, each in enumerate(asked) if each.gold]

    def _effects(
        self, judged: Sequence[Sequence[JudgedRanking]]
    ) -> list[Sequence[Sequence[float]] | Failed]:
        """Return the effects by question, pipeline and rank."""

        def ask(
            some: Sequence[Sequence[JudgedRanking]], on_answer: Callable[[int], None]
        ) -> list[Sequence[Sequence[float]]]:
            together = [ranking for each in some for ranking in each]
            effects = iter(
                distracting_effect(
                    self.model,
                    together,
                    template=self.abstain,
                    journal=self.journal,
                    on_answer=on_answer,
                    on_wait=self.console.say,
                )
            )
            return [[next(effects) for _ in each] for each in some]

        total = sum(map(_irrelevant, judged))
        asker = ModelClient.of(self.model, journal=self.journal)
        with watched(self.console, "distracting effect of single passages", total) as advance:
            return each_answered(ask, judged, asker, weight=_irrelevant, on_answer=advance)

    def _controlled(
        self, rankings: Mapping[int, tuple[JudgedRanking, Sequence[float]]]
    ) -> Controlled | None:
        asked, known = self.retrieval.data.questions, self._known
        chosen = {
            known[at]: controlled_question(ranking, effects, asked[known[at]].answers)
            for at, (ranking, effects) in rankings.items()
            if known[at] < len(asked) // 2
        }
        questions = {number: each for number, each in chosen.items() if each is not None}
        if not questions:
            return None
        controls = Controls(
            model=self.model, journal=self.journal, template=self.template, abstain=self.abstain
        )
        what, together = "one relevant passage rotated", [*questions.values()]
        with watched(self.console, what, controls.calls(together)) as advance:
            found = controls.run(together, on_answer=advance, on_wait=self.console.say)
        numbers = [*questions]
        return replace(
            found,
            failures=tuple(
                replace(each, question=numbers[each.question]) for each in found.failures
            ),
        )

    def _compared(self, controlled: Controlled | None) -> ComparisonResult:
        whole = self.retrieval.data
        second = replace(whole, questions=whole.questions[len(whole.questions) // 2 :])
        profile = None if controlled is None else controlled.profile
        strategies = ["sequential", "inverse", "shuffle"]
        if profile is not None:
            strategies += ["max_relevance"]
            strategies += [] if profile.distraction is None else ["min_distraction"]
        comparison = Comparison(
            pipelines=self.pipelines,
            ks=(K,),
            strategies=strategies,
            graders=(GRADER,),
            template=self.template,
            profile=profile,
            embed=self.retrieval.embed,
            reranker=self.retrieval.reranker,
            # All but one may fail: what is left is reported next to the failures.
            max_failed=1 - 0.5 / len(second.questions),
        )
        job = comparison.job(self.model, second, journal=self.journal)
        plan = job.plan()
        with watched(
            self.console, "the retrieved passages arranged", plan.kept + plan.calls
        ) as advance:
            return job.run(on_answer=advance, on_wait=self.console.say)


def _irrelevant(judged: Sequence[JudgedRanking]) -> int:
    return sum(not relevant for ranking in judged for relevant in ranking.relevant)
