"""The experiments of "Do RAG Systems Really Suffer From Positional Bias?": Tables 1 to 4."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shared_core.cli import models
from shared_core.cli.console import Console
from shared_core.cli.embedding import EmbeddingCache, EmbeddingModel
from shared_core.cli.files import keeping, open_journal
from shared_core.cli.models import open_reranker
from shared_core.cli.reproduce import controlled, tables
from shared_core.cli.reproduce.controlled import GRADER, Judged, K
from shared_core.cli.reproduce.tables import Outcomes, Parts
from shared_core.comparison import Comparison, ComparisonData, Failure, read_comparison
from shared_core.comparison.retrieval import RERANKED, Retrieval
from shared_core.generation import Generator, ModelClient, ScoringModel
from shared_core.generation.templates import ABSTAIN, ANSWER, PromptTemplate
from shared_core.sensitivity import (
    PositionProfile,
    distraction_measures,
)
from shared_core.sensitivity.distraction import abstention_request, effect_of
from shared_core.sensitivity.questions import check_questions
from shared_core.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

PAPER = tables.paper("positionalbias")


DEPTHS = (5, 10, 15, 20, 25)
"""Of Table 4."""


def experiment(arguments: argparse.Namespace, console: Console) -> tuple[Outcomes, Parts]:
    """Retrieve, and ask the model."""
    data = open_data(arguments.data, arguments.documents, n=arguments.n)
    model = models.open_named(arguments)
    reranked = arguments.reranker is not None
    pipelines = arguments.pipelines or _pipelines(data, reranked=reranked)
    retrieval = Retrieval(
        data=data,
        embed=EmbeddingCache(EmbeddingModel(arguments.embedding), arguments.cache, console),
        reranker=open_reranker(arguments.reranker),
    )
    rankings, depths = _judged(retrieval, pipelines)
    client = ModelClient.of(model, journal=open_journal(model.name))
    abstain = arguments.abstain or ABSTAIN
    asking = _Asking(tables.Asking(console, client), model, retrieval, rankings, abstain)
    effects, failures = asking.effects()
    table_1 = asking.table_1(effects, pipelines[0])
    found: Outcomes = {
        "model": model.name,
        "pipelines": [*pipelines],
        "failures": [*map(asdict, failures)],
        "table_1": table_1,
        "tables_2_and_3": asking.tables_2_and_3(table_1, pipelines),
        "table_4": {
            name: {
                measure: tables.measured(outcomes)
                for measure, outcomes in distraction_measures(
                    [[relevant for _, relevant in rankings[number][name]] for number in effects],
                    [each[name] for each in effects.values()],
                    depths[name],
                ).items()
            }
            for name in pipelines
        },
        "published_percent": PAPER["published_percent"],
    }
    return found, _parts(found, [each.id for each in data.questions])


def open_data(path: Path, documents: Path | None, *, n: int | None) -> ComparisonData:
    """Return the first `n` questions, or all, over the passages of the file."""
    data = read_comparison(path, documents, n=n)
    if not data.answered:
        raise ValueError(f"{path}: the questions have no answers to grade by")
    return data


def _pipelines(data: ComparisonData, *, reranked: bool) -> tuple[str, ...]:
    if all(question.ranking for question in data.questions):
        return (f"given{RERANKED}", "given") if reranked else ("given",)
    names = ("dense", "sparse")
    return (*(f"{name}{RERANKED}" for name in names if reranked), *names)


def _judged(
    retrieval: Retrieval, pipelines: Sequence[str]
) -> tuple[dict[int, dict[str, Judged]], dict[str, list[int]]]:
    """Return the rankings by question, if its gold is known, and pipeline; and depths by pipeline.

    Raises
    ------
    ValueError
        If no question says which passages are relevant, a pipeline lacks what it needs, or no
        question of the second half has five passages.
    """
    questions = retrieval.data.questions
    known = [number for number, question in enumerate(questions) if question.gold]
    if not known:
        raise ValueError("no question says which of its passages are relevant; give gold")
    found = {
        name: [each.passages for each in retrieval.rankings(name, max(DEPTHS))]
        for name in pipelines
    }
    for name, each in found.items():
        most = max(map(len, each[len(each) // 2 :]))
        if most < K:
            raise ValueError(
                f"no question of the second half has more than {counted(most, 'document')} "
                f"({name}); Tables 2 and 3, which are of that half, take {K}: give one of its "
                "questions as many, or the questions in another order"
            )
    longest = {name: max(map(len, each)) for name, each in found.items()}
    rankings: dict[int, dict[str, Judged]] = {
        number: {
            name: [(each.text, each.id in questions[number].gold) for each in ranked[number]]
            for name, ranked in found.items()
        }
        for number in known
    }
    return rankings, {name: [k for k in DEPTHS if k <= most] for name, most in longest.items()}


@dataclass(frozen=True)
class _Asking:
    """The experiments that need a model; `abstain` is the prompt that lets it abstain."""

    asking: tables.Asking
    model: Generator
    retrieval: Retrieval
    rankings: Mapping[int, Mapping[str, Judged]]
    abstain: PromptTemplate

    def effects(self) -> tuple[dict[int, dict[str, list[float]]], list[Failure]]:
        """Return the effects by question, pipeline and rank, 0 if relevant; and the failures."""
        questions = self.retrieval.data.questions
        asked = {
            number: [
                abstention_request(
                    self.abstain.render([text], questions[number].question), exact=self._exact
                )
                for each in ranked.values()
                for text, relevant in each
                if not relevant
            ]
            for number, ranked in self.rankings.items()
        }
        what = "distracting effect of single passages"
        kept, failures = self.asking.answers(what, asked, at="distracting effect")
        found = {}
        for number, responses in kept.items():
            effects = map(effect_of, responses)
            found[number] = {
                name: [0.0 if relevant else next(effects) for _, relevant in each]
                for name, each in self.rankings[number].items()
            }
        return found, failures

    def table_1(
        self, effects: Mapping[int, Mapping[str, Sequence[float]]], pipeline: str
    ) -> Outcomes | None:
        """Return Table 1, of the first half; None if none of its questions can be asked so."""
        asked = self.retrieval.data.questions
        chosen = {
            number: controlled.controlled_question(
                asked[number].question,
                asked[number].answers,
                self.rankings[number][pipeline],
                each[pipeline],
            )
            for number, each in effects.items()
            if number < len(asked) // 2
        }
        questions = {number: each for number, each in chosen.items() if each is not None}
        if not questions:
            return None
        check_questions([*questions.values()], K)
        cells = {
            number: controlled.requests(each, ANSWER, self.abstain, exact=self._exact)
            for number, each in questions.items()
        }
        asked_of = {number: [*each.values()] for number, each in cells.items()}
        kept, failures = self.asking.answers("one relevant passage rotated", asked_of, at="Table 1")
        said = [
            (questions[number], dict(zip(cells[number], each, strict=True)))
            for number, each in kept.items()
        ]
        return {"failures": [*map(asdict, failures)], **controlled.table_1(said)}

    def tables_2_and_3(self, table_1: Outcomes | None, pipelines: Sequence[str]) -> Outcomes:
        """Return the comparison of the second half, by what the first half says of the model."""
        whole = self.retrieval.data
        second = replace(whole, questions=whole.questions[len(whole.questions) // 2 :])
        profile: PositionProfile | None = None
        strategies = ["sequential", "inverse", "shuffle"]
        if table_1 is not None:
            profile = controlled.profile_of(self.model.name, table_1)
            strategies += ["max_relevance"]
            strategies += [] if profile.distraction is None else ["min_distraction"]
        comparison = Comparison(
            pipelines=pipelines,
            ks=(K,),
            strategies=strategies,
            graders=(GRADER,),
            template=ANSWER,
            profile=profile,
            embed=self.retrieval.embed,
            reranker=self.retrieval.reranker,
            # All but one may fail: what is left is reported next to the failures.
            max_failed=1 - 0.5 / len(second.questions),
        )
        job = comparison.job(self.model, second, journal=self.asking.client.journal)
        plan = job.plan()
        what, total = "the retrieved passages arranged", plan.kept + plan.calls
        watching = tables.watched(self.asking.console, what, total)
        with watching as advance, keeping(job.client.journal):
            result = job.run(on_answer=advance, on_wait=self.asking.console.say)
        found: Outcomes = json.loads(result.to_json())
        return found

    @property
    def _exact(self) -> bool:
        return isinstance(self.model, ScoringModel)


def _parts(found: Outcomes, ids: Sequence[str]) -> Parts:
    paper, compared = found["published_percent"], found["tables_2_and_3"]
    measures, label = found["table_4"], found["model"]
    first, *_ = settings = compared["settings"]
    where = f"{label}, {first['pipeline']}"
    yield f"\nTable 1: accuracy by slot of the relevant passage ({where})"
    if found["table_1"] is None:
        yield (
            f"Not measured: no question of the first half ({counted(len(ids) // 2, 'question')}) "
            "has a retrieved relevant passage and four weak distractors. MaxRel and MinDist need "
            "it."
        )
    else:
        yield from controlled.parts(found["table_1"], paper["table_1"])
        yield from tables.left_out(found["table_1"]["failures"], ids, "Table 1")
    yield f"\nTable 2: accuracy by strategy, k = 5 ({where})"
    yield _strategies({"here": first}, paper["table_2"])
    yield f"\nTable 3: accuracy by retrieval and strategy, k = 5 ({label})"
    yield _strategies({each["pipeline"]: each for each in settings}, paper["table_3"])
    asked = [each["id"] for each in compared["questions"]]
    for each in settings:
        where = f"Tables 2 and 3, {each['pipeline']}, k={K}"
        yield from tables.left_out(each["failures"], asked, where)
    yield "\nTable 4: questions with a hard distractor in the top k"
    yield _depths("Hard", measures, paper["table_4"])
    some = next(figure for each in measures.values() for figure in each.values())
    judged = counted(len(some["outcomes"]), "question")
    yield f"\nFigure 1: the top k of {judged} (the paper's figures are drawn)"
    for measure in ("HITS", "Precision", "MaxDE", "MeanDE"):
        yield _depths(measure, measures, {})
    if len({frozenset(each) for each in measures.values()}) > 1:
        yield "-: deeper than any ranking of that pipeline."
    yield from tables.left_out(found["failures"], ids, "Tables 1 and 4 and Figure 1")
    yield PAPER["footnote"]


def _strategies(settings: Mapping[str, Outcomes], paper: Mapping[str, Sequence[float]]) -> Table:
    rows, columns = [], PAPER["strategies"]
    for name, setting in settings.items():
        known = {each["name"]: each for each in setting["strategies"]}
        figures: list[tables.Measured | None] = [None] * len(columns)
        p_values: list[float | None] = [None] * len(columns)
        for at, strategy in enumerate(columns):
            if strategy in known:
                figures[at] = tables.measured(np.array(known[strategy]["outcomes"][GRADER]))
                p_values[at] = known[strategy]["against"].get("shuffle", {}).get("p_value")
        rows += [*tables.our_rows(name, figures), tables.p_row(p_values)]
    return tables.grid(["", *columns.values()], [*rows, *tables.paper_rows(paper)])


def _depths(
    measure: str,
    measures: Mapping[str, Mapping[str, tables.Measured]],
    paper: Mapping[str, Sequence[float]],
) -> Table:
    depths = [k for k in DEPTHS if any(f"{measure}@{k}" in each for each in measures.values())]
    rows = []
    for name, figures in measures.items():
        rows += tables.our_rows(name, [figures.get(f"{measure}@{k}") for k in depths], decimals=1)
    shown = {name: values[: len(depths)] for name, values in paper.items()}
    return tables.grid([measure, *(f"k = {k}" for k in depths)], [*rows, *tables.paper_rows(shown)])
