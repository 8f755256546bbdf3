"""Settings: the passages that a pipeline finds, at one k; strategies are compared within one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from shared_core.comparison.pipelines import GIVEN, Pipeline, Retrieval
from shared_core.comparison.ranked import RankedPassages
from shared_core.comparison.strategy import RankedCase
from shared_core.comparison.wording import counted
from shared_core.types import Passage


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


def retrieved(
    retrieval: Retrieval, pipelines: Sequence[str] | None, ks: Sequence[int]
) -> tuple[Setting, ...]:
    """Retrieve for every pipeline and k.

    Parameters
    ----------
    retrieval
        What ranks.
    pipelines
        Names; if None, ``"given"`` where every question has documents, else ``"hybrid"``.
    ks
        Numbers of passages; where they become spans, there are fewer of these if some touch.

    Raises
    ------
    ValueError
        If a pipeline needs what is not there, or no question has as many passages as the largest
        k: it would repeat a smaller one under another name.
    """
    questions = retrieval.data.questions
    if pipelines is None:
        pipelines = (GIVEN,) if all(each.ranking for each in questions) else ("hybrid",)
    found = []
    for pipeline in map(Pipeline, pipelines):
        # A smaller k is the beginning of the largest one's ranking.
        rankings = retrieval.rankings(pipeline, max(ks))
        longest = max(len(ranking.passages) for ranking in rankings)
        if longest < max(ks):
            raise ValueError(
                f"k={max(ks)}, but no question has more than {counted(longest, 'passage')} "
                f"({pipeline.name})"
            )
        for k in ks:
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
