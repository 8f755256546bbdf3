"""RetriVex: its names for orders of spans are placements we already have."""

from __future__ import annotations

import pytest

from shared_core import PLACEMENTS


@pytest.mark.parametrize(
    ("name", "same_as"),
    [("edge_balanced", "u_shape"), ("front_first", "sequential"), ("back_first", "inverse")],
)
def test_retrivex_orders(name: str, same_as: str) -> None:
    """Edge-balanced is the U-shape; front-first and back-first are best first and best last."""
    for k in range(13):
        assert PLACEMENTS[name]()(k) == PLACEMENTS[same_as]()(k)
