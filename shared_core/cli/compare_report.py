"""How a comparison looks in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from shared_core.cli.console import empty_table
from shared_core.cli.models import kept_line
from shared_core.comparison import ComparisonPlan, ComparisonResult, SettingResult
from shared_core.comparison.text_report import (
    BY_P_VALUE,
    UNGRADED,
    budget_text,
    capitalised,
    difference,
    empty_answer_lines,
    estimate_text,
    failure_lines,
    flip_lines,
    meanings,
    retrieval_line,
    step_lines,
)
from shared_core.generation import Generator, Journal
from shared_core.wording import counted

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


UNANSWERED = "No question has answers: what is measured is how many answers the order changes."


def cost_lines(model: Generator, plan: ComparisonPlan) -> Iterator[str]:
    """Say what the comparison is going to cost."""
    about = "about " if plan.estimated else ""
    yield (
        f"{model.name}: {counted(plan.questions, 'question')}, "
        f"{counted(plan.strategies, 'strategy', 'strategies')} in "
        f"{counted(plan.settings, 'setting')}, {counted(plan.calls, 'call')} with "
        f"{about}{counted(plan.prompt_tokens, 'prompt token')}."
    )
    if plan.reads:
        times = (f"{counted(count, 'time')} for {name}" for name, count in plan.reads.items())
        yield (
            f"Before them the model is read {' and '.join(times)}, with "
            f"{about}{counted(plan.read_tokens, 'prompt token')}; that brings up to "
            f"{counted(plan.to_come, 'call')} more."
        )
    if plan.kept:
        yield kept_line(plan.kept, model)


def parts(result: ComparisonResult) -> Iterator[RenderableType]:
    """Yield the parts of the report."""
    ids = [each.id for each in result.questions]
    for setting in result.settings:
        yield f"\n{setting.name}"
        yield _table(result, setting)
        yield retrieval_line(setting)
        yield from flip_lines(setting)
        yield from failure_lines(setting.failures, ids)
        yield from empty_answer_lines(setting)
    yield ""
    yield legend(result)
    yield ""
    yield from step_lines(result)
    yield from [""] if result.steps else []
    yield f"{capitalised(result.verdict.text)}."
    yield ""


def files_of(folder: Path) -> tuple[Path, Path, Path]:
    """Return the files of a report: verdict, tables and plots, the same as text, all outcomes."""
    return folder / "comparison.html", folder / "comparison.md", folder / "comparison.json"


def file_lines(folder: Path, journal: Journal) -> Iterator[str]:
    """Say where the report is; paths are copied, so their lines must not be broken."""
    names = ("report", "tables", "outcomes", "answers")
    for name, file in zip(names, (*files_of(folder), journal.path), strict=True):
        yield f"{name:<8}  {file}"


def legend(result: ComparisonResult) -> str:
    """Say what the figures of the tables are."""
    scale = "" if result.graders[0] in UNGRADED else ", from 0 (all wrong) to 1 (all right)"
    differences = (
        f"less X: difference from X, in {result.graders[0]}. "
        f"In brackets {result.confidence:.0%} intervals, each on its own: {BY_P_VALUE}; "
        f"p is corrected for {counted(result.tests, 'comparison')} (Wilcoxon signed-rank tests of "
        "right and wrong, within-question permutation tests where outcomes are graded or one side "
        "is a mean of several orders)."
    )
    return (
        f"{', '.join(result.graders)}: mean over questions{scale}. "
        f"{meanings(result.graders)}{budget_text(result)}"
        + (differences if result.baselines else f"In brackets {result.confidence:.0%} intervals.")
    )


def _table(result: ComparisonResult, setting: SettingResult) -> Table:
    built = empty_table()
    built.add_column("strategy", no_wrap=True)
    for grader in result.graders:
        built.add_column(grader, justify="right")
    for baseline in result.baselines:
        built.add_column(f"less {baseline}", justify="right")
    for strategy in setting.strategies:
        built.add_row(
            strategy.name,
            *(estimate_text(strategy.estimates[grader]) for grader in result.graders),
            *(difference(strategy, baseline) for baseline in result.baselines),
        )
    return built
