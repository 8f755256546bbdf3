"""What a placement is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shared_core.checking import check_count
from shared_core.sensitivity.profile import PositionProfile


@dataclass(frozen=True)
class Placement:
    """A rule that says which rank goes into which slot.

    Subclasses set `name`, the key under which `PLACEMENTS` finds them, and `order`; and
    `needs_profile`, if they are made from a position profile.
    """

    name: ClassVar[str]
    needs_profile: ClassVar[bool] = False

    def __call__(self, k: int, profile: PositionProfile | None = None) -> tuple[int, ...]:
        """Return slot -> rank for `k` passages, a bijection on 0..k-1.

        Parameters
        ----------
        k
            Number of passages, >= 0. Rank 0 is the best; slot 0 comes first in the prompt.
        profile
            The model's position profile, for placements that are made from one.

        Raises
        ------
        ValueError
            If `k` is not an integer >= 0, or the placement needs a profile and gets none.
        """
        return self.order(check_count(k, "k", 0), profile)

    def order(self, k: int, profile: PositionProfile | None) -> tuple[int, ...]:
        """Return slot -> rank; called with ``k >= 0``."""
        raise NotImplementedError
