"""What runs the tables of any paper: answers to their questions, their layout, their JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias

from shared_core.arrays import Scores
from shared_core.cli.console import Console, empty_table
from shared_core.cli.files import keeping
from shared_core.comparison import Failure
from shared_core.comparison.text_report import failure_lines
from shared_core.errors import GenerationError
from shared_core.evaluation import bootstrap_interval, complete_cases
from shared_core.generation import ModelClient
from shared_core.generation.responses import Failed, Request, Response
from shared_core.wording import counted

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

Measured: TypeAlias = Mapping[str, Any]
"""A figure: mean, 95% interval (None of a single question) and the outcome of each question."""

Outcomes: TypeAlias = dict[str, Any]
"""Settings, figures and the outcome of each question: what is written, and what is shown."""

Parts: TypeAlias = "Iterable[RenderableType]"


def paper(name: str) -> Any:
    """Return rows, columns and notes of a paper's tables.

    Its figures are in percent, by table and row, with None where it has a dash.
    """
    text = files("shared_core.cli.reproduce").joinpath("papers.json").read_text("utf-8")
    return json.loads(text)[name]


@contextmanager
def watched(console: Console, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Say how many answers are needed, and show progress as they come."""
    console.say(f"{what}: {counted(total, 'answer')}")
    with console.counting("asking", total) as advance:
        yield advance


@dataclass(frozen=True)
class Asking:
    """Asks a model about questions."""

    console: Console
    client: ModelClient

    def answers(
        self, what: str, asked: Mapping[int, Sequence[Request]], *, at: str, fewest: int = 1
    ) -> tuple[dict[int, tuple[Response, ...]], list[Failure]]:
        """Ask everything about each question, and leave out those that the model fails on.

        Parameters
        ----------
        what
            What is said to be asked.
        asked
            Number of a question, from 0 -> its requests.
        at
            What the questions are left out of, for their failures.
        fewest
            Questions that have to remain.

        Returns
        -------
        dict, list
            Number of a question -> the responses in the order of its requests; the failures.

        Raises
        ------
        GenerationError
            If fewer remain, or the model would fail whatever it is asked.
        """
        requests = [request for each in asked.values() for request in each]
        watching = watched(self.console, what, len(requests))
        with watching as advance, keeping(self.client.journal):
            found = self.client.answers_or_failures(
                requests,
                on_failure=lambda *_: None,
                on_answer=advance,
                on_wait=self.console.say,
            )
        numbers = [*asked]
        rows = [[found[request] for request in each] for each in asked.values()]
        kept: dict[int, tuple[Response, ...]] = complete_cases(rows)
        failures = [
            Failure(question=numbers[row], strategy=at, reason=_reason(rows[row]))
            for row in range(len(rows))
            if row not in kept
        ]
        if failures and len(kept) < fewest:
            raise GenerationError(
                f"the model has failed on {len(failures)} of {counted(len(rows), 'question')}, and "
                f"the tables take at least {fewest}; the first failure: {failures[0].reason}"
            )
        return {numbers[row]: each for row, each in kept.items()}, failures


def _reason(row: Sequence[Response | Failed]) -> str:
    return next(each.reason for each in row if isinstance(each, Failed))


def left_out(failures: Iterable[Mapping[str, Any]], ids: Sequence[str], where: str) -> Parts:
    """Say which questions are left out of `where`, and why; `ids` are those of all."""
    return failure_lines([Failure(**each) for each in failures], ids, where)


def measured(outcomes: Scores) -> Measured:
    """Return the figure that outcomes in [0, 1] come to, shape (n,)."""
    interval = None
    if len(outcomes) > 1:
        interval = bootstrap_interval(outcomes[:, None], lambda means: means[:, 0])
    return {"mean": float(outcomes.mean()), "interval": interval, "outcomes": outcomes.tolist()}


def percent(mean: float) -> str:
    """Return a mean in percent."""
    return f"{100 * mean:.1f}"


def with_interval(mean: float, interval: Sequence[float] | None) -> str:
    """Return a mean in percent, with its interval where there is one."""
    if interval is None:
        return percent(mean)
    lower, upper = interval
    return f"{percent(mean)} [{100 * lower:.0f}, {100 * upper:.0f}]"


def our_rows(
    name: str, figures: Sequence[Measured | None], *, decimals: int = 0
) -> list[list[str]]:
    """Return a row of figures in percent and one of intervals; a dash for a missing figure."""
    means, intervals = [name], ["  95%"]
    for figure in figures:
        means.append("-" if figure is None else percent(figure["mean"]))
        bounds = () if figure is None else figure["interval"] or ()
        intervals.append("-".join(f"{100 * bound:.{decimals}f}" for bound in bounds))
    return [means, intervals]


def p_row(values: Sequence[float | None]) -> list[str]:
    """Return a row of p-values, as far as there are any."""
    return ["  p", *("" if value is None else f"{value:.2g}" for value in values)]


def paper_rows(rows: Mapping[str, Sequence[float | None]]) -> list[list[str]]:
    """Return the figures of a paper, named as such."""
    return [[f"paper: {name}", *paper_cells(values)] for name, values in rows.items()]


def paper_cells(values: Sequence[float | None]) -> list[str]:
    """Return figures of a paper, with a dash where it has one."""
    return ["-" if value is None else f"{value:.1f}" for value in values]


def grid(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table whose first column names the rows; the others are figures."""
    built = empty_table()
    first, *others = headings
    built.add_column(first, no_wrap=True)
    for heading in others:
        built.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        built.add_row(*row)
    return built
