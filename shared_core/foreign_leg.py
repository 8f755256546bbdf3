"""Fusion of BM25 with an external dense leg, such as a vector store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy.typing as npt

from shared_core.caus import CAUS
from shared_core.neighbour_spans import ChunkSource
from shared_core.neighbour_spans.places import ChunkReader
from shared_core.scoring.fusion import Alpha
from shared_core.types import Arrangement, Passage

T = TypeVar("T")

Key = str | bytes
"""Identifies a candidate; equal for one that both legs found."""


def fuse_foreign(
    caus: CAUS,
    dense: Iterable[tuple[Key, T, float | None]],
    sparse: Iterable[tuple[Key, T]],
    score: Callable[[Sequence[T]], npt.ArrayLike],
    *,
    higher_is_better: bool,
    passage_of: Callable[[T], Passage],
    source: ChunkSource | None = None,
    reader: ChunkReader | None = None,
    k: int | None = None,
    alpha: Alpha | None = None,
) -> Arrangement:
    """Pool the candidates of both legs, score them by both, keep the best k and place them.

    The dense leg scores only what it has found: a candidate without a dense score gets the lowest
    one of the pool. Equal scores keep the order of the pool: the hits of the dense leg come first,
    each leg's in the order found. Among equal keys, the first candidate counts.

    Parameters
    ----------
    caus
        Options of the fusion, the expansion and the placement.
    dense
        Key, candidate and score of each hit of the dense leg; None or NaN: it has no score.
    sparse
        Key and candidate of each hit of the sparse leg.
    score
        Scores any candidates by the sparse leg, shape (candidates,), higher is better.
    higher_is_better
        Direction of the scores in `dense`; False for distances.
    passage_of
        Turns a candidate into a passage; called for the best k only.
    source, reader
        As in `CAUS.place_expanded`; `source` is needed where ``caus.expand`` is set.
    k, alpha
        In place of those in `caus`, unless None.

    Returns
    -------
    Arrangement
        With passages; an `ExpandedArrangement` where ``caus.expand`` is set.

    Raises
    ------
    ValueError
        If a score is infinite, `k` or `alpha` is out of range, or ``caus.expand`` is set and
        there is no `source`.
    """
    pool: dict[Key, tuple[T, float]] = {}
    for key, candidate, value in dense:
        pool.setdefault(key, (candidate, math.nan if value is None else float(value)))
    for key, candidate in sparse:
        pool.setdefault(key, (candidate, math.nan))
    sign = 1 if higher_is_better else -1
    candidates = [candidate for candidate, _ in pool.values()]
    scores = [sign * value for _, value in pool.values()]
    ranking = caus.rank(scores, score(candidates), k=k, alpha=alpha)
    ranking = replace(ranking, passages=[passage_of(candidates[at]) for at in ranking.indices])
    if caus.expand is None:
        return caus.place(ranking)
    if source is None:
        raise ValueError("caus.expand needs the neighbours of passages; give their source=")
    return caus.place_expanded(ranking, source, reader)
