"""What explains a passage as one step hands it to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OF_A_SLOT = frozenset({"rank", "slot", "placement", "psi", "gate", "reason", "estimator", "curve"})
"""What an earlier step says of a slot, which no longer holds once a passage is moved."""


def merged(earlier: object, detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return what explained a passage so far, if anything did, with the detail of its new slot."""
    known = earlier if isinstance(earlier, Mapping) else {}
    return {key: value for key, value in known.items() if key not in _OF_A_SLOT} | {**detail}
