"""The cosines of retrieved passages: those that the retriever reports, or computed."""

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
    """Return the cosines of passages: `reported_cosines`, otherwise computed from vectors.

    Parameters
    ----------
    query, details, texts
        As in `reported_cosines`.
    embed
        Embeds the query and `texts`; not called if the cosines are reported.

    Raises
    ------
    ValueError
        As `cosines`.
    """
    return reported_cosines(query, details, texts) or _computed(texts, embed())


async def afound_cosines(
    query: str | None,
    details: Sequence[Mapping[str, Any]],
    texts: Sequence[str],
    embed: Callable[[], Awaitable[Embedded]],
) -> FoundCosines:
    """Async version of `found_cosines`."""
    return reported_cosines(query, details, texts) or _computed(texts, await embed())


def _computed(texts: Sequence[str], embedded: Embedded) -> FoundCosines:
    return cosines(*embedded, len(texts)), [*texts]


def reported_cosines(
    query: str | None, details: Sequence[Mapping[str, Any]], texts: Sequence[str]
) -> FoundCosines | None:
    """Return the cosines to a query that the explanations of passages report.

    Parameters
    ----------
    query
        Text of the query; None if only a vector was searched. White space around it is ignored.
    details
        From `shared_core.Arrangement.explain`: ``dense``, and ``nearest`` and ``query`` if that
        is a cosine.
    texts
        The passages' texts.

    Returns
    -------
    tuple of (list of float, list of str), or None
        Cosines and texts. The nearest passage counts even if it is not among these; its text is
        then empty. None if a passage has no cosine, or one to another query: a retriever may
        rewrite the query or search for several, but the gate judges the one it was given.
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
    """Return the cosine of a query to each of `count` passages; 0 for a zero vector.

    Raises
    ------
    ValueError
        If a vector is not finite, or a shape is wrong.
    """
    (unit,) = unit_rows(np.asarray(query)[None], 1, "the query")
    passages = unit_rows(vectors, count, "the passages found", dim=unit.size)
    # One dot product per row, so that equal passages have equal cosines.
    similarities: list[float] = np.vecdot(passages, unit).tolist()
    return similarities
