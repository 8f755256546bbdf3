"""The cosines of what a retriever has found: as it tells them, or computed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core.vectors import unit_rows

FoundCosines: TypeAlias = tuple[list[float], list[str]]
"""Cosines and texts of passages."""

Embedded: TypeAlias = tuple[npt.ArrayLike, npt.ArrayLike]
"""Vectors of a query, shape (dim,), and of passages, shape (n, dim)."""


def found_cosines(
    query: str | None,
    details: Sequence[Mapping[str, Any]],
    texts: Sequence[str],
    embed: Callable[[], Embedded],
) -> FoundCosines:
    """Return the cosines of passages: as they are `told`, else of vectors.

    Parameters
    ----------
    query, details, texts
        As in `told`.
    embed
        Embeds the query and `texts`; not called where the cosines are told.

    Raises
    ------
    ValueError
        As `cosines`.
    """
    return told(query, details, texts) or _computed(texts, embed())


async def afound_cosines(
    query: str | None,
    details: Sequence[Mapping[str, Any]],
    texts: Sequence[str],
    embed: Callable[[], Awaitable[Embedded]],
) -> FoundCosines:
    """Do what `found_cosines` does, with the vectors awaited."""
    return told(query, details, texts) or _computed(texts, await embed())


def _computed(texts: Sequence[str], embedded: Embedded) -> FoundCosines:
    return cosines(*embedded, len(texts)), [*texts]


def told(
    query: str | None, details: Sequence[Mapping[str, Any]], texts: Sequence[str]
) -> FoundCosines | None:
    """Return what the explanations of passages tell of their cosines to a query.

    Parameters
    ----------
    query
        The text that was to be searched; None where a vector without a text was. White space
        around it plays no part.
    details
        From `shared_core.Arrangement.explain`: ``dense``, and ``nearest`` and ``query`` where it
        is a cosine.
    texts
        The passages' texts.

    Returns
    -------
    tuple of (list of float, list of str), or None
        Cosines and texts. The nearest passage counts even where it was not among the best, in
        which case its text is empty. None if a passage tells no cosine, or that of another
        query: a retriever may rewrite what it is asked, or ask several questions, and the gate
        is to judge the one it was given.
    """
    asked = None if query is None else query.strip()
    if not all("nearest" in detail and detail.get("query") == asked for detail in details):
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
    (unit,) = unit_rows(np.asarray(query)[None], 1, "the query")
    passages = unit_rows(vectors, count, "the passages found", dim=unit.size)
    # Each row by itself, so that equal passages are equally similar.
    similarities: list[float] = np.vecdot(passages, unit).tolist()
    return similarities
