"""The parts of a comparison's result: of one strategy, one setting, one question.

`shared_core.comparison.result` describes their JSON and their units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from shared_core.evaluation.significance import PairedComparison

BASELINES = ("sequential", "shuffle")
"""What every strategy is compared with: the ranked order, and no order at all."""

VerdictKind: TypeAlias = Literal[
    "too_few",
    "gain",
    "put_best_elsewhere",
    "ranked_order_helps",
    "no_difference",
    "all_wrong",
    "all_right",
]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean over questions.

    Attributes
    ----------
    mean
        In [0, 1], higher is better.
    interval
        Its bootstrap interval (lower, upper); None for a single question.
    n
        Number of questions.
    """

    mean: float
    interval: tuple[float, float] | None
    n: int


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A question that a setting leaves out, because one of its strategies got no answer to it.

    Attributes
    ----------
    question
        Index into `ComparisonResult.questions`.
    strategy
        The first strategy that failed; the question is left out of all, so that they stay paired.
    reason
        What the model said, in one line.
    """

    question: int
    strategy: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class StrategyResult:
    """The outcomes of one strategy in one setting.

    The outer tuples run over the setting's `questions`. The inner ones of `orders` and `answers`
    run over arrangements of the same question: several for ``"shuffle"``, otherwise one.

    Attributes
    ----------
    name
        Name of the strategy.
    orders
        Question -> arrangement -> slot -> rank.
    answers
        Question -> arrangement -> what the model said.
    by_order
        Grader -> question -> arrangement -> outcome.
    outcomes
        Grader -> question -> the mean over its arrangements.
    estimates
        Grader -> mean outcome.
    against
        Baseline (``"sequential"``, ``"shuffle"``) -> difference by the deciding grader. Its
        `adjusted` is corrected for all comparisons of the whole result, and `detectable` is at
        their corrected level. A baseline has none against itself. The shuffle's is the negative of
        the ranked order's, and both count as one. Empty for a single question.
    """

    name: str
    orders: tuple[tuple[tuple[int, ...], ...], ...]
    answers: tuple[tuple[str, ...], ...]
    by_order: Mapping[str, tuple[tuple[float, ...], ...]]
    outcomes: Mapping[str, tuple[float, ...]]
    estimates: Mapping[str, Estimate]
    against: Mapping[str, PairedComparison]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What follows for one setting, or for all of them.

    Attributes
    ----------
    kind
        ``"too_few"``: no order is shown to differ from the ranked one, and there are too few
        questions for that.
        ``"gain"``: a strategy beats the ranked order, and by more than shuffling does.
        ``"put_best_elsewhere"``: shuffling beats the ranked order, and no strategy by more.
        ``"ranked_order_helps"``: the ranked order beats shuffling, and nothing is shown to beat it.
        ``"no_difference"``: nothing is shown; keep the ranked order.
        ``"all_wrong"``, ``"all_right"``: the deciding grader gave every answer of every strategy
        0, or every one 1, so that the orders cannot be compared.
    text
        The same in words, with the figures.
    strategy
        For ``"gain"``, the strategy that gains most.
    """

    kind: VerdictKind
    text: str
    strategy: str | None = None


@dataclass(frozen=True, kw_only=True)
class SettingResult:
    """All strategies on the passages of one pipeline and one k.

    Attributes
    ----------
    pipeline, k
        Where the passages come from, and how many at most.
    questions
        Indices into `ComparisonResult.questions` of those that are compared. All per-question
        tuples of the setting run over them.
    failures
        The others.
    passages
        Question -> rank -> id of the passage.
    gold_ranks
        Question -> rank of the best-ranked gold passage; None where none is among them, or none
        is known.
    retrieval
        Measure (``"hit@1"``, ``"hit@k"``, ``"nDCG@k"``, ``"MRR"`` with the k in figures) -> mean
        over the questions whose gold passages are known; empty if there are none.
    strategies
        The baselines first.
    questions_needed
        How many questions would show a difference of `ComparisonResult.effect` between any of
        the strategies and the ranked order, with a chance of about `ComparisonResult.power`; None
        for a single question.
    verdict
        What follows.
    """

    pipeline: str
    k: int
    questions: tuple[int, ...]
    failures: tuple[Failure, ...]
    passages: tuple[tuple[str, ...], ...]
    gold_ranks: tuple[int | None, ...]
    retrieval: Mapping[str, Estimate]
    strategies: tuple[StrategyResult, ...]
    questions_needed: int | None
    verdict: Verdict

    @property
    def name(self) -> str:
        """Pipeline and k, for a person."""
        return f"{self.pipeline}, k={self.k}"
