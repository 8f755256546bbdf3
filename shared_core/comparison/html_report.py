"""A comparison as one HTML file that a browser shows without using the network."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple, Self

from shared_core._extras import require
from shared_core.comparison import text_report
from shared_core.comparison.result import ComparisonResult, SettingResult, StrategyResult
from shared_core.wording import counted, shortened

MOST_QUESTIONS, MOST_FAILURES = 100, 20
"""Most rows that a table of them shows; the JSON holds all."""

MOST_FIGURES = 12
"""With more slots there is no room for figures; of longer orders the middle is left out."""


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

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Multiples of the step, from end to end, with their labels."""
        first, last = math.ceil(self.lower / self.step), math.floor(self.upper / self.step)
        values = [round(number * self.step, 6) for number in range(first, last + 1)]
        return [(value, f"{value:{self.format}}" if value else "0") for value in values]


class Row(NamedTuple):
    """A mean with its interval, in a plot."""

    label: str
    text: str
    mean: float
    interval: tuple[float, float] | None
    kind: str = "plain"


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
    gains = [*map(gain_rows, result.settings)]
    bounds = (each for rows in gains for row in rows for each in (row.mean, *(row.interval or ())))
    text: str = environment.from_string(_asset("page.html")).render(
        result=result,
        settings=[*zip(result.settings, gains, strict=True)],
        gain_scale=Scale.around(bounds),
        outcome_scale=Scale(0.0, 1.0, 0.25, "g"),
        text=text_report,
        counted=counted,
        shortened=shortened,
        mean_rows=mean_rows,
        gold_by_rank=gold_by_rank,
        gold_by_slot=gold_by_slot,
        labels=labels,
        order_text=order_text,
        most_telling=most_telling,
        hashed=_hashed,
        most_figures=MOST_FIGURES,
        most_failures=MOST_FAILURES,
        most_questions=MOST_QUESTIONS,
        style=_asset("page.css"),
        script=_asset("page.js"),
    )
    # What cannot be encoded, such as half a surrogate pair, is "?".
    return text.encode("utf-8", "replace").decode()


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hashed(text: str) -> str:
    """Return the hash by which a policy admits this style or script alone: others are not run."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def gain_rows(setting: SettingResult) -> list[Row]:
    """Return the differences from the ranked order."""
    return [
        Row(name, text_report.signed(gain), gain.difference, gain.interval, gain.shown)
        for name, gain in setting.over_ranked.items()
    ]


def mean_rows(setting: SettingResult, grader: str) -> list[Row]:
    """Return the mean outcomes of the strategies."""
    found = {strategy.name: strategy.estimates[grader] for strategy in setting.strategies}
    return [
        Row(name, text_report.estimate_text(each), each.mean, each.interval)
        for name, each in found.items()
    ]


def gold_by_rank(setting: SettingResult) -> list[int]:
    """Return how many questions have their best gold passage at each rank, and last at none.

    Empty if it is known of no question.
    """
    counts = [setting.gold_ranks.count(rank) for rank in range(setting.k)]
    return [*counts, setting.gold_known - sum(counts)] if setting.gold_known else []


def gold_by_slot(setting: SettingResult) -> tuple[int, list[tuple[str, list[float]]]]:
    """Return how many best gold passages were found; strategy by strategy their share by slot."""
    found = [(at, rank) for at, rank in enumerate(setting.gold_ranks) if rank is not None]
    rows = []
    for strategy in setting.strategies:
        shares = [0.0] * setting.k
        for at, rank in found:
            orders = strategy.orders[at]
            for order in orders:
                if rank in order:  # one that is left out is in no slot
                    shares[order.index(rank)] += 1 / len(orders) / len(found)
        rows.append((strategy.name, shares))
    return len(found), rows


def labels(k: int) -> list[str]:
    """Return labels of slots from 1; only every fifth where there is no room for all."""
    return [
        str(slot) if k <= MOST_FIGURES or slot == 1 or slot % 5 == 0 else ""
        for slot in range(1, k + 1)
    ]


def order_text(setting: SettingResult, strategy: StrategyResult) -> str:
    """Return the ranks in the order of their slots, if equally many passages have the same order.

    It is that of the most passages, which may be fewer than k: of spans, or where little was found.
    """
    orders: dict[int, set[tuple[int, ...]]] = {}
    for passages, each in zip(setting.passages, strategy.orders, strict=True):
        orders.setdefault(len(passages), set()).update(each)
    if any(len(each) > 1 for each in orders.values()):
        return "differ"
    ranks = [str(rank + 1) for rank in orders[max(orders)].pop()]
    if len(ranks) > MOST_FIGURES:
        ranks[MOST_FIGURES // 2 : -MOST_FIGURES // 2] = ["…"]
    return " ".join(ranks)


def most_telling(setting: SettingResult, grader: str) -> list[tuple[int, tuple[float, ...]]]:
    """Return place and outcomes of the questions to show: where strategies differ most, first."""
    outcomes = [strategy.outcomes[grader] for strategy in setting.strategies]
    by_question = enumerate(zip(*outcomes, strict=True))
    return sorted(by_question, key=lambda each: min(each[1]) - max(each[1]))[:MOST_QUESTIONS]
