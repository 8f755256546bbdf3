"""Passages retrieved for the questions of PositionalBias, judged by the gold passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared_core.cli.reproduce.controlled import K
from shared_core.cli.reproduce.published import DEPTHS
from shared_core.comparison.pipelines import Pipeline
from shared_core.comparison.retrieval import Retrieval
from shared_core.evaluation import JudgedRanking
from shared_core.wording import counted

FEWEST = 4
"""Questions: two for each half."""


def judged_rankings(
    retrieval: Retrieval, pipelines: Sequence[str]
) -> dict[str, list[JudgedRanking]]:
    """Return by pipeline the rankings of the questions whose gold passages are known.

    Raises
    ------
    ValueError
        If there are fewer than four questions, none has gold passages, or a pipeline lacks what
        it needs, or makes spans.
    """
    questions = retrieval.data.questions
    if len(questions) < FEWEST:
        raise ValueError(
            f"{counted(len(questions), 'question')} will not do: one half is for Table 1, the "
            f"other for Tables 2 and 3; give at least {FEWEST}"
        )
    if not any(question.gold for question in questions):
        raise ValueError("no question says which of its passages are relevant; give gold")
    for name in pipelines:
        if Pipeline(name).spanned:
            raise ValueError(f"--pipelines {name}: the tables are of passages, not of spans")
    return {
        name: [
            JudgedRanking(
                question=question.question,
                passages=tuple(passage.text for passage in ranked.passages),
                relevant=tuple(passage.id in question.gold for passage in ranked.passages),
            )
            for question, ranked in zip(
                questions, retrieval.rankings(Pipeline(name), max(DEPTHS)), strict=True
            )
            if question.gold
        ]
        for name in pipelines
    }


def depths_of(rankings: Mapping[str, Sequence[JudgedRanking]]) -> dict[str, tuple[int, ...]]:
    """Return, by pipeline, the depths of Table 4 that its longest ranking reaches.

    Raises
    ------
    ValueError
        If no ranking has five passages.
    """
    longest = {
        name: max(len(each.passages) for each in ranked) for name, ranked in rankings.items()
    }
    if max(longest.values()) < K:
        most = counted(max(longest.values()), "document")
        raise ValueError(f"no question has more than {most}; the tables take {K}")
    return {name: tuple(k for k in DEPTHS if k <= most) for name, most in longest.items()}


def check_second_half(retrieval: Retrieval, pipelines: Sequence[str]) -> None:
    """Check that every pipeline finds five passages for a question of Tables 2 and 3.

    Raises
    ------
    ValueError
        If one does not.
    """
    half = len(retrieval.data.questions) // 2
    for name in pipelines:
        ranked = retrieval.rankings(Pipeline(name), K)[half:]
        longest = max(len(each.passages) for each in ranked)
        if longest < K:
            raise ValueError(
                f"no question of the second half has more than {counted(longest, 'document')} "
                f"({name}); Tables 2 and 3, which are of that half, take {K}: give one of its "
                "questions as many, or the questions in another order"
            )
