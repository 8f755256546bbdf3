"""Attention rows that the tap records, against the matrices that eager attention returns."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    DynamicCache,
    Lfm2Config,
    Lfm2ForCausalLM,
    LlamaConfig,
    StaticCache,
)
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface

from shared_core.arrays import Scores
from shared_core.attention.layers import layer_sets
from shared_core.attention.rows import LayerCall
from shared_core.attention.tap import AttentionTap, Row, tapped
from shared_core.errors import GenerationError
from tests.core.attention.models import (
    PAIRS,
    SMALL,
    WINDOW,
    reference,
    sharing,
    some_tokens,
    tiny,
)

N = 3 * WINDOW
IDS = some_tokens(N)
EACH_LAYER = {str(layer): {layer} for layer in range(3)}
NEEDS_TRANSFORMERS_5 = pytest.mark.skipif(
    int(transformers.__version__.split(".")[0]) < 5,
    reason="a static window that is full takes one token at a time in transformers 4",
)


class Rows:
    """The rows of every token of the batch, each by itself, or those of some columns."""

    def __init__(self, columns: Sequence[int] = range(N), batch: int = 1) -> None:
        self.groups = [str(column) for column in columns]
        self.columns = columns
        self.batch = batch
        self.shown: list[tuple[int, int]] = []

    def choose(self, first: int, tokens: torch.Tensor) -> list[Row]:
        end = first + tokens.shape[1]
        self.shown.append((first, end))
        return [
            Row(str(column), sequence, column)
            for column in self.columns
            for sequence in range(self.batch)
            if first <= column < end
        ]


def recorded(tap: AttentionTap, rows: Rows, sequence: int = 0) -> Scores:
    """Return what was recorded of each layer and row, shape (layers, rows, columns)."""
    return np.array(
        [[tap.scores(group, layer)[sequence] for group in rows.groups] for layer in EACH_LAYER]
    )


@torch.no_grad()
def in_chunks(
    model: Any, ids: torch.Tensor, sizes: Sequence[int], cache: Any, **options: Any
) -> None:
    """Have a model read tokens in several passes, with a cache."""
    begin = 0
    for size in sizes:
        given = {key: value[:, : begin + size] for key, value in options.items()}
        if "position_ids" in given:
            given["position_ids"] = given["position_ids"][:, begin:]
        model(ids[:, begin : begin + size], past_key_values=cache, use_cache=True, **given)
        begin += size
    assert begin == ids.shape[1]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small only wait for each other's threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=PAIRS, ids=map(" ".join, PAIRS))
def kind_and_model(request: pytest.FixtureRequest) -> tuple[str, Any]:
    return request.param[0], tiny(*request.param)


@torch.no_grad()
def test_rows_are_those_that_eager_attention_returns(kind_and_model: tuple[str, Any]) -> None:
    """Every row of every layer; eager attention in the same pass, SDPA against another model's.

    The prompt is three times the window. Nothing changes in what the model computes.
    """
    kind, model = kind_and_model
    eager = model.config._attn_implementation == "eager"
    options = {"output_attentions": True} if eager else {}
    plain = model(torch.tensor([IDS]), **options)
    rows = Rows()
    with tapped(model, rows, layers=EACH_LAYER, width=N) as tap:
        seen = model(torch.tensor([IDS]), **options)
    assert torch.equal(seen.logits, plain.logits)
    if eager:
        expected = torch.cat(seen.attentions).mean(1).double().numpy()
        tolerance = 1e-5 if kind == "gpt-oss" else 1e-6
    else:
        expected = reference(kind, IDS).mean(1)
        tolerance = 1e-4 if kind == "granite" else 1e-5
    np.testing.assert_allclose(recorded(tap, rows), expected, rtol=0, atol=tolerance)
    assert np.ptp(expected[:, -1], axis=-1).min() > 0.01


@pytest.mark.parametrize("sizes", [(N - 3, 3), (5, 11, N - 18, 1, 1)], ids=str)
def test_passes_with_a_cache_give_the_rows_of_one_pass(
    kind_and_model: tuple[str, Any], sizes: tuple[int, ...]
) -> None:
    """A prompt in chunks, and token by token; a window's cache holds only the last keys."""
    kind, model = kind_and_model
    rows = Rows()
    with tapped(model, rows, layers=EACH_LAYER, width=N) as tap:
        in_chunks(model, torch.tensor([IDS]), sizes, DynamicCache(config=model.config))
    expected = reference(kind, IDS).mean(1)
    tolerance = 1e-4 if kind == "granite" else 1e-5
    np.testing.assert_allclose(recorded(tap, rows), expected, rtol=0, atol=tolerance)


