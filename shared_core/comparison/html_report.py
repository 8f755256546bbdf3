"""A comparison as one HTML file that a browser shows without using the network."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import groupby
from typing import Any, NamedTuple, Self

from shared_core._extras import require
from shared_core.comparison.result import (
    BASELINES,
    ComparisonResult,
    Estimate,
    SettingResult,
    VerdictKind,
)
from shared_core.comparison.text_report import (
    NOT_AVAILABLE,
    capitalised,
    empty_answer_lines,
    estimate_text,
    left_out,
    method_lines,
    questions_asked,
    retrieval_line,
    signed,
    smallest,
)
from shared_core.evaluation.significance import PairedComparison
from shared_core.wording import counted, shortened

MOST_QUESTIONS, MOST_FAILURES = 100, 20
"""Most rows that a table of them shows; the JSON holds all."""

_MOST_FIGURES = 12
"""With more slots there is no room for figures."""

_LONGEST_TEXT, _LONGEST_ID, _LONGEST_ORDER = 300, 40, 12

_IN_SHORT: Mapping[VerdictKind, str] = {
    "too_few": "too few questions to tell",
    "gain": "a strategy gains",
    "put_best_elsewhere": "the ranked order is worse than shuffling",
    "ranked_order_helps": "the ranked order helps",
    "no_difference": "no difference shown",
    "all_wrong": "no answer is right",
    "all_right": "every answer is right",
}


@dataclass(frozen=True)
class Scale:
    """A linear axis.

    Attributes
    ----------
    lower, upper
        Values at its ends.
    step
        Distance of its ticks.
    format
        Of their labels.
    """

    lower: float
    upper: float
    step: float
    format: str

    @classmethod
    def around(cls, values: Iterable[float]) -> Self:
        """Return an axis of gains that holds 0 and all of the values, and at most 7 ticks."""
        values = [0.0, *values]
        lower, upper = min(values), max(values)
        space = 0.04 * (upper - lower) or 0.04
        lower, upper = lower - space, upper + space
        power = 10.0 ** math.floor(math.log10((upper - lower) / 7))
        factor = next(each for each in (1, 2, 5, 10) if (upper - lower) / (each * power) <= 7)
        return cls(lower, upper, factor * power, "+.2g")

    def at(self, value: float) -> float:
        """Return where a value is, in per cent; values beyond an end are at that end."""
        share = (value - self.lower) / (self.upper - self.lower)
        return round(100 * min(1.0, max(0.0, share)), 2)

    def width(self, lower: float, upper: float) -> float:
        """Return the width from one value to another, in per cent."""
        return round(self.at(upper) - self.at(lower), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Multiples of the step, from end to end, with their labels."""
        first, last = math.ceil(self.lower / self.step), math.floor(self.upper / self.step)
        values = [round(number * self.step, 6) for number in range(first, last + 1)]
        return [(value, f"{value:{self.format}}" if value else "0") for value in values]


class Row(NamedTuple):
    """A mean with its interval, in a plot; `band` is half the width of a band around 0."""

    label: str
    text: str
    mean: float
    interval: tuple[float, float] | None
    kind: str = "plain"
    band: float = 0.0


class Column(NamedTuple):
    """Head of a column; a group has a head above it. Figures are sorted by their values."""

    head: str
    is_figure: bool = True
    group: str = ""


class Cell(NamedTuple):
    """A cell: its text, what it is sorted by if it is a figure, and its class if any."""

    text: str
    value: float | None = None
    kind: str = ""


Table = tuple[list[Column], list[list[Cell]]]


