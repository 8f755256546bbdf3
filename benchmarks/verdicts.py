"""What the parts of `benchmarks.evidence` come to in words, where their tables do not say it.

A difference is shown where its 95% interval excludes 0 and its p-value is below .05 after Holm's
correction within the table. Where outcomes by question are not kept, the interval alone decides.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared_core.evaluation import compare_paired

Kept = Any
"""JSON of a part."""


@dataclass(frozen=True)
class Gain:
    """The mean difference from a baseline on the same questions, and its 95% interval.

    `p` is corrected; None where no test was made.
    """

    name: str
    difference: float
    interval: Sequence[float]
    p: float | None = None

    @property
    def shown(self) -> bool:
        lower, upper = self.interval
        return (lower > 0 or upper < 0) and (self.p is None or self.p < 0.05)

    def __str__(self) -> str:
        lower, upper = self.interval
        p = "" if self.p is None else f" (p = {self.p:.2g})"
        return f"{self.name} by {self.difference:+.3f} [{lower:+.3f}, {upper:+.3f}]{p}"


def verdict(what: str, baseline: str, gains: Iterable[Gain]) -> str:
    """Say what is better than the baseline and what is worse, or what comes nearest to better."""
    ranked = sorted(gains, key=lambda gain: -gain.difference)
    better = [str(gain) for gain in ranked if gain.shown and gain.difference > 0]
    worse = [str(gain) for gain in ranked if gain.shown and gain.difference < 0]
    said = f"{what}: better than {baseline}: {', '.join(better)}"
    if not better:
        said = f"{what}: nothing is shown to be better than {baseline}; nearest is {ranked[0]}"
    return f"{said}; worse: {', '.join(worse)}." if worse else f"{said}."


def rounds(tables: Kept, estimators: Kept) -> Iterator[str]:
    """Two rounds and their baselines, from the tables of GoodPositions and by each estimator."""
    for order, rows in tables["table_2"].items():
        yield verdict(f"Table 2, {order}", "Vanilla", _against(rows))
    yield verdict("Table 3", "Default, original", _against(tables["table_3"]))
    for order, rows in tables["table_5"].items():
        (base, least), *others = rows.items()
        pairs = {
            f"{name}, {number} documents": (figure["outcomes"], least[number]["outcomes"])
            for name, by_number in others
            for number, figure in by_number.items()
        }
        yield verdict(f"Table 5, {order}", base, _paired(pairs))
    base, *others = estimators
    gains = (Gain(row["method"], row["less_shuffle"][0], row["less_shuffle"][1:]) for row in others)
    yield verdict("Shuffled documents, by estimator", base["method"], gains)


def gate(rows: Kept) -> Iterator[str]:
    """The gate alone, and behind each transformation by the model."""
    for side, plain in rows[0]["against"].items():
        yield (
            f"The plain gate ({side}) retrieves for {plain['recall']:.0%} of {plain['positives']} "
            "questions that the collection answers, and for "
            f"{1 - plain['specificity']:.0%} of {plain['negatives']} that it does not."
        )
        for measure in ("recall", "specificity"):
            gains = [
                Gain(row["transformation"], gain[0], gain[1:])
                for row in rows
                if (gain := row["against"][side].get(f"{measure}_gain"))
            ]
            yield verdict(f"By the model, {measure} ({side})", "the plain question", gains)


def caus(retrieved: Kept, asked: Kept) -> Iterator[str]:
    """Each table of CAUS, against its first row: what is retrieved, and what is answered."""
    yield from _tables(retrieved, ("hit", "nDCG"), "")
    yield from _tables(asked, ("EM", "KW"), ", answers")


def _tables(found: Kept, measures: Sequence[str], what: str) -> Iterator[str]:
    for number in dict.fromkeys(row["table"] for row in found["rows"]):
        base, *others = (row for row in found["rows"] if row["table"] == number)
        pairs = {
            f"{row['name']} in {measure}": (
                row["figures"][measure]["outcomes"],
                base["figures"][measure]["outcomes"],
            )
            for row in others
            for measure in measures
        }
        yield verdict(f"Table {number}{what}", base["name"], _paired(pairs))


def _against(rows: Mapping[str, Kept]) -> Iterator[Gain]:
    for name, row in rows.items():
        if test := row.get("against"):
            yield Gain(name, test["difference"], test["interval"], test["adjusted"])


def _paired(pairs: Mapping[str, Sequence[Kept]]) -> Iterator[Gain]:
    for name, test in compare_paired(pairs).items():
        yield Gain(name, test.difference, test.interval, test.adjusted)


VERDICTS: Mapping[str, tuple[Callable[..., Iterator[str]], Sequence[str]]] = {
    "rounds": (rounds, ("rounds.json", "estimators.json")),
    "gate": (gate, ("gate.json",)),
    "caus": (caus, ("caus.json", "caus_asked.json")),
}
"""Part -> what says its verdicts, and the files that they are made of."""


def verdicts(part: str, folder: Path) -> list[str]:
    """Return the verdicts of a part whose files are in `folder`; none if its commands say them."""
    if part not in VERDICTS:
        return []
    say, files = VERDICTS[part]
    return [*say(*(json.loads((folder / name).read_text("utf-8")) for name in files))]
