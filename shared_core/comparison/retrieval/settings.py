"""Settings: the passages that a pipeline finds at one k. Strategies are compared within one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from shared_core.checking import check_distinct
from shared_core.comparison.questions import ComparedQuestion
from shared_core.comparison.retrieval.pipelines import GIVEN, Pipeline, RankedPassages
from shared_core.comparison.retrieval.ranking import Retrieval
from shared_core.comparison.strategies.base import RankedCase
from shared_core.sensitivity.questions import check_repeats
from shared_core.types import Passage
from shared_core.wording import counted

DEFAULT_K = 10
"""Default number of passages, where there are as many."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The passages of one pipeline and one k, question by question, best first."""

    pipeline: str
    k: int
    questions: tuple[str, ...]
    ranked: tuple[RankedPassages, ...]

    @property
    def name(self) -> str:
        """Pipeline and k, for a person."""
        return f"{self.pipeline}, k={self.k}"

    @property
    def passages(self) -> tuple[tuple[Passage, ...], ...]:
        """Question -> rank -> passage."""
        return tuple(each.passages for each in self.ranked)

    @cached_property
    def cases(self) -> tuple[RankedCase, ...]:
        """What strategies arrange."""
        return tuple(
            RankedCase(
                question=question,
                documents=[passage.text for passage in each.passages],
                scores=each.scores,
            )
            for question, each in zip(self.questions, self.ranked, strict=True)
        )


def retrieve_settings(
    retrieval: Retrieval, pipelines: Sequence[str] | None, ks: Sequence[int] | None
) -> tuple[Setting, ...]:
    """Retrieve for every pipeline and k.

    Parameters
    ----------
    retrieval
        What ranks.
    pipelines
        Names; if None, ``"given"`` where every question has documents, else ``"hybrid"``.
    ks
        Numbers of passages; there may be fewer spans, since passages that touch are joined. If
        None, `DEFAULT_K`, or as many as every pipeline finds for some question.

    Raises
    ------
    ValueError
        If there is no pipeline, or one needs what is not given, or finds the same for two questions
        with the same answers; if no question has two passages, or as many as the largest k, which
        would repeat a smaller one under another name.
    """
    questions = retrieval.data.questions
    if pipelines is None:
        pipelines = (GIVEN,) if all(each.ranking for each in questions) else ("hybrid",)
    check_distinct("pipelines", pipelines)
    retrieving = [name for name in pipelines if Pipeline(name).base != GIVEN]
    if retrieving:
        _check_retrievable(retrieving[0], questions)
    # A smaller k is the beginning of the largest one's ranking.
    most = DEFAULT_K if ks is None else max(ks)
    ranked = {pipeline: retrieval.rankings(pipeline, most) for pipeline in map(Pipeline, pipelines)}
    reached = _reached(ranked, ks)
    found = []
    for pipeline, rankings in ranked.items():
        for k in reached:
            top = [ranking.top(k) for ranking in rankings]
            found.append(
                Setting(
                    pipeline=pipeline.name,
                    k=k,
                    questions=tuple(each.question for each in questions),
                    ranked=tuple(map(retrieval.expanded, top) if pipeline.spanned else top),
                )
            )
    return tuple(found)


def _check_retrievable(pipeline: str, questions: Sequence[ComparedQuestion]) -> None:
    """Raise ValueError if only their given passages tell two questions apart."""
    try:
        check_repeats((each.question, frozenset(each.answers)) for each in questions)
    except ValueError as error:
        raise ValueError(
            f"{error}, or compare over {GIVEN!r} alone: {pipeline!r} finds the same for both"
        ) from error


def _reached(
    ranked: Mapping[Pipeline, Sequence[RankedPassages]], ks: Sequence[int] | None
) -> Sequence[int]:
    """Return the numbers of passages; raise ValueError if a pipeline never finds as many."""
    longest = {
        pipeline.name: max(len(ranking.passages) for ranking in rankings)
        for pipeline, rankings in ranked.items()
    }
    name = min(longest, key=longest.__getitem__)
    there = longest[name]
    if there < 2:
        raise ValueError(
            f"no question has more than {counted(there, 'passage')} ({name}); an order takes 2"
        )
    if ks is None:
        ks = (min(DEFAULT_K, there),)
    if there < max(ks):
        raise ValueError(
            f"k={max(ks)}, but no question has more than {counted(there, 'passage')} ({name}); "
            f"give --k {there}, or ks=({there},)"
        )
    return ks