def padded(lengths: Sequence[int]) -> tuple[list[list[int]], dict[str, torch.Tensor]]:
    """Return prompts and what the model is given of them, padded on the left to N."""
    prompts = [some_tokens(length, seed=length) for length in lengths]
    mask = torch.tensor([[0] * (N - length) + [1] * length for length in lengths])
    tokens = torch.tensor([[0] * (N - len(prompt)) + prompt for prompt in prompts])
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    return prompts, {"input_ids": tokens, "attention_mask": mask, "position_ids": positions}


@pytest.mark.parametrize("sizes", [(N,), (N - 4, 3, 1)], ids=str)
def test_a_padded_batch_gives_the_rows_of_each_prompt(
    kind_and_model: tuple[str, Any], sizes: tuple[int, ...]
) -> None:
    """In one pass and in several; padding has no attention, and shifts nothing.

    What is a row of one prompt may be padding of another, which sees nothing at all.
    """
    kind, model = kind_and_model
    lengths = (N, N - 5, N - 15)
    prompts, inputs = padded(lengths)
    tokens = inputs.pop("input_ids")
    rows = Rows(batch=3)
    with tapped(model, rows, layers=EACH_LAYER, width=N) as tap:
        in_chunks(model, tokens, sizes, DynamicCache(config=model.config), **inputs)
    for sequence, (prompt, length) in enumerate(zip(prompts, lengths, strict=True)):
        expected = reference(kind, prompt).mean(1)
        found = recorded(tap, rows, sequence)[:, -length:]
        assert np.all(found[:, :, : N - length] == 0)
        tolerance = 1e-4 if kind == "granite" else 1e-5
        np.testing.assert_allclose(found[:, :, N - length :], expected, rtol=0, atol=tolerance)


@torch.no_grad()
def test_rows_are_averaged_over_their_group_and_the_layers_of_a_set() -> None:
    """Eq. 1, with groups of several rows in several passes and sets that overlap."""

    class Groups:
        groups = ("early", "late", "none")

        def choose(self, first: int, tokens: torch.Tensor) -> list[Row]:
            end = first + tokens.shape[1]
            asked = [*(("early", at) for at in (3, 9)), *(("late", at) for at in (9, 20, 22, 23))]
            return [Row(group, 0, at) for group, at in asked if first <= at < end]

    model = tiny("llama")
    sets = {"all": {0, 1, 2}, "lower": {0}, "ends": {0, 2}}
    with tapped(model, Groups(), layers=sets, width=N - 2) as tap:
        in_chunks(model, torch.tensor([IDS]), (10, 11, 2, 1), DynamicCache(config=model.config))
    whole = reference("llama", IDS).mean(1)[:, :, : N - 2]
    for group, at in (("early", [3, 9]), ("late", [9, 20, 22, 23])):
        for name, layers in sets.items():
            expected = whole[sorted(layers)][:, at].mean((0, 1))
            np.testing.assert_allclose(tap.scores(group, name)[0], expected, rtol=0, atol=1e-6)
    assert {group: list(count) for group, count in tap.counts.items()} == {
        "early": [2],
        "late": [4],
        "none": [0],
    }
    assert np.all(tap.scores("none", "all") == 0)


@torch.no_grad()
def test_layers_that_are_not_asked_for_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are passes without a row that is asked for."""
    calls = []
    logits = LayerCall.logits
    monkeypatch.setattr(LayerCall, "logits", lambda *args: calls.append(args) or logits(*args))
    model = tiny("llama")
    rows = Rows([N - 1])
    with tapped(model, rows, layers={"one": {1}}, width=N):
        in_chunks(model, torch.tensor([IDS]), (10, 10, 4), DynamicCache(config=model.config))
    assert len(calls) == 1
    assert rows.shown == [(0, 10), (10, 20), (20, 24)]


@torch.no_grad()
def test_without_a_cache_no_row_counts_twice() -> None:
    """Every pass is over all tokens again then."""
    model = tiny("llama", "sdpa")
    rows = Rows()
    with tapped(model, rows, layers=EACH_LAYER, width=N) as tap:
        for end in (N - 2, N - 1, N):
            model(torch.tensor([IDS[:end]]), use_cache=False)
    assert rows.shown == [(0, N - 2), (N - 2, N - 1), (N - 1, N)]
    np.testing.assert_allclose(
        recorded(tap, rows), reference("llama", IDS).mean(1), rtol=0, atol=1e-5
    )


@torch.no_grad()
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", ["llama", "mistral, window", "gemma3"])
@pytest.mark.parametrize(
    "sizes", [(N - 2, 1, 1), pytest.param((N - 8, 6, 1, 1), marks=NEEDS_TRANSFORMERS_5)], ids=str
)
def test_positions_are_right_in_a_static_cache(
    kind: str, implementation: str, sizes: Sequence[int]
) -> None:
    """It has room behind the last token, and a window's is rolled."""
    model = tiny(kind, implementation)
    rows = Rows()
    cache = StaticCache(config=model.config, max_cache_len=N + 7)
    with tapped(model, rows, layers=EACH_LAYER, width=N) as tap:
        in_chunks(model, torch.tensor([IDS]), sizes, cache)
    np.testing.assert_allclose(recorded(tap, rows), reference(kind, IDS).mean(1), rtol=0, atol=1e-5)


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
    torch.testing.assert_close(whole.sum(-1), torch.ones(2, 2))


