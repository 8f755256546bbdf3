"""GoodPositions ("From bias to benefit"): appendix E's orders, and eqs. 1 and 2 by their text."""

from __future__ import annotations

import numpy as np
import pytest

from shared_core import PLACEMENTS
from shared_core.attention.relevance import document_scores
from shared_core.placement.scored import attention_placement, reversed_attention_placement

LENGTHS = [10] * 10
BEST_FIRST = list(range(9, -1, -1))
"""Appendix E: document 9 has the best relevance, document 0 the worst."""

U_SHAPE = np.repeat([0.45, 0.4, 0.35, 0.2, 0.1, 0.15, 0.3, 0.6, 0.7, 0.8], 10)
"""A curve steeper towards the question, whose sides are taken R R R L L L R L R, then the last."""


def test_u_shaped_placement_of_appendix_e() -> None:
    """Good documents in good positions."""
    assert attention_placement(BEST_FIRST, U_SHAPE, LENGTHS) == (6, 5, 4, 2, 0, 1, 3, 7, 8, 9)


def test_reverse_u_shaped_placement_of_appendix_e() -> None:
    """Bad documents in good positions."""
    found = reversed_attention_placement(BEST_FIRST, U_SHAPE, LENGTHS)
    assert found == (3, 4, 5, 7, 9, 8, 6, 2, 1, 0)


@pytest.mark.parametrize(
    ("name", "order"), [("back_first", range(10)), ("front_first", range(9, -1, -1))]
)
def test_default_and_reverse_default_of_appendix_e(name: str, order: range) -> None:
    """Ordered input has the best next to the question; reversed, furthest from it."""
    assert [BEST_FIRST[rank] for rank in PLACEMENTS[name]()(10)] == list(order)


def test_coordinates_are_those_of_the_document_region() -> None:
    """Attention beyond the last document, of the question say, draws nothing to it."""
    beyond = np.concatenate([U_SHAPE, [99.0] * 7])
    assert attention_placement(BEST_FIRST, beyond, LENGTHS) == attention_placement(
        BEST_FIRST, U_SHAPE, LENGTHS
    )


def test_one_round_of_algorithm_2_on_arrays() -> None:
    """Relevance from the upper layers, position from the lower, placed by both.

    Three layers; the one in the middle, which is in neither half, would turn everything over.
    """
    lower = [0.30, 0.20, 0.10, 0.02, 0.05, 0.33]  # left end 0.50, right end 0.38
    middle = [0.0, 0.0, 0.9, 0.0, 0.0, 0.1]
    upper = [0.05, 0.15, 0.10, 0.20, 0.30, 0.20]  # documents 0.10, 0.15, 0.25
    rows = np.array([lower, middle, upper])
    relevance = document_scores(rows[2], [(0, 2), (2, 4), (4, 6)])
    assert relevance == pytest.approx([0.10, 0.15, 0.25])
    placed = attention_placement([2, 1, 0], rows[0], [2, 2, 2])
    assert placed == (2, 0, 1)
