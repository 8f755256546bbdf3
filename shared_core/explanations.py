"""The explanation of a passage, as one step passes it on to the next."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

_OF_A_SLOT = frozenset({"rank", "slot", "placement", "psi", "gate", "reason", "curve"})
"""Keys by which an earlier step explains a slot; they no longer hold once a passage is moved."""


FEWEST_SLOTS = 4
"""Fewest passages whose ascending slots are taken for an earlier placement: by chance, only 1 in
24 orders of 4 passages ascends."""


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
            'now taken for their ranking: place once, with psi="never" in the step before',
            stacklevel=2,
        )


def recover_ranking(details: Sequence[object], scores: Sequence[float | None] = ()) -> list[int]:
    """Return rank -> position of passages that are to be placed, given their explanations so far.

    Passages that an earlier step placed are ranked by the ranks they carry; all others by their
    present order. They count as placed if their recorded slots are 0..n-1 or, from `FEWEST_SLOTS`
    passages up, ascend (a filter dropped some). With fewer, ascending slots may be chance, and the
    present order is the ranking.

    If the present `scores` are known and differ from those that passages were placed with, the
    passages have been reranked since. An estimator's scores, which are only recorded, do not count.
    """
    n = len(details)
    given = [detail for detail in details if isinstance(detail, Mapping)]
    slots = [slot for detail in given if isinstance(slot := detail.get("slot"), int)]
    ranks = [rank for detail in given if isinstance(rank := detail.get("rank"), int)]
    whole = slots == [*range(n)] and {*ranks} == {*range(n)}
    ascending = all(slot < after for slot, after in pairwise(slots))
    once = len(slots) == len({*ranks}) == n and len({d.get("placement") for d in given}) == 1
    rescored = any(_was_rescored(*each) for each in zip(details, scores, strict=False))
    if not rescored and (whole or (n >= FEWEST_SLOTS and ascending and once)):
        return sorted(range(n), key=ranks.__getitem__)
    return [*range(n)]


def _was_rescored(detail: object, score: float | None) -> bool:
    """Whether a passage has a different score than it was placed with."""
    if not isinstance(detail, Mapping) or "score" not in detail or "estimator" in detail:
        return False
    return bool(detail["score"] != score)