def to_html(result: ComparisonResult) -> str:
    """Return the report of a comparison as one HTML file.

    Style and script are in it, and it forbids the browser to load anything else. The same result
    gives the same text. It shows a part of long tables, and says so.

    Raises
    ------
    MissingExtraError
        If Jinja2 is not installed.
    """
    jinja: Any = require("jinja2", extra="eval")
    environment = jinja.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja.StrictUndefined
    )
    settings = [_setting(result, each, at) for at, each in enumerate(result.settings)]
    gains = [row for each in settings for row in each["gains"]["rows"]]
    headline, _, lead = result.verdict.text.partition("; ")
    strategies = counted(len(result.settings[0].strategies), "strategy", "strategies")
    text: str = environment.from_string(_asset("page.html")).render(
        title=f"Does the order of the passages matter to {result.model}?",
        headline=headline,
        lead=lead,
        sentence=partial(_sentence, result=result),
        summary=f"{questions_asked(result)}, {counted(len(settings), 'setting')}, {strategies}, "
        f"graded by {result.graders[0]}",
        decisive=result.graders[0],
        level=f"{result.confidence:.0%}",
        power=f"{result.power:.0%}",
        comparisons=counted(result.tests, "comparison"),
        settings=settings,
        gain_scale=Scale.around(bound for row in gains for bound in (*row.interval, row.mean)),
        outcome_scale=Scale(0.0, 1.0, 0.25, "g"),
        percent=lambda share: f"{share:.2f}%",
        groups=lambda columns: [
            (group, len([*each])) for group, each in groupby(columns, key=lambda each: each.group)
        ],
        method=[*method_lines(result)],
        provenance=_provenance(result),
        prompt=result.template,
        style=_asset("page.css"),
        script=_asset("page.js"),
        hashed=_hash,
    )
    # What cannot be encoded, such as half a surrogate pair, is "?".
    return text.encode("utf-8", "replace").decode()


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash by which a policy admits this style or script alone: others are not run."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _sentence(text: str, result: ComparisonResult) -> str:
    """Return a clause as a sentence; a strategy's name keeps its lower case."""
    names = {strategy.name for setting in result.settings for strategy in setting.strategies}
    return f"{text if text.partition(' ')[0] in names else capitalised(text)}."


def _provenance(result: ComparisonResult) -> list[tuple[str, str]]:
    return [
        ("model", result.model),
        ("identity", result.identity),
        ("embedding", result.embedding or NOT_AVAILABLE),
        ("position profile", result.profile or NOT_AVAILABLE),
        ("graders", ", ".join(result.graders)),
        ("random orders a question", str(result.shuffles)),
        ("seed", str(result.seed)),
        ("confidence, power", f"{result.confidence:g}, {result.power:g}"),
        ("posrag", result.version or NOT_AVAILABLE),
    ]


def _setting(result: ComparisonResult, setting: SettingResult, number: int) -> dict[str, Any]:
    """Return what the page says of a setting."""
    text = f"{counted(len(setting.questions), 'question')} compared."
    if len(result.settings) > 1:  # otherwise it is the verdict at the top
        text = f"{_sentence(setting.verdict.text, result)} {text}"
    shown, total = min(MOST_QUESTIONS, len(setting.questions)), len(setting.questions)
    whole = counted(total, "question")
    part = f"{shown} of {whole}" if total > shown else f"all {whole}"
    return {
        "id": f"setting-{number}",
        "name": setting.name,
        "in_short": _IN_SHORT[setting.verdict.kind],
        "text": text,
        "gains": _gains(setting, number, level=1 - result.confidence),
        "means": _means(setting, number, result.graders[0]),
        "ranks": _ranks(result, setting, number),
        "slots": _slots(setting, number),
        "strategies": _strategies(result, setting),
        "retrieval": _retrieval(setting),
        "retrieval_line": retrieval_line(setting),
        "left_out": _left_out(result, setting),
        "failures": _failures(result, setting),
        "empty_answers": [*empty_answer_lines(setting)],
        "questions_line": f"Question by question: {part}, those first on which the strategies "
        "differ most",
        "questions": _questions(result, setting),
    }


def _plot(name: str, title: str, description: Iterable[str], **content: object) -> dict[str, Any]:
    """Return a drawing, with what it says to those who cannot see it."""
    return {"name": name, "title": title, "description": "; ".join(description), **content}


