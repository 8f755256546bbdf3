"""What a benchmark prints, as JSON: one file for all, a row a line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, help="JSON file; it keeps the rows of others")


def keep(file: Path | None, of: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows into a file, in place of the former ones `of` the same; without one, nothing."""
    if file is None:
        return
    held = json.loads(file.read_text("utf-8")) if file.exists() else []
    others = [row for row in held if not of.items() <= row.items()]
    lines = map(json.dumps, [*others, *({**of, **row} for row in rows)])
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


def figure(mean: float, interval: Iterable[float] = ()) -> list[float]:
    """Return a mean and the ends of its interval for a row."""
    return [round(float(value), 6) for value in (mean, *interval)]
