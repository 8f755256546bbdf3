"""What explains a passage as one step hands it to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

_OF_A_SLOT = frozenset({"rank", "slot", "placement", "psi", "gate", "reason", "curve"})
"""What an earlier step says of a slot, which no longer holds once a passage is moved."""


TELLING = 4
"""Fewest passages whose ascending slots are taken for an earlier placement: by chance, only 1 in
24 orders of 4 ascends."""


def merged(earlier: object, detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return what explained a passage so far, if anything did, with the detail of its new slot."""
    known = earlier if isinstance(earlier, Mapping) else {}
    return {key: value for key, value in known.items() if key not in _OF_A_SLOT} | {**detail}


def ranked(details: Sequence[object], scores: Sequence[float | None] = ()) -> list[int]:
    """Return rank -> position of passages that are to be placed, given what explained each so far.

    Passages that an earlier step placed are ranked by the ranks they carry; all others by the
    order they come in. The passages count as placed if their recorded slots are 0..n-1, or, from
    `TELLING` passages up, ascend (a filter dropped some). With fewer, ascending slots may be
    chance and the incoming order is the ranking.

    Where their present `scores` are known, passages that have others than they were placed with
    were ranked anew since. An estimator's scores, which are recorded only, do not tell.
    """
    n = len(details)
    told = [detail for detail in details if isinstance(detail, Mapping)]
    slots = [slot for detail in told if isinstance(slot := detail.get("slot"), int)]
    ranks = [rank for detail in told if isinstance(rank := detail.get("rank"), int)]
    whole = slots == [*range(n)] and {*ranks} == {*range(n)}
    ascending = all(slot < after for slot, after in pairwise(slots))
    once = len(slots) == len({*ranks}) == n and len({d.get("placement") for d in told}) == 1
    anew = any(_scored_anew(*each) for each in zip(details, scores, strict=False))
    if not anew and (whole or (n >= TELLING and ascending and once)):
        return sorted(range(n), key=ranks.__getitem__)
    return [*range(n)]


def _scored_anew(detail: object, score: float | None) -> bool:
    """Whether a passage has another score than it was placed with."""
    if not isinstance(detail, Mapping) or "score" not in detail or "estimator" in detail:
        return False
    return bool(detail["score"] != score)
