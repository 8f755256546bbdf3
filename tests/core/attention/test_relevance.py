"""Relevance of documents: layers, eq. 2 of GoodPositions, ICR's sums and rankings by hand."""

from __future__ import annotations

import numpy as np
import pytest
from transformers import LlamaConfig

from shared_core.attention.relevance import (
    calibrated_scores,
    document_scores,
    layer_sets,
)
from shared_core.errors import GenerationError

SCORES = [9.0, 1.0, 2.0, 3.0, 4.0, 9.0, 0.5, 1.5]
SPANS = [(1, 2), (2, 5), (6, 8)]


@pytest.mark.parametrize(
    ("layers", "lower", "upper"),
    [(1, [0], [0]), (2, [0], [1]), (3, [0], [2]), (4, [0, 1], [2, 3]), (5, [0, 1], [3, 4])],
)
def test_the_middle_one_of_an_odd_number_of_layers_is_in_neither_half(
    layers: int, lower: list[int], upper: list[int]
) -> None:
    """[0, L//2) and [ceil(L/2), L); a single layer is both halves, rather than neither."""
    sets = layer_sets(LlamaConfig(num_hidden_layers=layers))
    assert [[*sets[name]] for name in ("all", "lower", "upper")] == [[*range(layers)], lower, upper]


def test_layers_that_compress_their_keys_are_refused() -> None:
    """A key stands for several tokens, and there is no row to read."""
    config = LlamaConfig(num_hidden_layers=2)
    config.layer_types = ["heavily_compressed_attention", "full_attention"]
    with pytest.raises(GenerationError, match="llama has layers of heavily_compressed_attention"):
        layer_sets(config)


def test_equation_2_by_hand() -> None:
    """Means over documents of one, three and two tokens; those outside do not count."""
    assert document_scores(SCORES, SPANS).tolist() == [1.0, 3.0, 1.0]
    assert document_scores(SCORES, SPANS[:2][::-1]).tolist() == [3.0, 1.0]
    with pytest.raises(ValueError, match="must be finite, got inf at position 1"):
        document_scores([0.0, np.inf], [(0, 1)])


def test_icr_sums_what_the_question_adds() -> None:
    """Token by token, over documents that stand elsewhere in the prompt without a question."""
    unasked = [0.5, 1.0, 1.0, 1.0, 0.0, 2.0]
    found = calibrated_scores(SCORES, SPANS, unasked, [(0, 1), (1, 4), (4, 6)])
    assert found.tolist() == [0.5, 6.0, 0.0]  # 1-.5; 2-1 + 3-1 + 4-1; .5-0 + 1.5-2


def test_icr_drops_tokens_far_below_the_rest_of_their_document() -> None:
    """Nine tokens of 1 and one of -9: mean 0, deviation 3, so -9 goes; -5.9 stays, as does 11.

    Equal scores, or a single token: nothing is below.
    """

    def scores(*tokens: float) -> float:
        span = [(0, len(tokens))]
        return float(calibrated_scores(tokens, span, np.zeros(len(tokens)), span)[0])

    assert scores(*[1.0] * 9, -9) == 9
    assert scores(*[1.0] * 9, 11) == 20
    assert scores(1.0, 1.0, 1.0, -5.9) == pytest.approx(-2.9)
    assert scores(0.1) == 0.1