@pytest.mark.parametrize("name", ["position_bias", "indices"])
def test_attention_of_an_unknown_kind_is_refused(name: str) -> None:
    """Wrong numbers would look like any others."""
    with pytest.raises(GenerationError, match=f"Identity computes attention with {name}"):
        LayerCall.of(same_call(**{name: torch.zeros(1)}))
    with pytest.raises(GenerationError, match="with object, whose rows are not read"):
        LayerCall.of(same_call(attention_mask=object()))


@torch.no_grad()
def test_half_precision_is_summed_in_single() -> None:
    """The mean over hundreds of rows and heads would lose its digits."""
    model = tiny("llama", "eager", num_hidden_layers=2).to(torch.bfloat16)
    rows = Rows()
    with tapped(model, rows, layers={"0": {0}, "1": {1}, "2": {0, 1}}, width=N) as tap:
        found = model(torch.tensor([IDS]), output_attentions=True).attentions
    expected = torch.cat(found).float().mean(1).numpy()
    # the logits, too, which eager attention rounds
    np.testing.assert_allclose(recorded(tap, rows)[:2], expected, rtol=0, atol=5e-3)
    sums = recorded(tap, rows).sum(-1)
    np.testing.assert_allclose(sums, 1, rtol=0, atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("default", [torch.bfloat16, torch.float64])
def test_sums_are_single_whatever_the_default(default: torch.dtype) -> None:
    """Which another thread changes while it loads a model."""
    model, found = tiny("llama", "sdpa"), []
    for now in (torch.float32, default):
        rows = Rows()
        torch.set_default_dtype(now)
        try:
            with tapped(model, rows, layers=EACH_LAYER, width=N) as tap:
                in_chunks(model, torch.tensor([IDS]), (N - 2, 1, 1), DynamicCache())
            found.append(recorded(tap, rows))
        finally:
            torch.set_default_dtype(torch.float32)
    assert np.array_equal(*found)


@torch.no_grad()
def test_nothing_is_as_large_as_the_matrix() -> None:
    """Only the rows that are asked for, also while they are computed."""

    class Largest(TorchDispatchMode):
        most = 0

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            for each in out if isinstance(out, (tuple, list)) else [out]:
                if isinstance(each, torch.Tensor):
                    self.most = max(self.most, each.numel())
            return out

    n = 1024
    model = tiny("llama", "sdpa", max_position_embeddings=n)
    ids = torch.tensor([some_tokens(n)])
    rows = Rows([5, *range(n - 30, n)])
    with Largest() as plain:
        model(ids, logits_to_keep=1)
    with Largest() as largest, tapped(model, rows, layers=EACH_LAYER, width=n):
        model(ids, logits_to_keep=1)
    assert largest.most <= max(plain.most, 2**17, len(rows.groups) * 3 * n)
    assert largest.most < n * n / 4


def places(model: Any) -> tuple[Any, ...]:
    """Return everything of transformers and the model that the tap might have left its mark on."""
    space = vars(sys.modules[type(model).__module__])
    return (
        space["eager_attention_forward"],
        *(ALL_ATTENTION_FUNCTIONS[name] for name in sorted(ALL_ATTENTION_FUNCTIONS)),
        dict(ALL_ATTENTION_FUNCTIONS._local_mapping),
        dict(AttentionInterface._global_mapping),
        list(model._forward_pre_hooks),
        model.config._attn_implementation,
    )


def interrupted(model: Any, rows: Rows) -> None:
    """Fail with the tap on."""
    with tapped(model, rows, layers={"0": {0}}, width=N):
        model(torch.tensor([IDS]))
        raise RuntimeError("inside")


@torch.no_grad()
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_afterwards_the_library_is_as_it_was(implementation: str) -> None:
    """The same objects; also after an exception, and only when the outer of two taps is off."""
    model = tiny("llama", implementation)
    before = places(model)
    outer, inner = Rows(), Rows([N - 1])
    with tapped(model, outer, layers=EACH_LAYER, width=N) as wide:
        during = places(model)
        assert during != before
        with pytest.raises(RuntimeError, match="inside"):
            interrupted(model, inner)
        assert places(model) == during
    assert places(model) == before
    expected = reference("llama", IDS).mean(1)
    np.testing.assert_allclose(recorded(wide, outer), expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_a_function_of_the_users_own_is_wrapped_and_put_back() -> None:
    """One that stands in the interface only, or in front of the library's."""

    def own(*args: Any, **options: Any) -> Any:
        return sdpa_attention_forward(*args, **options)

    model = tiny("llama", "sdpa")
    ALL_ATTENTION_FUNCTIONS["sdpa"] = own
    try:
        before = places(model)
        rows = Rows([N - 1])
        with tapped(model, rows, layers=EACH_LAYER, width=N) as tap:
            model(torch.tensor([IDS]))
        assert places(model) == before
        assert ALL_ATTENTION_FUNCTIONS["sdpa"] is own
        assert tap.scores(str(N - 1), "0").sum() == pytest.approx(1)
        with tapped(model, rows, layers=EACH_LAYER, width=N):
            ALL_ATTENTION_FUNCTIONS["sdpa"] = sdpa_attention_forward
        assert ALL_ATTENTION_FUNCTIONS["sdpa"] is sdpa_attention_forward
    finally:
        del ALL_ATTENTION_FUNCTIONS["sdpa"]
    assert ALL_ATTENTION_FUNCTIONS["sdpa"] is sdpa_attention_forward


@pytest.mark.parametrize("kinds", [("llama", "llama"), ("llama", "qwen2"), ("gemma3", "gpt-neox")])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_threads_do_not_mix(kinds: tuple[str, str], implementation: str) -> None:
    """One model in both, or two that share a function; each pass waits for the other's."""
    models = [tiny(kind, implementation) for kind in kinds]
    before = [places(model) for model in models]
    tokens = [some_tokens(N, seed=seed) for seed in (1, 2)]
    found: dict[int, Scores] = {}
    barrier = threading.Barrier(3, timeout=60)

    def read(which: int) -> None:
        rows = Rows([7, N - 1])
        with tapped(models[which], rows, layers=EACH_LAYER, width=N) as tap:
            barrier.wait()
            for _ in range(2):  # the second pass holds no new columns
                with torch.no_grad():
                    models[which](torch.tensor([tokens[which]]), use_cache=False)
                barrier.wait()
        found[which] = recorded(tap, rows)

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
        expected = reference(kind, tokens[which]).mean(1)[:, [7, N - 1]]
        np.testing.assert_allclose(found[which], expected, rtol=0, atol=1e-5)
    assert [places(model) for model in models] == before


@torch.no_grad()
def test_another_model_inside_is_not_recorded() -> None:
    """Not even one that shares the attention function and runs in the middle of a pass."""
    model, other = (tiny("llama", "eager", initializer_range=scale) for scale in (0.3, 0.2))
    model.model.layers[0].register_forward_pre_hook(
        lambda *_: other(torch.tensor([IDS[::-1]])) and None
    )
    rows = Rows()
    with tapped(model, rows, layers=EACH_LAYER, width=N) as tap:
        other(torch.tensor([IDS]))
        model(torch.tensor([IDS]))
    np.testing.assert_allclose(
        recorded(tap, rows), reference("llama", IDS).mean(1), rtol=0, atol=1e-6
    )


@torch.no_grad()
def test_a_layer_that_runs_twice_counts_once() -> None:
    """The first time: the mean over layers stays one."""
    model = tiny("llama", "eager", initializer_range=0.3)
    model.model.layers[2].register_forward_hook(
        lambda layer, args, given, output: layer.forward(output, *args[1:], **given),
        with_kwargs=True,
    )
    rows = Rows()
    with tapped(model, rows, layers=EACH_LAYER, width=N) as tap:
        model(torch.tensor([IDS]), use_cache=False)
    np.testing.assert_allclose(
        recorded(tap, rows), reference("llama", IDS).mean(1), rtol=0, atol=1e-6
    )


@torch.no_grad()
def tap_of(model: Any, *ends: int) -> AttentionTap:
    """Have a model read tokens up to each of some ends, without a cache, with the tap on."""
    with tapped(model, Rows(), layers=EACH_LAYER, width=N) as tap:
        for end in ends:
            model(torch.tensor([IDS[:end]]), use_cache=False)
    return tap


def test_a_model_that_cannot_be_tapped_is_named() -> None:
    """One whose modeling file has its own attention, and one that goes past its function.

    That one as soon as it has read the prompt, not when all has been generated.
    """
    bloom = BloomForCausalLM(BloomConfig(vocab_size=320, hidden_size=32, n_layer=2, n_head=4))
    with pytest.raises(GenerationError, match=r"BloomForCausalLM .* use a model that does \(Llama"):
        tap_of(bloom)
    gpt2 = tiny("gpt2", "eager", reorder_and_upcast_attn=True)
    before = places(gpt2)
    expected = "GPT2LMHeadModel does not compute its attention by"
    with pytest.raises(GenerationError, match=expected):
        tap_of(gpt2, N - 1, N)
    assert places(gpt2) == before
    tap = tap_of(gpt2, N)
    with pytest.raises(GenerationError, match=expected):
        tap.scores("0", "0")


def test_a_pass_without_tokens_is_refused() -> None:
    """Rows are chosen by tokens, and embeddings do not tell which they are."""
    model = tiny("llama")
    with (
        pytest.raises(GenerationError, match="give the model input_ids"),
        tapped(model, Rows(), layers=EACH_LAYER, width=N),
    ):
        model(inputs_embeds=torch.zeros(1, 3, 32))


@torch.no_grad()
def test_a_layer_that_sees_only_some_tokens_is_refused() -> None:
    """Rather than the row of another token taken for the one that is asked for."""
    model = sharing()
    with (
        pytest.raises(GenerationError, match=f"layer 2 attends from 1 of {N} tokens"),
        tapped(model, Rows([0]), layers={"2": {2}}, width=N),
    ):
        model(torch.tensor([IDS]), logits_to_keep=1)


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_large_products_in_half_precision_are_those_of_sdpa(dtype: torch.dtype) -> None:
    """Beyond 65504, the largest number of float16: biases of queries and keys bring them there."""
    generator = torch.Generator().manual_seed(0)
    query, key = (200 + torch.randn(1, 2, 6, 64, generator=generator).to(dtype) for _ in range(2))
    values = torch.eye(6, dtype=dtype).expand(1, 2, 6, 6)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, values, is_causal=True)
    assert (query[0, 0, 0] @ key[0, 0, 0]) > 65504
    call = LayerCall.of({"module": torch.nn.Identity(), "query": query, "key": key})
    found = call.logits(torch.arange(6), 0).softmax(-1)
    torch.testing.assert_close(found, expected.float(), rtol=0, atol=1e-2)


@torch.no_grad()
def test_a_layer_that_is_not_a_number_leaves_the_other_sets_alone() -> None:
    """It says nothing, but of the sets that it belongs to."""
    model = tiny("llama", "sdpa", num_hidden_layers=4)
    model.model.layers[3].self_attn.q_proj.weight.fill_(torch.nan)
    rows = Rows([N - 1])
    sets = {"lower": {0, 1}, "upper": {2, 3}}
    with tapped(model, rows, layers=sets, width=N) as tap:
        model(torch.tensor([IDS]))
    assert tap.scores(str(N - 1), "lower").sum() == pytest.approx(1)
    assert np.isnan(tap.scores(str(N - 1), "upper")).all()


def hybrid() -> Any:
    """Return a model whose lower layers have no attention."""
    config = Lfm2Config(
        **SMALL, layer_types=["conv", "conv", "full_attention"], block_auto_adjust_ff_dim=False
    )
    return Lfm2ForCausalLM(config).eval()


@torch.no_grad()
@pytest.mark.parametrize("only", [None, {str(N - 1): {0, 1}}])
def test_a_set_without_attention_is_named(only: dict[str, set[int]] | None) -> None:
    """Of a model that has some elsewhere."""
    model, rows = hybrid(), Rows([N - 1])
    sets = {"all": {0, 1, 2}, "lower": {0, 1}, "upper": {2}}
    with tapped(model, rows, layers=sets, width=N, only=only) as tap:
        model(torch.tensor([IDS]))
    if only is None:
        assert tap.scores(str(N - 1), "upper").sum() == pytest.approx(1)
    message = r"Lfm2ForCausalLM, .* only \[2\] have attention: none of the layer set lower, which"
    with pytest.raises(GenerationError, match=message):
        tap.scores(str(N - 1), "lower")


def test_layers_that_compress_their_keys_are_refused() -> None:
    """A key stands for several tokens, and there is no row to read."""
    config = LlamaConfig(num_hidden_layers=2)
    config.layer_types = ["heavily_compressed_attention", "full_attention"]
    with pytest.raises(GenerationError, match="llama has layers of heavily_compressed_attention"):
        layer_sets(config)
