"""Metadata of passages: copied for the user, and the explanation that steps pass on in them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

_IMMUTABLE = frozenset({str, int, float, bool, type(None)})


_OF_A_SLOT = frozenset(
    {"rank", "slot", "placement", "psi", "gain", "gain_interval", "gate", "reason", "curve"}
)
"""Keys by which an earlier step explains a slot; they no longer hold once a passage is moved."""


def copied(metadata: Mapping[Any, Any], of: Callable[[], str]) -> dict[Any, Any]:
    """Return a copy of metadata that shares nothing mutable with them.

    Parameters
    ----------
    metadata
        The metadata.
    of
        Returns the name of their owner for errors, such as ``"document 'a'"``.

    Raises
    ------
    ValueError
        If a value cannot be copied.
    """
    copies = dict(metadata)
    memo: dict[int, Any] = {}  # what two values share, their copies share
    for key, value in metadata.items():
        if type(value) not in _IMMUTABLE:
            try:
                copies[key] = deepcopy(value, memo)
            except Exception as error:  # a user's class may raise anything
                raise ValueError(
                    f"metadata of {of()}: {key!r} holds a {type(value).__name__}, which "
                    f"cannot be copied ({error}); store its name or id instead"
                ) from error
    return copies


def merge_explanation(earlier: object, detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the earlier explanation of a passage, if any, with the detail of its new slot."""
    known = earlier if isinstance(earlier, Mapping) else {}
    return {key: value for key, value in known.items() if key not in _OF_A_SLOT} | {**detail}


def warn_of_placed(details: Sequence[object]) -> None:
    """Warn if passages stand as an earlier step placed them: their order is taken for a ranking."""
    given = [detail for detail in details if isinstance(detail, Mapping)]
    slots = [detail.get("slot") for detail in given]
    ranks = [detail.get("rank") for detail in given]
    there = [*range(len(details))]
    if slots == there != ranks and {*ranks} == {*there}:
        warnings.warn(
            f"the passages stand as {given[0].get('placement')!r} placed them, and this order is "
            'now taken for their ranking: place once, with psi="never" in the step before, or, '
            'where that makes spans, expand=NeighbourSpans(order="sequential")',
            stacklevel=2,
        )


def as_similarities(
    scores: Sequence[float | None], details: Sequence[object], *, higher_is_better: bool
) -> list[float]:
    """Return incoming scores so that higher is better, NaN for None.

    Warns if they are taken as they are, but only rise along passages that no earlier step explains.
    """
    known = [score for score in scores if score is not None and not math.isnan(score)]
    rising = len({*known}) > 2 and known == sorted(known)
    if higher_is_better and rising and not any(details):
        warnings.warn(
            "the scores rise from the first passage to the last, as distances do, and are taken "
            "for similarities: if they are distances, give higher_is_better=False",
            stacklevel=2,
        )
    sign = 1 if higher_is_better else -1
    return [math.nan if score is None else sign * score for score in scores]
