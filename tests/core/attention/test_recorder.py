"""Attention rows that are recorded, against the matrices that eager attention returns.

How they are averaged, in padded batches and with caches of all kinds: `test_reading`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BloomConfig, BloomForCausalLM
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface

from shared_core.arrays import Scores
from shared_core.attention.recorder import AttentionRecorder, Row, recording
from shared_core.attention.rows import LayerCall
from shared_core.errors import GenerationError
from tests.core.attention.models import PAIRS, WINDOW, reference, sharing, some_tokens, tiny

N = 3 * WINDOW
IDS = some_tokens(N)
LAYERS = range(3)


class Rows:
    """The rows of every token, each by itself, or those of some columns."""

    def __init__(self, columns: Sequence[int] = range(N)) -> None:
        self.columns = columns

    def choose(self, first: int, tokens: torch.Tensor) -> list[Row]:
        end = first + tokens.shape[1]
        return [Row(str(column), 0, column) for column in self.columns if first <= column < end]

    def recorded_by(
        self, model: Any, layers: Collection[int] = LAYERS
    ) -> AbstractContextManager[AttentionRecorder]:
        groups = {str(column): layers for column in self.columns}
        return recording(model, self.choose, layers=groups, width=N)

    def of(self, recorder: AttentionRecorder) -> Scores:
        """Return what was recorded of each layer and row, shape (layers, rows, columns)."""
        return np.array(
            [
                [recorder.scores(str(column), [layer], 0) for column in self.columns]
                for layer in LAYERS
            ]
        )


def close(found: Scores, expected: Scores, kind: str = "", tolerance: float = 1e-5) -> None:
    """Assert the same numbers; Granite's logits are large."""
    tolerance = 1e-4 if kind == "granite" else tolerance
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@torch.no_grad()
@pytest.mark.parametrize(("kind", "implementation"), PAIRS, ids=map(" ".join, PAIRS))
def test_rows_are_those_that_eager_attention_returns(kind: str, implementation: str) -> None:
    """Every row of every layer; eager attention in the same pass, SDPA against another model's.

    The prompt is three times the window. Nothing changes in what the model computes.
    """
    model = tiny(kind, implementation)
    eager = model.config._attn_implementation == "eager"
    options = {"output_attentions": True} if eager else {}
    plain = model(torch.tensor([IDS]), **options)
    rows = Rows()
    with rows.recorded_by(model) as recorder:
        seen = model(torch.tensor([IDS]), **options)
    assert torch.equal(seen.logits, plain.logits)
    expected = reference(kind, IDS).mean(1)
    if eager:
        expected = torch.cat(seen.attentions).mean(1).double().numpy()
    close(rows.of(recorder), expected, kind, 1e-6 if eager and kind != "gpt-oss" else 1e-5)
    assert np.ptp(expected[:, -1], axis=-1).min() > 0.01


def same_call(**options: Any) -> dict[str, Any]:
    """Return what an attention function is given, for 4 of 10 tokens of two sequences."""
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(2, 4, 4, 8, generator=generator)
    key = torch.randn(2, 2, 10, 8, generator=generator)
    return {"module": torch.nn.Identity(), "query": query, "key": key, **options}


@pytest.mark.parametrize("window", [None, 3])
def test_masks_of_all_kinds_say_the_same(window: int | None) -> None:
    """By query, boolean or added; or by token, where the kernel knows causality and the window."""
    distance = 6 + torch.arange(4)[:, None] - torch.arange(10)[None, :]
    seen = (distance >= 0) & (distance < (window or 99))
    padding = torch.tensor([[1] * 10, [0] * 4 + [1] * 6])
    each = seen[None, None] & padding.bool()[:, None, None]
    added = torch.where(each, 0.0, torch.finfo(torch.float32).min)
    at = torch.tensor([1, 3])

    def rows(**options: Any) -> torch.Tensor:
        return LayerCall.of(same_call(**options)).logits(at, 6).softmax(-1).mean(1)

    expected = rows(attention_mask=each)
    assert expected.shape == (2, 2, 10)
    assert torch.equal(rows(attention_mask=added), expected)
    assert torch.equal(rows(attention_mask=padding, sliding_window=window), expected)
    whole = rows(attention_mask=seen[None, None])
    assert torch.equal(rows(sliding_window=window), whole)
    assert not torch.equal(rows(is_causal=False), whole)


@pytest.mark.parametrize("name", ["position_bias", "indices"])
def test_attention_of_an_unknown_kind_is_refused(name: str) -> None:
    """Wrong numbers would look like any others."""
    with pytest.raises(GenerationError, match=f"Identity computes attention with {name}"):
        LayerCall.of(same_call(**{name: torch.zeros(1)}))
    with pytest.raises(GenerationError, match="with object, whose rows are not read"):
        LayerCall.of(same_call(attention_mask=object()))


@torch.no_grad()
def test_half_precision_is_summed_in_single() -> None:
    """The mean over hundreds of rows and heads would lose its digits.

    Whatever type is the default, which another thread changes while it loads a model.
    """
    model, rows = tiny("llama", "eager", num_hidden_layers=2).to(torch.bfloat16), Rows()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with rows.recorded_by(model, [0, 1]) as recorder:
            found = model(torch.tensor([IDS]), output_attentions=True).attentions
    finally:
        torch.set_default_dtype(torch.float32)
    both = np.array([[recorder.scores(str(at), [n], 0) for at in range(N)] for n in (0, 1)])
    # the logits, too, which eager attention rounds
    close(both, torch.cat(found).float().mean(1).numpy(), tolerance=5e-3)
    close(both.sum(-1), np.ones((2, N)), tolerance=1e-6)


