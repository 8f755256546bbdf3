"""The tables of one setting: strategies, retrieval, questions, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from shared_core.comparison.records import BASELINES, Estimate, SettingResult, StrategyResult
from shared_core.comparison.report.html.elements import folded, paragraph
from shared_core.comparison.report.html.intervals import signed
from shared_core.comparison.report.html.tables import EMPTY, Cell, Column, table
from shared_core.comparison.report.markdown import (
    NOT_AVAILABLE,
    estimate_text,
    left_out,
    retrieval_line,
    smallest,
)
from shared_core.comparison.result import ComparisonResult
from shared_core.wording import counted, shortened

MOST_QUESTIONS, MOST_FAILURES = 100, 20
"""Most rows that a table of them shows; the JSON holds all."""

_LONGEST_TEXT, _LONGEST_ID = 300, 40
_LONGEST_ORDER = 12


def strategy_table(result: ComparisonResult, setting: SettingResult) -> Element:
    """Return means, differences from both baselines, and the order itself."""
    level = f"{result.confidence:.0%}"
    columns = [
        Column("strategy", is_figure=False),
        *(Column(f"{grader} [{level}]") for grader in result.graders),
    ]
    for baseline in BASELINES:
        heads = (f"difference [{level}]", "p", "p (Holm)", "detectable")
        columns += [Column(head, group=f"less {baseline}") for head in heads]
    columns.append(Column("ranks, slot by slot", is_figure=False))
    rows = (
        [
            Cell(strategy.name),
            *(_estimate(strategy.estimates.get(grader)) for grader in result.graders),
            *(cell for baseline in BASELINES for cell in _against(strategy, baseline)),
            Cell(_order(setting, strategy), kind="order"),
        ]
        for strategy in setting.strategies
    )
    return table(f"Strategies: {setting.name}", columns, rows)


def retrieval_table(setting: SettingResult) -> Element:
    """Return how good the rankings are, or why that is not known."""
    if not setting.retrieval:
        return paragraph(retrieval_line(setting), "note")
    columns = [Column("measure", is_figure=False), Column("mean"), Column("questions")]
    rows = (
        [Cell(name), _estimate(estimate), Cell(f"{estimate.n:,}", estimate.n)]
        for name, estimate in setting.retrieval.items()
    )
    return table(f"Retrieval: {setting.name}", columns, rows)


def failure_parts(result: ComparisonResult, setting: SettingResult) -> Iterator[Element]:
    """Yield which questions are left out, and why."""
    failures = setting.failures
    if not failures:
        return
    yield paragraph(
        left_out(len(failures), len(result.questions), "all strategies")
        + (f"; the first {MOST_FAILURES}:" if len(failures) > MOST_FAILURES else ":")
    )
    heads = ("question", "strategy", "reason")
    rows = (
        [
            Cell(shortened(result.questions[failure.question].id, _LONGEST_ID)),
            Cell(failure.strategy),
            Cell(shortened(failure.reason, _LONGEST_TEXT), kind="long"),
        ]
        for failure in failures[:MOST_FAILURES]
    )
    yield table(
        f"Left out: {setting.name}", [Column(head, is_figure=False) for head in heads], rows
    )


def question_table(result: ComparisonResult, setting: SettingResult) -> Element:
    """Return which strategies were right, question by question, under a fold."""
    grader = result.graders[0]
    outcomes = [strategy.outcomes.get(grader, ()) for strategy in setting.strategies]
    by_question = [*zip(*outcomes, strict=True)]
    numbers = sorted(
        range(len(by_question)), key=lambda at: min(by_question[at]) - max(by_question[at])
    )[:MOST_QUESTIONS]
    columns = [
        Column("id"),
        Column("question", is_figure=False),
        Column("accepted", is_figure=False),
        Column("gold rank"),
        *(Column(strategy.name) for strategy in setting.strategies),
    ]
    rows = []
    for at in numbers:
        asked = result.questions[setting.questions[at]]
        rank = setting.gold_ranks[at]
        rows.append(
            [
                Cell(shortened(asked.id, _LONGEST_ID), setting.questions[at]),
                Cell(shortened(asked.question, _LONGEST_TEXT), kind="long"),
                Cell(shortened(", ".join(asked.answers), _LONGEST_TEXT), kind="long"),
                EMPTY if rank is None else Cell(str(rank + 1), rank),
                *map(_outcome, by_question[at]),
            ]
        )
    total = len(by_question)
    whole = counted(total, "question")
    part = f"{len(rows)} of {whole}" if total > len(rows) else f"all {whole}"
    return folded(
        f"Question by question: {part}, those first on which the strategies differ most",
        paragraph(f"Outcomes by {grader}. The JSON holds every answer to every question.", "note"),
        table(f"Questions: {setting.name}", columns, rows),
    )


def _estimate(estimate: Estimate | None) -> Cell:
    return Cell(NOT_AVAILABLE) if estimate is None else Cell(estimate_text(estimate), estimate.mean)


def _against(strategy: StrategyResult, baseline: str) -> list[Cell]:
    found = strategy.against.get(baseline)
    if found is None:
        return [EMPTY] * 4
    return [
        Cell(signed(found), found.difference),
        *(Cell(f"{p_value:.2g}", p_value) for p_value in (found.p_value, found.adjusted)),
        Cell(smallest(found), found.detectable),
    ]


def _order(setting: SettingResult, strategy: StrategyResult) -> str:
    """Return the ranks in the order of their slots, if equally many passages have the same order.

    It is that of the most passages, which may be fewer than k: of spans, or where little was found.
    """
    orders: dict[int, set[tuple[int, ...]]] = {}
    for passages, by_question in zip(setting.passages, strategy.orders, strict=True):
        if passages:
            orders.setdefault(len(passages), set()).update(by_question)
    if not orders:
        return NOT_AVAILABLE
    if any(len(each) > 1 for each in orders.values()):
        return "differ"
    ranks = [str(rank + 1) for rank in orders[max(orders)].pop()]
    if len(ranks) > _LONGEST_ORDER:
        ranks[_LONGEST_ORDER // 2 : -_LONGEST_ORDER // 2] = ["…"]
    return " ".join(ranks)


def _outcome(value: float) -> Cell:
    if value == 1:
        return Cell("✓", value, "right")
    return Cell("✗", value, "wrong") if value == 0 else Cell(f"{value:.2f}", value)
