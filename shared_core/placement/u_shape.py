"""U-shaped placement: the best passages at the edges, the weakest in the middle.

CAUS eq. 4 and Algorithm 1 (Gear 2). pi(i) of eq. 4 is read as *the rank in slot i*;
only that reading agrees with Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shared_core.checking import check_choice, check_count
from shared_core.placement.base import Placement
from shared_core.sensitivity.profile import PositionProfile

Edge = Literal["start", "end"]


def u_shape_order(k: int, *, best_at: Edge = "start") -> list[int]:
    """Return slot -> rank of the U-shape (CAUS eq. 4), 0-based, best first.

    Even ranks fill the slots from the front, odd ranks from the back. ``best_at="end"`` is the
    mirror image, so that the best passage is next to the question. Unlike in the frameworks' own
    long-context reorder, the end that gets the best passage does not depend on whether `k` is odd.

    Parameters
    ----------
    k
        Number of passages, >= 0.
    best_at
        The edge that gets the best passage.

    Raises
    ------
    ValueError
        If `k` is not an integer >= 0, or `best_at` is neither ``"start"`` nor ``"end"``.

    Examples
    --------
    >>> u_shape_order(5)
    [0, 2, 4, 3, 1]
    >>> u_shape_order(4, best_at="end")
    [1, 3, 2, 0]
    """
    k = check_count(k, "k", 0)
    check_choice(best_at, "best_at", Edge)
    front = list(range(0, k, 2))
    back = list(range(1, k, 2))
    order = front + back[::-1]
    return order if best_at == "start" else order[::-1]


@dataclass(frozen=True)
class UShape(Placement):
    """U-shape of CAUS (eq. 4).

    Attributes
    ----------
    best_at
        The edge that gets the best passage, ``"start"`` (the paper's) or ``"end"``.
    """

    name = "u_shape"
    best_at: Edge = "start"

    def __post_init__(self) -> None:
        check_choice(self.best_at, "best_at", Edge)

    def order(self, k: int, profile: PositionProfile | None) -> tuple[int, ...]:
        """Return slot -> rank."""
        return tuple(u_shape_order(k, best_at=self.best_at))


@dataclass(frozen=True)
class EdgeBalanced(Placement):
    """RetriVex's name for the U-shape, best at the start."""

    name = "edge_balanced"

    def order(self, k: int, profile: PositionProfile | None) -> tuple[int, ...]:
        """Return slot -> rank."""
        return tuple(u_shape_order(k))
