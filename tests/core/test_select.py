"""Partial selection: every row that reaches the k-th best, and hardly any other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.index.select import reaching


@given(
    st.integers(0, 10_000),
    st.integers(1, 1500),
    st.integers(1, 60),
    st.sampled_from([3, 1000]),
)
def test_exactly_the_rows_that_reach_the_kth_best(seed: int, n: int, k: int, values: int) -> None:
    """Against a full sort, with many ties (3 values) and few, ascending by row."""
    scores = np.random.default_rng(seed).integers(0, values, n) / values
    rows = reaching(scores, k)
    bound = np.sort(scores)[::-1][min(k, n) - 1]
    assert rows.tolist() == sorted(rows.tolist())
    if n > k:
        assert rows.tolist() == (scores >= bound).nonzero()[0].tolist()
    else:
        assert rows.tolist() == list(range(n))


@pytest.mark.parametrize("n", [63, 64, 65, 127, 128, 640, 700])
def test_the_best_row_may_stand_anywhere(n: int) -> None:
    """Also in the rows that fill no whole stripe."""
    for at in (0, n // 2, n - 1):
        scores = np.zeros(n, np.float32)
        scores[at] = 1
        assert reaching(scores, 1).tolist() == [at]
