"""GoodPositions ("From bias to benefit"): appendix E's orders that follow the curve."""

from __future__ import annotations

import numpy as np

from shared_core.placement.scored import attention_placement, reversed_attention_placement

LENGTHS = [10] * 10
BEST_FIRST = list(range(9, -1, -1))
"""Appendix E: document 9 has the best relevance, document 0 the worst."""

U_SHAPE = np.repeat([0.45, 0.4, 0.35, 0.2, 0.1, 0.15, 0.3, 0.6, 0.7, 0.8], 10)
"""A curve steeper towards the question, whose sides are taken R R R L L L R L R, then the last."""


def test_the_placements_of_appendix_e() -> None:
    """Good documents in good positions, and in bad ones."""
    assert attention_placement(BEST_FIRST, U_SHAPE, LENGTHS) == (6, 5, 4, 2, 0, 1, 3, 7, 8, 9)
    found = reversed_attention_placement(BEST_FIRST, U_SHAPE, LENGTHS)
    assert found == (3, 4, 5, 7, 9, 8, 6, 2, 1, 0)
