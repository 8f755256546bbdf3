"""Tuning: the fusion weight and the hit rates that labelled questions ask for, however few.

No rule without labels was found to choose a better weight than a constant on collections that it
had not seen: neither features of the query nor the spread of its scores. Labels do, if the weight
is held back from where a few of them alone would put it: ``python -m benchmarks.tuning``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from shared_core.arrays import Bools, Scores
from shared_core.caus import CAUS
from shared_core.checking import check_several
from shared_core.evaluation.intervals import paired_difference_interval
from shared_core.index.engine import Engine, tokenizer_of
from shared_core.index.metadata import Where
from shared_core.neighbour_spans import ChunkReader
from shared_core.placement.order_gate import rates_by_rank
from shared_core.scoring.fusion import weight_and_lows
from shared_core.sensitivity.questions import check_repeats
from shared_core.types import Pool, Query, Tokenizer, Tuning
from shared_core.wording import counted

FOLDS = 5
"""Parts of the questions: each is judged by the weight that the others chose."""

WEIGHTS = np.round(np.linspace(0, 1, 21), 2)
"""Weights of the dense leg that are tried."""

DEPTH = 10
"""Ranks that are judged, as by nDCG@10."""

HOLD = 80
"""Questions that speak for the present weight."""

PRIOR = 20
"""Questions that the hit rates of the default count for."""


def tune(
    caus: CAUS,
    engine: Engine,
    queries: Sequence[Query],
    relevant: Sequence[Collection[str]],
    *,
    where: Where = None,
    id_of: Callable[[str], str | None] | None = None,
    reader: ChunkReader | None = None,
) -> CAUS:
    """Choose the weight of the dense leg and the hit rates by labelled questions.

    The weight is that of the highest nDCG@10, averaged with the present one as if 80 more questions
    had chosen that. What it gains is measured on questions that did not choose it, in five folds.
    The hit rates, for the order gate, say at which rank the first relevant passage of a question
    stands, averaged with the default's.

    Parameters
    ----------
    caus, engine
        The options, and what is searched. What `distinct`, `per_source` or `min_similarity` leave
        out is not found.
    queries
        At least 5, as for `CAUS.search`; the more, the freer the choice.
    relevant
        The ids of the passages that answer each.
    where
        Filter on the metadata.
    id_of
        A passage's id in the engine to that in `relevant`; None: the same.
    reader
        As in `CAUS.search`.

    Returns
    -------
    CAUS
        With `alpha`, `hit_rates` and `tuning`.

    Raises
    ------
    ValueError
        If there are too few queries, a text is repeated, or there are not as many `relevant`; one
        of those is empty or a string; or no relevant passage was found for any query.
    """
    wanted = _checked(queries, relevant)
    pools = engine.pool(queries, caus.depth(), where=where)
    if id_of is None:
        _warn_of_unknown(engine, frozenset().union(*wanted))
    cosines = any(pool.nearest is not None for pool in pools)
    present, _ = weight_and_lows(caus.alpha, caus.fusion, cosines=cosines)
    found = found_by_weight(caus, pools, wanted, id_of, reader, tokenizer_of(engine))
    if not found.any():
        raise ValueError(
            "no relevant passage was found for any question: are the ids in relevant, such as "
            f"{min(wanted[0])!r}, those of the passages in the index?"
        )
    values = ndcg_by_weight(found, [len(ids) for ids in wanted])
    weight = choose(values, present)
    weight = present if _nearest(weight) == _nearest(present) else weight
    chosen, before = _held_out(values, present), values[:, _nearest(present)]
    by_rank = found[:, _nearest(weight)]
    tuning = Tuning(
        questions=len(queries),
        found=float(by_rank.any(axis=1).mean()),
        alpha=weight,
        previous=present,
        ndcg=float(chosen.mean()),
        previous_ndcg=float(before.mean()),
        interval=paired_difference_interval(chosen, before),
    )
    return replace(caus, alpha=weight, hit_rates=_hit_rates(by_rank), tuning=tuning)


def choose(values: Scores, present: float, hold: int = HOLD) -> float:
    """Return the weight of the highest nDCG, held back, to the nearest in `WEIGHTS`.

    Parameters
    ----------
    values
        nDCG of each question by weight, shape (n, 21).
    present
        Weight before; of equally good ones the nearest to it counts.
    hold
        Questions that speak for it.
    """
    total, away = values.sum(axis=0).round(9), np.abs(WEIGHTS - present)
    best = WEIGHTS[np.lexsort((away, -total))[0]]
    held = (len(values) * best + hold * present) / (len(values) + hold)
    return float(WEIGHTS[_nearest(held)])


def _checked(queries: Sequence[Query], relevant: Sequence[Collection[str]]) -> list[frozenset[str]]:
    if len(queries) < FOLDS or len(queries) != len(relevant):
        raise ValueError(
            f"give at least {FOLDS} questions, and the ids of the relevant passages of each; got "
            f"{len(queries)} questions and relevant= for {len(relevant)}"
        )
    check_repeats(((query.text, None) for query in queries), "give it once, with all its passages")
    for at, ids in enumerate(relevant):
        check_several(ids, f"relevant[{at}]")
        if not ids:
            raise ValueError(f"relevant[{at}] is empty: leave out questions that nothing answers")
    return [*map(frozenset, relevant)]


def _warn_of_unknown(engine: Engine, wanted: frozenset[str]) -> None:
    unknown = sorted(wanted - {passage.id for passage in engine.get(wanted)})
    if unknown:
        warnings.warn(
            f"relevant has {counted(len(unknown), 'id')} that no passage of the index has, such as "
            f"{unknown[0]!r}: they count as not found",
            stacklevel=3,
        )


def found_by_weight(
    caus: CAUS,
    pools: Sequence[Pool],
    relevant: Sequence[Collection[str]],
    id_of: Callable[[str], str | None] | None = None,
    reader: ChunkReader | None = None,
    tokenizer: Tokenizer | None = None,
) -> Bools:
    """Return where relevant passages stand, by question, weight and rank: shape (n, 21, 10)."""
    there = np.zeros((len(pools), len(WEIGHTS), DEPTH), np.bool_)
    reader = reader or caus.chunk_keys
    for question, pool in enumerate(pools):
        for at, weight in enumerate(WEIGHTS):
            ranking = caus.rank_pool(pool, DEPTH, float(weight), reader, tokenizer)
            ids = [passage.id for passage in ranking.passages]
            named = ids if id_of is None else map(id_of, ids)
            there[question, at, : len(ids)] = [id in relevant[question] for id in named]
    return there


def ndcg_by_weight(found: Bools, relevant: Sequence[int]) -> Scores:
    """Return nDCG@10 (Järvelin and Kekäläinen, TOIS 2002), shape (n, 21), in [0, 1].

    Parameters
    ----------
    found
        From `found_by_weight`.
    relevant
        How many passages are relevant to each question.
    """
    discounts = 1 / np.log2(np.arange(2, DEPTH + 2))
    best = discounts.cumsum()[np.minimum(relevant, DEPTH) - 1]
    values: Scores = found @ discounts / best[:, None]
    return values


def _held_out(values: Scores, present: float) -> Scores:
    """Return what each question gets by the weight that the other folds chose, shape (n,)."""
    parts = np.random.default_rng(0).permutation(len(values)) % FOLDS
    chosen = np.empty(len(values))
    for part in range(FOLDS):
        weight = choose(values[parts != part], present)
        chosen[parts == part] = values[parts == part, _nearest(weight)]
    return chosen


def _nearest(weight: float) -> int:
    return int(np.abs(WEIGHTS - weight).argmin())


def _hit_rates(found: Bools) -> tuple[float, ...]:
    """Return how often the first relevant passage stands at each rank; found (n, DEPTH)."""
    first = found & (found.cumsum(axis=1) == 1)
    rates = (first.sum(axis=0) + PRIOR * rates_by_rank(None, DEPTH)) / (len(found) + PRIOR)
    return tuple(rates.tolist())
