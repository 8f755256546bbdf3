"""Measures of rankings: trec_eval's, through ir-measures (MacAvaney et al., ECIR 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shared_core._extras import require
from shared_core.arrays import Scores

_OURS = {"hit": "Success", "MRR": "RR"}
"""Names in the papers -> names in trec_eval."""


def retrieval_measures(
    rankings: Mapping[str, Sequence[str]],
    relevant: Mapping[str, Mapping[str, int]],
    measures: Sequence[str] = ("nDCG@10", "hit@1", "hit@10", "MRR"),
) -> dict[str, Scores]:
    """Measure rankings, question by question.

    Parameters
    ----------
    rankings
        Question to ids of passages, best first, each once.
    relevant
        Question to its judged passages: id to grade, 0 not relevant. Every question of `rankings`
        needs a relevant one; other questions are ignored.
    measures
        ``"hit@k"`` (1 if a relevant passage is among the first k), ``"MRR"`` (1 / rank of the
        first one), or a name that ir-measures knows, as ``"nDCG@10"``, ``"R@100"``, ``"P@5"``.

    Returns
    -------
    dict of str to ndarray
        By the names given; shape (n,), in [0, 1], higher is better, in the order of `rankings`.

    Raises
    ------
    NameError
        If there is no such measure.
    MissingExtraError
        If ir-measures is not installed.
    """
    library: Any = require("ir_measures", extra="eval")
    wanted = {name: _measure(library, name) for name in measures}
    judged = {question: dict(relevant[question]) for question in rankings}
    # A question that is not in a run, since nothing was found for it, scores 0.
    run = {
        question: {passage: -rank for rank, passage in enumerate(ranked)}
        for question, ranked in rankings.items()
        if ranked
    }
    values = {measure: dict.fromkeys(rankings, 0.0) for measure in wanted.values()}
    for found in library.iter_calc([*values], judged, run):
        values[found.measure][found.query_id] = found.value
    return {
        name: np.array([*values[measure].values()], np.float64) for name, measure in wanted.items()
    }


def _measure(library: Any, name: str) -> Any:
    base, _, k = name.partition("@")
    base = _OURS.get(base, base)
    if base not in library.measures.registry:
        raise NameError(f"there is no measure {name!r}")
    # The library's own parser of names needs what Python 3.14 has no more.
    measure = library.measures.registry[base]
    return measure @ int(k) if k else measure
