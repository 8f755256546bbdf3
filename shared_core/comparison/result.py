"""The whole result of a comparison: every outcome of every question, and what follows from them.

The JSON of a result (`ComparisonResult.to_json`) has the fields of `ComparisonResult` and of the
classes above it, with the same names and nesting: tuples are lists,
mappings are objects. It holds everything that a report shows, and nothing in it but the seconds of
optional steps depends on when the comparison was run, or how often it was interrupted. Questions,
ranks and slots count from 0; outcomes, means and differences are in outcome units: 1 is right, 0 is
wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self, TypeAlias, cast

from shared_core._extras import require
from shared_core.comparison.questions import Question
from shared_core.evaluation.significance import PairedComparison

BASELINES = SEQUENTIAL, SHUFFLE = "sequential", "shuffle"
"""What every strategy is compared with: the ranked order, and no order at all."""

Layout: TypeAlias = Literal["after", "before", "both"]
"""Where the question stands: after the passages, before them, or at both ends."""

WHERE: Mapping[Layout, str] = {"after": "last", "before": "first", "both": "first and last"}
"""The same in words."""

VerdictKind: TypeAlias = Literal[
    "gain",
    "put_best_elsewhere",
    "ranked_order_helps",
    "no_difference",
    "all_wrong",
    "all_right",
    "too_few",
    "order_matters",
    "order_not_shown",
]
"""Of several settings, that of the first of these is what is said first."""


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
        `adjusted` is corrected for all comparisons of the whole result. A baseline has none against
        itself. The shuffle's is the negative of the ranked order's, and both count as one. Empty
        for a single question.
    """

    name: str
    orders: tuple[tuple[tuple[int, ...], ...], ...]
    answers: tuple[tuple[str, ...], ...]
    by_order: Mapping[str, tuple[tuple[float, ...], ...]]
    outcomes: Mapping[str, tuple[float, ...]]
    estimates: Mapping[str, Estimate]
    against: Mapping[str, PairedComparison]


@dataclass(frozen=True, kw_only=True)
class Flips:
    """How many answers change with the order alone, which needs no accepted answers.

    Attributes
    ----------
    changed
        Share of the answers in random orders that are not that in the ranked order.
    again
        Share of the answers to the ranked order that change when the same is asked again: 0 of a
        local model, which always takes the likeliest token; None if that was not asked.
    difference, interval
        `changed` less `again`, over the same questions, and its interval; None as well.
    """

    changed: Estimate
    again: Estimate | None
    difference: float | None = None
    interval: tuple[float, float] | None = None


