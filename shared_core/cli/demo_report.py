"""What the demo says: the table by slot, the gate, the reason, and the frameworks' orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from shared_core import Arrangement
from shared_core.cli.console import empty_table

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = (
    "slot",
    "fused\nrank",
    "fused\nscore",
    "dense\nscore",
    "dense\nrank",
    "BM25\nscore",
    "BM25\nrank",
)
FOOTNOTE = (
    "Slot 1 opens the prompt. Slots and ranks count from 1; dense and BM25 ranks are those within "
    "the pool of candidates that both searches fetched."
)


def table(arrangement: Arrangement) -> Table:
    """Return the passages slot by slot, with the scores and ranks that put them there."""
    built = empty_table()
    for column in _COLUMNS:
        built.add_column(column, justify="right", no_wrap=True)
    built.add_column("passage", overflow="fold")
    for why, passage in zip(arrangement.explain(), arrangement.passages, strict=True):
        cells = [
            str(why["slot"] + 1),
            str(why["rank"] + 1),
            f"{why['score']:.3f}",
            f"{why['dense']:.3f}",
            str(why["dense_rank"] + 1),
            f"{why['sparse']:.2f}",
            str(why["sparse_rank"] + 1),
        ]
        built.add_row(*cells, passage.id)
    return built


def gate_line(arrangement: Arrangement) -> str:
    """Return the gate's decision, its reason and what came of it."""
    gate, placed = arrangement.gate, f"are placed by {arrangement.placement}"
    came = placed if gate.opened else "stay in ranked order"
    return f"Gate: {gate.explain()['gate']} ({gate.reason}), so the passages {came}."


def why_line(arrangement: Arrangement, dense_first: str) -> str:
    """Return why the best passage is the best, and why it is placed where it is.

    Parameters
    ----------
    arrangement
        At least one passage.
    dense_first
        Id of the passage that dense search alone ranks first.
    """
    slot = arrangement.slots.index(0)
    why = arrangement.explain()[slot]
    best = arrangement.passages[slot].id
    where = f"goes into slot {slot + 1} of {len(arrangement)}"
    if slot == 0:
        where = "opens the prompt (slot 1)"
    words = f"the query's exact words put it at rank {why['sparse_rank'] + 1} of BM25"
    if why["sparse"] == 0:
        words = "no word of the query occurs in it"
    weights = f"{why['alpha']:.2f} dense + {1 - why['alpha']:.2f} BM25"
    sentence = (
        f"{best} is at rank {why['dense_rank'] + 1} by meaning alone; {words}, and the fused "
        f"score ({weights}) puts it at rank 1, so it {where}."
    )
    if dense_first != best:
        sentence += f" Dense search alone would have ranked {dense_first} first."
    return f"Why: {sentence}"


def orders_lines(arrangement: Arrangement, orders: Mapping[str, Sequence[str]]) -> list[str]:
    """Return each framework's order as fused ranks by slot, the core's own first."""
    rank_of = {passage.id: rank for rank, passage in enumerate(arrangement.ranking.passages, 1)}
    every = {"core": [passage.id for passage in arrangement.passages], **orders}
    width = max(map(len, every))
    return [
        f"  {title:<{width}}  {' '.join(str(rank_of.get(one, '?')) for one in order)}"
        for title, order in every.items()
    ]


def verdict(arrangement: Arrangement, orders: Mapping[str, Sequence[str]]) -> tuple[bool, str]:
    """Return whether all orders are the core's, and the sentence that says so."""
    expected = [passage.id for passage in arrangement.passages]
    different = [title for title, order in orders.items() if list(order) != expected]
    if not orders:
        return True, "No framework took part, so there is nothing to compare."
    if different:
        return False, f"The orders DIFFER: {' and '.join(different)} from the core."
    return True, f"The {len(orders) + 1} orders are identical: core, {', '.join(orders)}."