def _gains(setting: SettingResult, number: int, *, level: float) -> dict[str, Any]:
    rows = []
    for strategy in setting.strategies:
        gain = strategy.against.get(BASELINES[0])
        if gain is not None:
            kind, (lower, upper) = "open", gain.interval
            if gain.adjusted <= level and not lower <= 0 <= upper:
                kind = "better" if lower > 0 else "worse"
            figures = (gain.difference, gain.interval, kind, gain.detectable)
            rows.append(Row(strategy.name, signed(gain), *figures))
    return _intervals(rows, f"gain-{number}", f"Gain over the ranked order: {setting.name}")


def _means(setting: SettingResult, number: int, grader: str) -> dict[str, Any]:
    rows = [
        Row(strategy.name, estimate_text(found), found.mean, found.interval)
        for strategy in setting.strategies
        if (found := strategy.estimates.get(grader)) is not None
    ]
    return _intervals(rows, f"accuracy-{number}", f"Mean {grader} by strategy: {setting.name}")


def _intervals(rows: Sequence[Row], name: str, title: str) -> dict[str, Any]:
    return _plot(name, title, (f"{row.label} {row.text}" for row in rows), rows=rows)


def _ranks(result: ComparisonResult, setting: SettingResult, number: int) -> dict[str, Any] | None:
    """Return how many questions have their best gold passage at each rank, if it is known."""
    known = sum(bool(result.questions[question].gold) for question in setting.questions)
    if not known:
        return None
    found = [rank for rank in setting.gold_ranks if rank is not None]
    counts = [found.count(rank) for rank in range(setting.k)]
    missing = known - len(found)
    ranks = "; ".join(f"rank {rank}: {count}" for rank, count in enumerate(counts, start=1))
    return _plot(
        f"ranks-{number}",
        f"Rank of the best gold passage: {setting.name}",
        [ranks, f"not among them: {missing}"],
        bars=[*zip(_labels(setting.k), counts, strict=True), ("none", missing)],
        most_figures=_MOST_FIGURES,
    )


def _slots(setting: SettingResult, number: int) -> dict[str, Any] | None:
    """Return how often each strategy puts the best gold passage into each slot, if one is found."""
    found = [(at, rank) for at, rank in enumerate(setting.gold_ranks) if rank is not None]
    if not found:
        return None
    rows = []
    for strategy in setting.strategies:
        shares = [0.0] * setting.k
        for at, rank in found:
            orders = strategy.orders[at]
            for order in orders:
                if rank in order:  # one that is left out is in no slot
                    shares[order.index(rank)] += 1 / len(orders) / len(found)
        rows.append((strategy.name, shares))
    return _plot(
        f"slots-{number}",
        f"Slot of the best gold passage by strategy: {setting.name}",
        (f"{name}: {' '.join(f'{share:.0%}' for share in shares)}" for name, shares in rows),
        rows=rows,
        labels=_labels(setting.k),
        most=max(max(shares) for _, shares in rows) or 1.0,
        most_figures=_MOST_FIGURES,
        note=f"% of {len(found):,} found",
    )


def _labels(k: int) -> list[str]:
    """Return labels of slots from 1; only every fifth where there is no room for all."""
    return [
        str(slot) if k <= _MOST_FIGURES or slot == 1 or slot % 5 == 0 else ""
        for slot in range(1, k + 1)
    ]


def _strategies(result: ComparisonResult, setting: SettingResult) -> Table:
    """Return means, differences from both baselines, and the order itself."""
    level = f"{result.confidence:.0%}"
    heads = (f"difference [{level}]", "p", "p (Holm)", "detectable")
    columns = [
        Column("strategy", is_figure=False),
        *(Column(f"{grader} [{level}]") for grader in result.graders),
        *(Column(head, group=f"less {baseline}") for baseline in BASELINES for head in heads),
        Column("ranks, slot by slot", is_figure=False),
    ]
    rows = [
        [
            Cell(strategy.name),
            *(_estimate(strategy.estimates.get(grader)) for grader in result.graders),
            *(cell for name in BASELINES for cell in _difference(strategy.against.get(name))),
            Cell(_order(setting, strategy.orders), kind="order"),
        ]
        for strategy in setting.strategies
    ]
    return columns, rows


