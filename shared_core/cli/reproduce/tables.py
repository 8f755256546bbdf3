"""Common parts of the tables of all papers: layout, and figures with intervals."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shared_core.arrays import Scores
from shared_core.atomic import write_whole
from shared_core.cli import options
from shared_core.cli.console import Console, empty_table
from shared_core.cli.files import check_file
from shared_core.evaluation import bootstrap_interval
from shared_core.wording import counted

if TYPE_CHECKING:
    from rich.table import Table


HERE = "here"
"""Row of what was measured, above the paper's."""


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


def percent(values: Scores) -> str:
    """Return the mean of outcomes in [0, 1], in percent."""
    return f"{100 * values.mean():.1f}"


def interval(values: Scores) -> tuple[float, float]:
    """Return the 95% bootstrap interval of the mean of two outcomes or more."""
    return bootstrap_interval(values[:, None], lambda means: means[:, 0])


def with_interval(values: Scores) -> str:
    """Return the mean of outcomes in percent, and its 95% interval where there are two or more."""
    if len(values) < 2:
        return percent(values)
    lower, upper = interval(values)
    return f"{percent(values)} [{100 * lower:.0f}, {100 * upper:.0f}]"


def two_rows(name: str, columns: Sequence[Scores | None], *, decimals: int = 0) -> list[list[str]]:
    """Return a row of means in percent and one of 95% intervals; a dash for a missing column."""
    means, intervals = [name], ["  95%"]
    for values in columns:
        if values is None or np.isnan(values).any():
            means.append("-")
            intervals.append("")
            continue
        bounds = interval(values) if len(values) > 1 else ()
        means.append(percent(values))
        intervals.append("-".join(f"{100 * bound:.{decimals}f}" for bound in bounds))
    return [means, intervals]


def paper_rows(rows: Mapping[str, Sequence[float]]) -> list[list[str]]:
    """Return the figures of a paper, named as such."""
    return [[f"paper: {name}", *published(values)] for name, values in rows.items()]


def published(values: Sequence[float]) -> list[str]:
    """Return figures of a paper, with a dash for nan."""
    return ["-" if math.isnan(value) else f"{value:.1f}" for value in values]


def measured(values: Scores) -> dict[str, Any]:
    """Return mean, 95% interval and every outcome, as JSON has them."""
    return {
        "mean": float(values.mean()),
        "interval": interval(values) if len(values) > 1 else None,
        "outcomes": values.tolist(),
    }


@contextmanager
def watched(console: Console, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Say how many answers are needed, and show progress as they come."""
    console.say(f"{what}: {counted(total, 'answer')}")
    with console.progress() as bar:
        task = bar.add_task("asking", total=total)
        yield lambda count: bar.advance(task, count)


def add_outcomes(parser: argparse.ArgumentParser) -> None:
    """Add how long an answer may be, and the file of all that came of them."""
    add = parser.add_argument
    add("--max-new-tokens", type=int, default=64, help="longest answer, in tokens (default: 64)")
    add("--output", type=options.path, help="JSON file with every outcome (default: "
        "none)")  # fmt: skip


def check_output(path: Path | None) -> None:
    """Raise ValueError if an output file is a folder, or its folder does not exist."""
    if path is not None and not path.parent.is_dir():
        raise ValueError(f"--output {path}: there is no such folder")
    if path is not None:
        check_file(path)


def save(found: Mapping[str, Any], path: Path, console: Console) -> None:
    """Write a result as JSON, and say where."""
    write_whole(path, json.dumps(found, indent=1) + "\n")
    console.say(f"Every outcome is in {path}", whole=True)
