"""Tables I to III of CAUS: in a terminal, next to the paper's figures, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from shared_core.cli.reproduce.caus import MODELS, Measured
from shared_core.cli.reproduce.tables import grid, interval, percent, published, with_interval
from shared_core.evaluation import compare_paired

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

Columns: TypeAlias = list[tuple[str, Callable[[Measured], str]]]
"""Heading and cell."""

TITLES = {
    "I": "Table I: the parts of CAUS, k = 10",
    "II": "Table II: weight of the dense score, k = 10",
    "III": "Table III: number of passages, alpha 0.3",
}
POWER = 0.8
"""Power of the test at the smallest difference that is said to be detectable."""

FOOTNOTE = (
    "In percent, with 95% intervals over questions. hit: the gold passage is among the k; rank: "
    "its mean rank from 1 where it is; edge: it is first or last. The figures under a model's "
    "name are the paper's, on its own questions and with another embedding model."
)


def parts(rows: Sequence[Measured]) -> Iterator[RenderableType]:
    """Yield the parts of the report."""
    answered = rows[0].answers is not None
    for number, title in TITLES.items():
        chosen = [row for row in rows if row.configuration.table == number]
        yield f"\n{title}"
        yield _table(chosen, "em", retrieval=True)
        if "kw" in chosen[0].configuration.published:
            yield _table(chosen, "kw", retrieval=False)
    yield FOOTNOTE
    if answered:
        yield from _gains([row for row in rows if row.configuration.table == "I"])
    else:
        yield "No model was asked (--model), so EM and KW are only the paper's."


def _table(rows: Sequence[Measured], measure: str, *, retrieval: bool) -> Table:
    models = MODELS[-len(rows[0].configuration.published[measure]) :]
    columns: Columns = []
    if retrieval:
        columns += [
            ("hit", lambda row: with_interval(row.values["hit"])),
            ("nDCG", lambda row: percent(row.values["ndcg"])),
            ("rank", _mean_rank),
            ("edge", lambda row: percent(row.values["edge"])),
        ]
    if rows[0].answers is not None:
        columns.append((measure.upper(), lambda row: with_interval(row.values[measure])))
    headings = ["", *(name for name, _ in columns), *(f"{measure.upper()}\n{m}" for m in models)]
    return grid(headings, (_cells(row, columns, measure) for row in rows))


def _cells(row: Measured, columns: Columns, measure: str) -> list[str]:
    paper = row.configuration.published.get(measure, ())
    return [row.configuration.name, *(cell(row) for _, cell in columns), *published(paper)]


def _mean_rank(row: Measured) -> str:
    found = [rank + 1 for rank in row.ranks if rank is not None]
    return f"{sum(found) / len(found):.1f}" if found else "-"


def _gains(rows: Sequence[Measured]) -> Iterator[str]:
    """Say what each method adds to the first one, and whether that is more than chance."""
    base, *others = [row.configuration.name for row in rows]
    outcomes = {row.configuration.name: row.values["em"] for row in rows}
    pairs = {name: (outcomes[name], outcomes[base]) for name in others}
    compared = compare_paired(pairs, power=POWER)
    for name in others:
        gain = compared[name]
        lower, upper = gain.interval
        least = "no difference"
        if gain.detectable <= 1:
            least = f"a difference of {100 * gain.detectable:.0f} points"
        yield (
            f"EM of {name} less {base}: {100 * gain.difference:+.1f} points "
            f"[{100 * lower:+.1f}, {100 * upper:+.1f}], p = {gain.adjusted:.3g} ({gain.test}, "
            f"Holm); this many questions show {least} with a chance of about {POWER:.0%} after "
            "that correction."
        )


def as_json(rows: Sequence[Measured], **settings: object) -> dict[str, Any]:
    """Return the settings and every outcome; ranks and slots count from 1."""
    return {
        "experiment": "caus",
        **settings,
        "questions": [
            {"id": query.id, "level": query.level, "api": query.api} for query in rows[0].queries
        ],
        "rows": [_row(row) for row in rows],
    }


def _row(row: Measured) -> dict[str, Any]:
    caus, values = row.configuration.caus, row.values
    return {
        "table": row.configuration.table,
        "name": row.configuration.name,
        "alpha": caus.alpha,
        "k": caus.k,
        "placement": caus.placement_in_force.name,
        "gate": caus.gate.reason,
        "means": {name: float(each.mean()) for name, each in values.items()},
        "intervals": {name: interval(each) for name, each in values.items()},
        "published_percent": {
            name: list(each) for name, each in row.configuration.published.items()
        },
        "outcomes": {
            "rank": [None if rank is None else rank + 1 for rank in row.ranks],
            "slot": [None if slot is None else slot + 1 for slot in row.slots],
            **{name: each.tolist() for name, each in values.items()},
            **({} if row.answers is None else {"answer": list(row.answers)}),
        },
    }
