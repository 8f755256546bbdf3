"""The explanation of a passage, as one step passes it on to the next."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

_OF_A_SLOT = frozenset(
    {"rank", "slot", "placement", "psi", "gain", "gain_interval", "gate", "reason", "curve"}
)
"""Keys by which an earlier step explains a slot; they no longer hold once a passage is moved."""


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