def _estimate(estimate: Estimate | None) -> Cell:
    return Cell(NOT_AVAILABLE) if estimate is None else Cell(estimate_text(estimate), estimate.mean)


def _difference(found: PairedComparison | None) -> list[Cell]:
    if found is None:
        return [Cell("")] * 4
    return [
        Cell(signed(found), found.difference),
        *(Cell(f"{p_value:.2g}", p_value) for p_value in (found.p_value, found.adjusted)),
        Cell(smallest(found), found.detectable),
    ]


def _order(setting: SettingResult, by_question: Sequence[Sequence[tuple[int, ...]]]) -> str:
    """Return the ranks in the order of their slots, if equally many passages have the same order.

    It is that of the most passages, which may be fewer than k: of spans, or where little was found.
    """
    orders: dict[int, set[tuple[int, ...]]] = {}
    for passages, each in zip(setting.passages, by_question, strict=True):
        if passages:
            orders.setdefault(len(passages), set()).update(each)
    if not orders:
        return NOT_AVAILABLE
    if any(len(each) > 1 for each in orders.values()):
        return "differ"
    ranks = [str(rank + 1) for rank in orders[max(orders)].pop()]
    if len(ranks) > _LONGEST_ORDER:
        ranks[_LONGEST_ORDER // 2 : -_LONGEST_ORDER // 2] = ["…"]
    return " ".join(ranks)


def _retrieval(setting: SettingResult) -> Table | None:
    if not setting.retrieval:
        return None
    rows = [
        [Cell(name), _estimate(each), Cell(f"{each.n:,}", each.n)]
        for name, each in setting.retrieval.items()
    ]
    return [Column("measure", is_figure=False), Column("mean"), Column("questions")], rows


def _left_out(result: ComparisonResult, setting: SettingResult) -> str:
    failed = len(setting.failures)
    first = f"; the first {MOST_FAILURES}:" if failed > MOST_FAILURES else ":"
    return left_out(failed, len(result.questions), "all strategies") + first


def _failures(result: ComparisonResult, setting: SettingResult) -> Table | None:
    if not setting.failures:
        return None
    rows = [
        [
            Cell(shortened(result.questions[failure.question].id, _LONGEST_ID)),
            Cell(failure.strategy),
            Cell(shortened(failure.reason, _LONGEST_TEXT), kind="long"),
        ]
        for failure in setting.failures[:MOST_FAILURES]
    ]
    return [Column(head, is_figure=False) for head in ("question", "strategy", "reason")], rows


def _questions(result: ComparisonResult, setting: SettingResult) -> Table:
    """Return which strategies were right, question by question."""
    grader = result.graders[0]
    outcomes = [strategy.outcomes.get(grader, ()) for strategy in setting.strategies]
    by_question = [*zip(*outcomes, strict=True)]
    numbers = sorted(
        range(len(by_question)), key=lambda at: min(by_question[at]) - max(by_question[at])
    )
    columns = [
        Column("id"),
        Column("question", is_figure=False),
        Column("accepted", is_figure=False),
        Column("gold rank"),
        *(Column(strategy.name) for strategy in setting.strategies),
    ]
    rows = []
    for at in numbers[:MOST_QUESTIONS]:
        asked, rank = result.questions[setting.questions[at]], setting.gold_ranks[at]
        rows.append(
            [
                Cell(shortened(asked.id, _LONGEST_ID), setting.questions[at]),
                Cell(shortened(asked.question, _LONGEST_TEXT), kind="long"),
                Cell(shortened(", ".join(asked.answers), _LONGEST_TEXT), kind="long"),
                Cell("") if rank is None else Cell(str(rank + 1), rank),
                *map(_outcome, by_question[at]),
            ]
        )
    return columns, rows


def _outcome(value: float) -> Cell:
    if value == 1:
        return Cell("✓", value, "right")
    return Cell("✗", value, "wrong") if value == 0 else Cell(f"{value:.2f}", value)