def setting_name(pipeline: str, k: int, layout: Layout) -> str:
    """Return what a setting is called, for a person."""
    where = "" if layout == "after" else f", question {WHERE[layout]}"
    return f"{pipeline}, k={k}{where}"


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
        ``"order_matters"``, ``"order_not_shown"``: there are no accepted answers; more answers
        change with the order than without, or that is not shown.
    text
        The same in words, with the figures.
    strategy
        For ``"gain"``, the strategy that gains most.
    """

    kind: VerdictKind
    text: str
    strategy: str | None = None


_NOT_JUDGED = Verdict(kind="too_few", text="not judged yet")


@dataclass(frozen=True, kw_only=True)
class SettingResult:
    """All strategies on the passages of one pipeline and one k.

    Attributes
    ----------
    pipeline, k, layout
        Where the passages come from, how many at most, and where the question stands.
    flips
        How many answers change with the order; None where probabilities were measured, or no
        order was another.
    questions
        Indices into `ComparisonResult.questions` of those that are compared. All per-question
        tuples of the setting run over them.
    failures
        The others.
    passages
        Question -> rank -> id of the passage.
    gold_known
        Number of questions whose gold passages are known.
    gold_ranks
        Question -> rank of the best-ranked gold passage; None where none is among them, or none
        is known.
    strategies
        The baselines first.
    questions_needed
        How many questions would show a difference of 0.03 between any of the strategies and the
        ranked order, with a chance of about 80%; None for a single question.
    verdict
        What follows.
    """

    pipeline: str
    k: int
    questions: tuple[int, ...]
    failures: tuple[Failure, ...]
    passages: tuple[tuple[str, ...], ...]
    gold_known: int
    gold_ranks: tuple[int | None, ...]
    strategies: tuple[StrategyResult, ...]
    questions_needed: int | None
    verdict: Verdict = _NOT_JUDGED
    layout: Layout = "after"
    flips: Flips | None = None

    @property
    def name(self) -> str:
        """Pipeline, k and layout, for a person."""
        return setting_name(self.pipeline, self.k, self.layout)

    @property
    def hit_rates(self) -> tuple[float, ...]:
        """Share of the questions whose best gold passage has each rank, as `CAUS` takes them.

        Over those whose gold passages are known; empty if there are none. The first is hit@1, and
        their sum hit@k.
        """
        if not self.gold_known:
            return ()
        return tuple(self.gold_ranks.count(rank) / self.gold_known for rank in range(self.k))

    @property
    def over_ranked(self) -> dict[str, PairedComparison]:
        """Strategy -> difference from the ranked order."""
        return {
            each.name: each.against[SEQUENTIAL]
            for each in self.strategies
            if SEQUENTIAL in each.against
        }

    def shown(self, kind: Literal["better", "worse"]) -> dict[str, PairedComparison]:
        """Return the strategies that are shown to beat the ranked order, or to lose against it."""
        return {name: each for name, each in self.over_ranked.items() if each.shown == kind}


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """What an optional step of a pipeline, or another layout, gains, and what it costs.

    Attributes
    ----------
    step, setting
        Its name, such as ``"+rerank"`` or ``"question first instead of last"``, and that of the
        setting with it.
    gain
        Outcome of the ranked order less that of the same setting without the step, or in the first
        layout, over the questions that both answer; its `adjusted` is corrected for the steps and
        layouts of the result alone.
    seconds
        Median time of the step alone for a question, on the machine that compared; of several
        pipelines the longest, as a reranker may know what it has scored. None of a layout.
    """

    step: str
    setting: str
    gain: PairedComparison
    seconds: float | None = field(compare=False)

    @property
    def of_layout(self) -> bool:
        """Whether it is of a layout, which takes no time."""
        return self.seconds is None


@dataclass(frozen=True, kw_only=True)
class ComparisonResult:
    """The result of a comparison.

    Attributes
    ----------
    model, identity
        Name of the model, and what distinguishes it from another of the same name.
    questions
        All questions of the data, in their order.
    passages
        Id -> text of every passage that a setting retrieved.
    settings
        One for each pipeline, k and layout.
    verdict
        What follows from all of them.
    graders
        Names; the first one decides.
    tests
        Number of comparisons that the p-values are corrected for.
    shuffles
        Orders drawn per question for ``"shuffle"``.
    seed
        Of shuffles and intervals.
    template
        The prompt.
    profile, embedding
        Names of the position profile and of the embedding model, if there were any.
    token_budget
        Most tokens of the passages of a prompt, estimated; None: no limit.
    steps
        What the optional steps gain, where a setting without them is compared, too; and what
        other layouts than the first gain.
    version
        Version of posrag.
    format
        Of the JSON. Formats 1 and 2, of versions before the first release, had other fields.
    """

    model: str
    identity: str
    questions: tuple[Question, ...]
    passages: Mapping[str, str]
    settings: tuple[SettingResult, ...]
    verdict: Verdict
    graders: tuple[str, ...]
    tests: int
    shuffles: int
    seed: int
    template: str
    profile: str | None = None
    embedding: str | None = None
    version: str | None = None
    token_budget: int | None = None
    steps: tuple[StepResult, ...] = ()
    format: Literal[3] = 3

    @property
    def baselines(self) -> tuple[str, ...]:
        """What reports compare with: nothing if the ranked answers themselves are the measure."""
        return BASELINES if self.questions[0].answers else ()

    def to_json(self) -> str:
        """Return all of it as JSON; the same result gives the same text."""
        lines = (f'"{name}": {json.dumps(value)}' for name, value in asdict(self).items())
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote.

        Raises
        ------
        ValueError
            If it is not a comparison, or of another format.
        MissingExtraError
            If pydantic is not installed.
        """
        pydantic: Any = require("pydantic", extra="eval")
        try:
            return cast(Self, pydantic.TypeAdapter(cls).validate_json(text))
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            where = ": ".join([*map(str, first["loc"]), first["msg"]])
            raise ValueError(
                f"not the JSON of a comparison by this version of posrag: {where}; compare again: "
                "answers that were kept are not asked for again"
            ) from error
