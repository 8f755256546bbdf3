"""What a comparison says in a terminal beside its report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from shared_core.cli.models import kept_line
from shared_core.comparison import ComparisonPlan
from shared_core.generation import Generator, Journal
from shared_core.wording import counted

UNANSWERED = "No question has answers: what is measured is how many answers the order changes."


def cost_lines(model: Generator, plan: ComparisonPlan) -> Iterator[str]:
    """Say what the comparison is going to cost."""
    about = "about " if plan.estimated else ""
    yield (
        f"{model.name}: {counted(plan.questions, 'question')}, "
        f"{counted(plan.strategies, 'strategy', 'strategies')} in "
        f"{counted(plan.settings, 'setting')}, up to {counted(plan.calls, 'call')} with "
        f"{about}{counted(plan.prompt_tokens, 'prompt token')}."
    )
    if plan.kept:
        yield kept_line(plan.kept, model)


def files_of(folder: Path) -> tuple[Path, Path, Path]:
    """Return the files of a report: verdict, tables and plots, the same as text, all outcomes."""
    return folder / "comparison.html", folder / "comparison.md", folder / "comparison.json"


def file_lines(folder: Path, journal: Journal) -> Iterator[str]:
    """Say where the report is; paths are copied, so their lines must not be broken."""
    names = ("report", "tables", "outcomes", "answers")
    for name, file in zip(names, (*files_of(folder), journal.path), strict=True):
        yield f"{name:<8}  {file}"
