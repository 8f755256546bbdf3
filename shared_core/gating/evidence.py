"""The cosines of what a retriever has found: as it tells them, or computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core.gating.vectors import unit_rows

Found: TypeAlias = tuple[list[float], list[str]]
"""Cosines and texts of passages."""


def told(details: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> Found | None:
    """Return what the explanations of passages tell of their cosines; None if one does not.

    Parameters
    ----------
    details
        From `shared_core.Arrangement.explain`: ``dense``, and ``nearest`` where it is a cosine.
    texts
        The passages' texts.

    Returns
    -------
    tuple of (list of float, list of str), or None
        Cosines and texts. The nearest passage counts even where it was not among the best, in
        which case its text is empty.
    """
    if not all("nearest" in detail for detail in details):
        return None
    similarities = [float(detail["dense"]) for detail in details]
    nearest = max((float(detail["nearest"]) for detail in details), default=None)
    if nearest is None or nearest <= max(similarities):
        return similarities, [*texts]
    return [*similarities, nearest], [*texts, ""]


def cosines(query: npt.ArrayLike, vectors: npt.ArrayLike, count: int) -> list[float]:
    """Return the cosine of a query to each of `count` passages; 0 where a vector is zero.

    Raises
    ------
    ValueError
        If a vector is not finite, or the shapes do not fit.
    """
    (unit,) = unit_rows(np.asarray(query)[None], 1, None, "the query")
    passages = unit_rows(vectors, count, unit.size, "the passages found")
    # Each row by itself, so that equal passages are equally similar.
    similarities: list[float] = np.vecdot(passages, unit).tolist()
    return similarities
