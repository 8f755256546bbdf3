"""What explains a passage as one step hands it to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_OF_A_SLOT = frozenset({"rank", "slot", "placement", "psi", "gate", "reason", "estimator", "curve"})
"""What an earlier step says of a slot, which no longer holds once a passage is moved."""


def merged(earlier: object, detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return what explained a passage so far, if anything did, with the detail of its new slot."""
    known = earlier if isinstance(earlier, Mapping) else {}
    return {key: value for key, value in known.items() if key not in _OF_A_SLOT} | {**detail}


def ranked(details: Sequence[object]) -> list[int]:
    """Return rank -> position of passages that are to be placed, given what explained each so far.

    The order they come in is their ranking. But where they stand exactly as an earlier step has
    placed them, that is the ranking it placed: or the second best would be taken from the end.
    """
    n = len(details)
    told = [detail for detail in details if isinstance(detail, Mapping)]
    ranks = [detail.get("rank") for detail in told]
    placed = [detail.get("slot") for detail in told] == [*range(n)]
    if not placed or {*ranks} != {*range(n)}:
        return [*range(n)]
    return sorted(range(n), key=ranks.__getitem__)  # type: ignore[arg-type]
