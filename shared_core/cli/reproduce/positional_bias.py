"""The experiments of "Do RAG Systems Really Suffer From Positional Bias?": Tables 1 to 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from shared_core.cli.reproduce.judging import depths_of, judged_rankings
from shared_core.cli.reproduce.tables import watched
from shared_core.comparison import Comparison, ComparisonResult
from shared_core.comparison.pipelines import Retrieval
from shared_core.evaluation import JudgedRanking, distracting_effect, distraction_measures
from shared_core.generation import Generator, Journal
from shared_core.generation.templates import PromptTemplate


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the experiments came to.

    Attributes
    ----------
    pipelines
        Names; Tables 1 and 2 are of the first one.
    depths
        Those of Table 4 that the rankings reach.
    measures
        Pipeline -> measure, as ``MaxDE@10`` -> outcome of each question. Without a model those of
        relevance alone.
    controlled
        Table 1; None without a model, or if no question of the first half can be asked so.
    compared
        Tables 2 and 3, of the second half; None without a model.
    """

    pipelines: tuple[str, ...]
    depths: tuple[int, ...]
    measures: Mapping[str, Mapping[str, Scores]]
    controlled: Controlled | None
    compared: ComparisonResult | None


def without_model(retrieval: Retrieval, pipelines: tuple[str, ...]) -> Found:
    """Measure what takes no model: how relevant the top k is.

    Raises
    ------
    ValueError
        As `Experiment.run`.
    """
    rankings = judged_rankings(retrieval, pipelines)
    depths = depths_of(rankings)
    measures = {}
    for name, ranked in rankings.items():
        unknown = [[0.0] * len(each.passages) for each in ranked]
        values = distraction_measures(ranked, unknown, depths)
        measures[name] = {key: values[key] for key in values if key.startswith(("HITS", "Prec"))}
    return Found(
        pipelines=pipelines, depths=depths, measures=measures, controlled=None, compared=None
    )


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What is run with a model.

    Attributes
    ----------
    console
        Where it says what is asked.
    model, journal
        Who is asked, and where every answer is kept.
    template, abstain
        The prompt, and the one that gives leave to abstain.
    retrieval
        What ranks the passages of the data.
    pipelines
        How, in turn.
    """

    console: Console
    model: Generator
    journal: Journal
    template: PromptTemplate
    abstain: PromptTemplate
    retrieval: Retrieval
    pipelines: tuple[str, ...]

    def run(self) -> Found:
        """Retrieve, and ask the model.

        Raises
        ------
        ValueError
            If there are fewer than four questions, none says which passages are relevant, a
            pipeline needs what is not there, or no question has five passages.
        GenerationError
            If the model fails for good.
        """
        rankings = judged_rankings(self.retrieval, self.pipelines)
        depths, effects = depths_of(rankings), self._effects(rankings)
        first = self.pipelines[0]
        controlled = self._controlled(rankings[first], effects[first])
        return Found(
            pipelines=self.pipelines,
            depths=depths,
            measures={
                name: distraction_measures(rankings[name], effects[name], depths)
                for name in rankings
            },
            controlled=controlled,
            compared=self._compared(controlled),
        )

    def _effects(
        self, rankings: Mapping[str, list[JudgedRanking]]
    ) -> dict[str, list[tuple[float, ...]]]:
        together = [each for ranked in rankings.values() for each in ranked]
        total = sum(not relevant for each in together for relevant in each.relevant)
        with watched(self.console, "distracting effect of single passages", total) as advance:
            effects = iter(
                distracting_effect(
                    self.model,
                    together,
                    template=self.abstain,
                    journal=self.journal,
                    on_answer=advance,
                    on_wait=self.console.say,
                )
            )
        return {name: [next(effects) for _ in ranked] for name, ranked in rankings.items()}

    def _controlled(
        self,
        rankings: Sequence[JudgedRanking],
        effects: Sequence[Sequence[float]],
    ) -> Controlled | None:
        asked = self.retrieval.data.questions
        known = [at for at, each in enumerate(asked) if each.gold]
        chosen = [
            controlled_question(ranking, effect, asked[at].answers)
            for at, ranking, effect in zip(known, rankings, effects, strict=True)
            if at < len(asked) // 2
        ]
        questions = [each for each in chosen if each is not None]
        if not questions:
            return None
        controls = Controls(
            model=self.model, journal=self.journal, template=self.template, abstain=self.abstain
        )
        with watched(
            self.console, "one relevant passage rotated", controls.calls(questions)
        ) as advance:
            return controls.run(questions, on_answer=advance, on_wait=self.console.say)

    def _compared(self, controlled: Controlled | None) -> ComparisonResult:
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
        )
        whole = self.retrieval.data
        second = replace(whole, questions=whole.questions[len(whole.questions) // 2 :])
        plan = comparison.plan(self.model, second, journal=self.journal)
        with watched(
            self.console, "the retrieved passages arranged", plan.kept + plan.calls
        ) as advance:
            return comparison.run(
                self.model,
                second,
                journal=self.journal,
                on_answer=advance,
                on_wait=self.console.say,
            )