@torch.no_grad()
def test_only_the_rows_that_are_asked_for_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The matrix of a long prompt would fill the memory."""
    sizes, logits = [], LayerCall.logits
    monkeypatch.setattr(
        LayerCall, "logits", lambda *given: [sizes.append(given[1].numel()), logits(*given)][1]
    )
    with Rows([5, N - 1]).recorded_by(tiny("llama", "sdpa")):
        tiny("llama", "sdpa")(torch.tensor([IDS]))
    assert sizes == [2] * len(LAYERS)


def places(model: Any) -> tuple[Any, ...]:
    """Return all of transformers and the model that a recorder might have left its mark on."""
    space = vars(sys.modules[type(model).__module__])
    return (
        space["eager_attention_forward"],
        *(ALL_ATTENTION_FUNCTIONS[name] for name in sorted(ALL_ATTENTION_FUNCTIONS)),
        dict(ALL_ATTENTION_FUNCTIONS._local_mapping),
        dict(AttentionInterface._global_mapping),
        list(model._forward_pre_hooks),
        model.config._attn_implementation,
    )


@torch.no_grad()
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_afterwards_the_library_is_as_it_was(implementation: str) -> None:
    """The same objects; also after an exception."""
    model, rows = tiny("llama", implementation), Rows([N - 1])
    before = places(model)
    with rows.recorded_by(model) as recorder:
        model(torch.tensor([IDS]))
        assert places(model) != before
    assert places(model) == before
    assert recorder.scores(str(N - 1), [0], 0).sum() == pytest.approx(1)
    with pytest.raises(ZeroDivisionError), rows.recorded_by(model):
        _ = 1 / 0
    assert places(model) == before


@pytest.mark.parametrize(
    ("kinds", "implementation"),
    [
        (("llama", "llama"), "eager"),
        (("llama", "gpt-neox"), "sdpa"),
    ],
)
def test_threads_do_not_mix(kinds: tuple[str, str], implementation: str) -> None:
    """One model in both, or two that share a function; each pass waits for the other's."""
    models = [tiny(kind, implementation) for kind in kinds]
    before = [places(model) for model in models]
    tokens = [some_tokens(N, seed=seed) for seed in (1, 2)]
    found: dict[int, Scores] = {}
    barrier = threading.Barrier(3, timeout=60)

    def read(which: int) -> None:
        rows = Rows([7, N - 1])
        with rows.recorded_by(models[which]) as recorder:
            barrier.wait()
            for _ in range(2):  # the second pass holds no new columns
                with torch.no_grad():
                    models[which](torch.tensor([tokens[which]]), use_cache=False)
                barrier.wait()
        found[which] = rows.of(recorder)

    threads = [threading.Thread(target=read, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    barrier.wait()
    for _ in range(2):
        with torch.no_grad():  # a pass that nobody listens to
            models[0](torch.tensor([some_tokens(N, seed=3)]))
        barrier.wait()
    for thread in threads:
        thread.join()
    for which, kind in enumerate(kinds):
        close(found[which], reference(kind, tokens[which]).mean(1)[:, [7, N - 1]])
    assert [places(model) for model in models] == before


def test_a_model_that_cannot_be_read_is_named() -> None:
    """One whose modeling file has its own attention, and one that goes past its function.

    That one as soon as it has read the prompt, not when all has been generated.
    """
    bloom = BloomForCausalLM(BloomConfig(vocab_size=320, hidden_size=32, n_layer=2, n_head=4))
    message = r"BloomForCausalLM .* use a model that does \(Llama"
    with pytest.raises(GenerationError, match=message), Rows().recorded_by(bloom):
        raise AssertionError
    gpt2 = tiny("gpt2", "eager", reorder_and_upcast_attn=True)
    before = places(gpt2)
    expected = "GPT2LMHeadModel does not compute its attention by"
    with torch.no_grad(), Rows().recorded_by(gpt2) as recorder:
        gpt2(torch.tensor([IDS[:-1]]), use_cache=False)
        with pytest.raises(GenerationError, match=expected):
            gpt2(torch.tensor([IDS]), use_cache=False)
        with pytest.raises(GenerationError, match=expected):
            recorder.scores("0", [0], 0)
    assert places(gpt2) == before


@torch.no_grad()
def test_a_layer_that_sees_only_some_tokens_is_refused() -> None:
    """Rather than the row of another token taken for the one that is asked for."""
    model = sharing()
    with (
        pytest.raises(GenerationError, match=f"layer 2 attends from 1 of {N} tokens"),
        Rows([0]).recorded_by(model, [2]),
    ):
        model(torch.tensor([IDS]), logits_to_keep=1)


@torch.no_grad()
def test_large_products_in_half_precision_are_those_of_sdpa() -> None:
    """Beyond 65504, the largest number of float16: biases of queries and keys bring them there."""
    generator = torch.Generator().manual_seed(0)
    query, key = (200 + torch.randn(1, 2, 6, 64, generator=generator).half() for _ in range(2))
    values = torch.eye(6).half().expand(1, 2, 6, 6)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, values, is_causal=True)
    assert (query[0, 0, 0] @ key[0, 0, 0]) > 65504
    call = LayerCall.of({"module": torch.nn.Identity(), "query": query, "key": key})
    found = call.logits(torch.arange(6), 0).softmax(-1)
    torch.testing.assert_close(found, expected.float(), rtol=0, atol=1e-2)
