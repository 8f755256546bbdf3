"""CAUS-RAG (Martin, Roy, Shalini): eqs. 2 to 4, the gate, and Algorithm 1 taken literally."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import (
    CAUS,
    PLACEMENTS,
    Passage,
    PositionProfile,
    decide_order,
    position_sensitivity_index,
    rank,
    u_shape_order,
)
from shared_core.types import OrderRule, Pool

RULES: tuple[OrderRule, ...] = ("gain", "psi")

EPS = 1e-7


def equation_4(k: int) -> list[int]:
    """pi(i) of eq. 4 with its case distinction, 1-based in, 0-based out: slot -> rank."""
    return [(2 * i - 1 if i <= math.ceil(k / 2) else 2 * (k - i + 1)) - 1 for i in range(1, k + 1)]


def algorithm_1_phase_2(top: Sequence[int]) -> list[int]:
    """Lines 17 to 27 of Algorithm 1, line by line, with its 1-based arrays."""
    k = len(top)
    x: dict[int, int] = {}
    left, right = 1, k
    for i in range(1, k + 1):
        if i % 2 == 1:
            x[left] = top[i - 1]
            left = left + 1
        else:
            x[right] = top[i - 1]
            right = right - 1
    return [x[slot] for slot in range(1, k + 1)]


def algorithm_1(
    phi: Sequence[float], psi: Sequence[float], *, k: int, alpha: float, psi_llm: float
) -> list[int]:
    """Lines 6 to 32 of Algorithm 1 over a pool whose scores are known: slot -> pool position."""

    def min_max_norm(value: float, values: Sequence[float]) -> float:
        return (value - min(values)) / (max(values) - min(values) + EPS)

    beta = 1 - alpha
    s = [
        alpha * min_max_norm(phi[i], phi) + beta * min_max_norm(psi[i], psi)
        for i in range(len(phi))
    ]
    top = sorted(range(len(phi)), key=lambda i: (-s[i], -phi[i], i))[:k]
    return algorithm_1_phase_2(top) if psi_llm > 1.0 else top


@pytest.mark.parametrize(
    ("k", "ranks"),
    [(3, [1, 3, 2]), (4, [1, 3, 4, 2]), (5, [1, 3, 5, 4, 2]), (6, [1, 3, 5, 6, 4, 2])],
)
def test_u_shape_golden_orders(k: int, ranks: list[int]) -> None:
    """k=3 is the paper's own example (section III-E); the best passage is first for every k."""
    order = [rank - 1 for rank in ranks]
    assert u_shape_order(k) == order
    assert u_shape_order(k, best_at="start") == order
    assert u_shape_order(k, best_at="end") == order[::-1]


def test_equation_4_and_algorithm_1_give_the_same_u_shape() -> None:
    """Read as "the rank that stands in slot i", eq. 4 equals Algorithm 1, and ours is both."""
    for k in range(51):
        assert u_shape_order(k) == equation_4(k) == algorithm_1_phase_2(range(k))
        assert list(PLACEMENTS["u_shape"]()(k)) == equation_4(k)


def test_equation_2_by_hand() -> None:
    """Dense 0.9 0.5 0.1 and sparse 2 10 6, alpha 0.3: scores 0.3, 0.85, 0.35."""
    found = rank([0.9, 0.5, 0.1], [2.0, 10.0, 6.0], fusion="min_max")
    assert found.indices == [1, 2, 0]
    assert found.dense_norm == pytest.approx([0.5, 0.0, 1.0], abs=1e-6)
    assert found.sparse_norm == pytest.approx([1.0, 0.5, 0.0], abs=1e-6)
    assert found.scores == pytest.approx([0.85, 0.35, 0.3], abs=1e-6)


def test_epsilon_stands_in_the_denominator() -> None:
    """Scores 0 and 1e-7 span one epsilon: the better normalises to a half, not to 1."""
    found = rank([0.0, 1e-7], [0.0, 0.0], alpha=1.0, fusion="min_max")
    assert found.scores == pytest.approx([0.5, 0.0])


def test_equation_3_by_hand() -> None:
    """Edges 0.8 and 0.6, middle 0.5: 1.4; a middle of 0 leaves the epsilon."""
    assert position_sensitivity_index([0.8, 0.5, 0.6]) == pytest.approx(1.4)
    assert position_sensitivity_index([0.8, 0.0, 0.6]) == pytest.approx(1.4 / 1e-7)


def test_the_middle_slot_is_the_lower_median() -> None:
    """Middle = slot (k-1)//2, also for even k."""
    for k in range(1, 10):
        accuracy = [0.5] * k
        accuracy[(k - 1) // 2] = 0.25
        edges = accuracy[0] + accuracy[-1]
        assert position_sensitivity_index(accuracy) == pytest.approx(edges / 0.5)


def test_thirds_average_the_slots_of_each_third() -> None:
    """Six slots: means 0.7, 0.4 and 0.5, so 1.2 / 0.8."""
    accuracy = [0.8, 0.6, 0.3, 0.5, 0.4, 0.6]
    assert position_sensitivity_index(accuracy, bands="thirds") == pytest.approx(1.5)


def test_an_all_zero_profile_is_inconclusive() -> None:
    """0 / 0 is undefined: neither 0 nor huge, and the gate says why it stays shut."""
    profile = PositionProfile(model="mute", accuracy=(0, 0, 0))
    assert math.isnan(profile.psi)
    for rule in RULES:
        gate = decide_order(profile, rule=rule)
        assert (gate.opened, gate.psi) == (False, None)
        assert "mute" in gate.reason
        assert "inconclusive" in gate.reason


def test_a_gate_by_another_measure_than_the_papers_says_so() -> None:
    """Where a model looks, or how likely it finds the answer, is not how often it is right."""
    found = PositionProfile(model="m", accuracy=(0.8, 0.5, 0.6), interval=(1.1, 1.9))
    for rule in RULES[1:]:
        assert "measure" not in decide_order(found, rule=rule).reason
        looked = decide_order(replace(found, measure="attention"), rule=rule)
        assert looked.opened
        assert looked.reason.endswith("psi 1.400 of m by measure 'attention' exceeds 1.0")


@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=20
    ),  # few values: ties are frequent
    st.integers(1, 25),
    st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
    st.sampled_from([0.9, 1.0, 1.1]),
)
def test_the_whole_of_algorithm_1(
    pool: list[tuple[int, int]], k: int, alpha: float, psi_llm: float
) -> None:
    """Scores in, slots out: the pipeline equals the pseudo-code, for open and shut gates."""
    phi, psi = [float(d) for d, _ in pool], [float(s) for _, s in pool]
    caus = CAUS(k=k, alpha=alpha, fusion="min_max", psi=psi_llm)
    passages = [Passage(str(at), "") for at in range(len(pool))]
    found = caus.place(
        caus.rank_pool(Pool(passages, np.array(phi), np.array(psi)), k, alpha, caus.chunk_keys)
    ).indices
    assert found == algorithm_1(phi, psi, k=k, alpha=alpha, psi_llm=psi_llm)
