"""Eqs. 1 and 2 of GoodPositions, against sums written out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from shared_core.attention.scores import document_scores, layer_halves, token_scores

ROWS = np.random.default_rng(0).dirichlet(np.ones(7), size=(5, 3, 4))
"""Shape (layers, heads, m, n); every row sums to 1, as attention does."""


@pytest.mark.parametrize(
    ("layers", "chosen"),
    [("all", [0, 1, 2, 3, 4]), ("lower", [0, 1]), ("upper", [3, 4]), ([2], [2]), ([4, 0], [0, 4])],
)
def test_equation_1_written_out(layers: object, chosen: list[int]) -> None:
    """1/m 1/H 1/|L_s| times the sum over layers, heads and answer tokens."""
    expected = [
        sum(ROWS[at, head, j, i] for at in chosen for head in range(3) for j in range(4))
        / (4 * 3 * len(chosen))
        for i in range(7)
    ]
    found = token_scores(ROWS, layers=layers)  # type: ignore[arg-type]
    assert found == pytest.approx(expected)
    assert found.dtype == np.float64


def test_all_layers_unless_said_otherwise() -> None:
    """The paper's L_all."""
    assert token_scores(ROWS).tolist() == token_scores(ROWS, layers=range(5)).tolist()


def test_rows_are_not_normalised_again() -> None:
    """Half of the attention outside of the documents halves their scores."""
    assert token_scores(ROWS[..., :4]).tolist() == token_scores(ROWS)[:4].tolist()
    assert token_scores(ROWS).sum() == pytest.approx(1)


def test_low_precision_rows_are_summed_in_double() -> None:
    """A sum in the precision of the rows would lose the tokens that are hardly attended to."""
    rows = np.random.default_rng(1).random((4, 4, 300, 3)).astype(np.float32)
    expected = rows.astype(np.float64).mean(axis=(0, 1, 2))
    assert token_scores(rows) == pytest.approx(expected, abs=1e-14, rel=0)


@pytest.mark.parametrize(
    ("layers", "lower", "upper"),
    [(1, [], []), (2, [0], [1]), (3, [0], [2]), (4, [0, 1], [2, 3]), (5, [0, 1], [3, 4])],
)
def test_the_middle_one_of_an_odd_number_of_layers_is_in_neither_half(
    layers: int, lower: list[int], upper: list[int]
) -> None:
    """[0, L//2) and [ceil(L/2), L)."""
    assert tuple(map(list, layer_halves(layers))) == (lower, upper)


def test_equation_2_by_hand() -> None:
    """Means over documents of one, three and two tokens; those outside do not count."""
    scores = [9.0, 1.0, 2.0, 3.0, 4.0, 9.0, 0.5, 1.5]
    spans = [(1, 2), (2, 5), (6, 8)]
    assert document_scores(scores, spans).tolist() == [1.0, 3.0, 1.0]
    assert document_scores(scores, spans[::-1]).tolist() == [1.0, 3.0, 1.0][::-1]
    assert document_scores(scores, []).tolist() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: layer_halves(0), "layers must be an integer >= 1, got 0"),
        (lambda: token_scores(ROWS[0]), r"\(layers, heads, m, n\).*got \(3, 4, 7\)"),
        (lambda: token_scores(ROWS[:, :, :0]), r"at least one .*got \(5, 3, 0, 7\)"),
        (lambda: token_scores(ROWS * np.nan), "must be finite, got nan at position 0"),
        (lambda: token_scores(ROWS, layers="half"), "'lower', 'upper' .*got 'half'"),  # type: ignore[arg-type]
        (lambda: token_scores(ROWS, layers=[]), "no layers: .* of 5 layers is empty"),
        (lambda: token_scores(ROWS[:1], layers="lower"), "no layers: 'lower' of 1 layers"),
        (lambda: token_scores(ROWS, layers=[0, 5]), r"within 0..4, got \[0, 5\]"),
        (lambda: token_scores(ROWS, layers=[-1]), r"within 0..4, got \[-1\]"),
        (lambda: token_scores(ROWS, layers=[1, 1]), r"must differ .*got \[1, 1\]"),
        (lambda: document_scores([1.0], [(0, 1), (1, 1)]), r"span 1 is \[1, 1\), which is empty"),
        (lambda: document_scores([1.0], [(0, 2)]), r"span 0 is \[0, 2\), .* within the 1 tokens"),
        (lambda: document_scores([1.0], [(-1, 1)]), r"span 0 is \[-1, 1\)"),
        (lambda: document_scores([0.0, np.inf], [(0, 1)]), "must be finite, got inf at position 1"),
        (lambda: document_scores([[1.0]], [(0, 1)]), r"shape \(n,\), got \(1, 1\)"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], message: str) -> None:
    """The message names the value."""
    with pytest.raises(ValueError, match=message):
        call()
