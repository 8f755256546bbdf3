"""Chunks and seeds: which values they take, and what is said about the rest."""

from __future__ import annotations

import numpy as np
import pytest

from shared_core.neighbour_spans import Seed
from tests.core.neighbour_spans.making import row


@pytest.mark.parametrize("number", ["3", 3.0, True, "c0ffee"])
def test_a_number_is_an_integer(number: object) -> None:
    """Numbers that are read from metadata as texts would not be next to each other."""
    with pytest.raises(ValueError, match=r"number of chunk 'd0' must be an integer.*convert it"):
        row("text", number=number)
    with pytest.raises(ValueError, match="start of chunk 'd0' must be an integer"):
        row("text", start=number)


def test_numpy_integers_are_integers() -> None:
    """And become Python's."""
    (chunk,) = row("text", number=np.int64(3), start=np.int32(7))
    assert (type(chunk.number), type(chunk.start), chunk.end) == (int, int, 11)


@pytest.mark.parametrize(
    ("fields", "match"),
    [({"id": ""}, "not empty"), ({"id": 3}, "got 3"), ({"start": -1}, "start of chunk 'd0'")],
)
def test_other_fields_out_of_range_are_refused(fields: dict[str, object], match: str) -> None:
    """By their value."""
    with pytest.raises(ValueError, match=match):
        row("text", **fields)


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_seed_has_a_finite_score(score: float) -> None:
    """Nothing can be ordered by another."""
    (chunk,) = row("text")
    with pytest.raises(ValueError, match="score of 'd0' must be finite"):
        Seed(chunk, score)
