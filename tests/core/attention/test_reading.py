"""What answers attended to, against the matrices of eager attention over prompt and answer."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BloomConfig, BloomForCausalLM, DynamicCache, LlamaConfig, StaticCache

from shared_core.arrays import Scores
from shared_core.attention.layers import layer_sets
from shared_core.attention.passes import can_crop
from shared_core.attention.reading import (
    AnswerAttention,
    answer_with_attention,
    attention_of_answer,
)
from shared_core.attention.rows import LayerCall
from shared_core.errors import GenerationError
from shared_core.generation.hugging_face import HuggingFaceModel, evaluating
from tests.core.attention.models import (
    CONFIGS,
    PAIRS,
    WINDOW,
    reference,
    sharing,
    some_tokens,
    tiny,
)
from tests.core.generation.test_hugging_face import trained_tokenizer

END, SPECIAL = 2, 3
LENGTHS = (20, 5, 13)
PROMPTS = [some_tokens(length, seed=length) for length in LENGTHS]
SPANS = [(12, 19), (0, 5), (7, 8)]
NEW = 6
HALVES = {"all": [0, 1, 2], "lower": [0], "upper": [2]}
FAR = HALVES | {"all": [1]}
"""Of models with windows in all layers but the middle one, which is in neither half."""


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small only wait for each other's threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return trained_tokenizer(bos=True)


@pytest.fixture
def ours(tokenizer: Any) -> HuggingFaceModel:
    return HuggingFaceModel(tiny("llama", "sdpa"), tokenizer, max_new_tokens=NEW, batch_size=3)


def expected_scores(
    kind: str,
    prompt: Sequence[int],
    answer: Sequence[int],
    span: tuple[int, int] | None = None,
    layers: Mapping[str, Sequence[int]] = HALVES,
    ends: Sequence[int] = (END,),
    special: Sequence[int] = tuple(range(5)),
) -> dict[tuple[str, str], Scores]:
    """Return all scores by their definition."""
    n, last = len(prompt), len(prompt) + len(answer) - 1
    own = [n + at for at, token in enumerate(answer) if token not in (*special, *ends)]
    rows = {
        "answer": own or [n - 1],
        "producer": [at - 1 for at in own] or [n - 1],
        "edges": [n - 1, last],
        "first": own[:1] or [n - 1],
    }
    if span is not None:
        rows["query"] = list(range(*span))
    weights = reference(kind, [*prompt, *answer]).mean(1)
    return {
        (group, name): weights[chosen][:, at, :n].mean((0, 1))
        for group, at in rows.items()
        for name, chosen in layers.items()
    }


def continued(model: HuggingFaceModel, prompts: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the tokens of the answers as the model gives them while nothing is recorded."""
    with evaluating(model.model):
        return [tuple(ids) for ids in model.continued(prompts, model.max_new_tokens).answers]


def assert_scores(
    found: AnswerAttention, expected: Mapping[tuple[str, str], Scores], tolerance: float = 1e-5
) -> None:
    """Assert the same keys, and the same numbers up to `tolerance`."""
    assert {*found.scores} == {*expected}
    for key, scores in expected.items():
        assert found.scores[key].dtype == np.float64
        np.testing.assert_allclose(
            found.scores[key], scores, rtol=0, atol=tolerance, err_msg=str(key)
        )


@pytest.mark.parametrize(("kind", "implementation"), PAIRS, ids=map(" ".join, PAIRS))
@pytest.mark.filterwarnings("ignore:no layer of")
def test_answers_are_those_of_generate_and_scores_those_of_eager_attention(
    kind: str, implementation: str, tokenizer: Any
) -> None:
    """Ragged prompts, two padded and one alone; all rows and layer sets; windows that slide."""
    model = HuggingFaceModel(
        tiny(kind, implementation), tokenizer, max_new_tokens=NEW, batch_size=2
    )
    found = answer_with_attention(model, PROMPTS, query_spans=SPANS)
    tolerance = 1e-4 if kind == "granite" else 1e-5
    for prompt, span, each in zip(PROMPTS, SPANS, found, strict=True):
        expected = expected_scores(kind, prompt, each.answer_ids, span)
        if "layer_types" in CONFIGS[kind][1]:
            far = expected_scores(kind, prompt, each.answer_ids, span, FAR)
            behind = {"query": 0, "first": 1}
            for key in far:
                if len(prompt) + behind.get(key[0], len(each.answer_ids)) > WINDOW:
                    expected[key] = far[key]
        assert_scores(each, expected, tolerance)
        assert [each.answer_ids] == continued(model, [prompt])
        assert len(each.answer_ids) == NEW or each.answer_ids[-1] == END


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_layers_that_share_keys_see_every_token(implementation: str, tokenizer: Any) -> None:
    """Where only the last token's logits are needed, Gemma 4 shows them that token alone."""
    model = HuggingFaceModel(sharing(implementation), tokenizer, max_new_tokens=NEW, batch_size=2)
    eager, halves = sharing(), {"all": [1, 3, 5], "lower": [1], "upper": [3, 5]}
    found = answer_with_attention(model, PROMPTS[::2], query_spans=SPANS[::2])
    for prompt, (start, end), each in zip(PROMPTS[::2], SPANS[::2], found, strict=True):
        assert [each.answer_ids] == continued(model, [prompt])
        ids = torch.tensor([[*prompt, *each.answer_ids]])
        with torch.no_grad():
            weights = torch.cat(eager(ids, output_attentions=True, use_cache=False).attentions)
        rows = weights.mean(1)[:, :, : len(prompt)].double().numpy()
        again = attention_of_answer(model, prompt, each.answer_ids, query_span=(start, end))
        for name, layers in halves.items():
            expected = rows[layers][:, start:end].mean((0, 1))
            for one in (each, again):
                np.testing.assert_allclose(one.scores["query", name], expected, rtol=0, atol=1e-5)
        assert_scores(again, each.scores)


def test_texts_are_answered_as_generate_answers_them(ours: HuggingFaceModel) -> None:
    """Given as the tokens that the model's own encoder makes of them."""
    texts = ["The capital of France is", "A", "one value of each window"]
    found = answer_with_attention(ours, ours.encoder.encode(texts))
    assert [each.answer for each in found] == ours.generate(texts)


def test_a_model_of_one_layer_has_two_equal_halves() -> None:
    """Rather than two empty ones; otherwise a middle layer is in neither."""
    for layers, lower, upper in ((1, {0}, {0}), (2, {0}, {1}), (5, {0, 1}, {3, 4})):
        sets = layer_sets(LlamaConfig(num_hidden_layers=layers))
        assert [sets[name].layers for name in ("all", "lower", "upper")] == [
            {*range(layers)},
            lower,
            upper,
        ]


def test_an_answer_ends_where_the_model_ends_it(tokenizer: Any) -> None:
    """At any end token, which is t_e and no part of y, while others in the batch go on.

    An answer of no tokens is read at t_b.
    """
    plain = HuggingFaceModel(tiny("llama"), tokenizer, max_new_tokens=NEW, batch_size=3)
    long, short, empty = (each.answer_ids for each in answer_with_attention(plain, PROMPTS))
    ends = [END, short[2], empty[0]]
    assert not {*ends} & {*long}
    model = copy.deepcopy(plain.model)
    model.generation_config.eos_token_id = ends
    ours = HuggingFaceModel(model, tokenizer, max_new_tokens=NEW, batch_size=3)
    found = answer_with_attention(ours, PROMPTS, query_spans=SPANS)
    assert [each.answer_ids for each in found] == [long, short[:3], empty[:1]]
    assert [each.answer_ids for each in found] == continued(ours, PROMPTS)
    for each in found:
        words = [token for token in each.answer_ids if token not in ends]
        assert each.answer == tokenizer.decode(words, skip_special_tokens=True).strip()
    for prompt, span, each in zip(PROMPTS, SPANS, found, strict=True):
        assert_scores(each, expected_scores("llama", prompt, each.answer_ids, span, ends=ends))
    assert found[2].answer == ""
    for layers in HALVES:
        answer, first = (found[2].scores[rows, layers] for rows in ("answer", "first"))
        assert np.array_equal(answer, first)
        assert not np.allclose(answer, found[2].scores["edges", layers])


def test_special_tokens_are_no_part_of_the_answer(ours: HuggingFaceModel) -> None:
    """Wherever they stand, also where the answer would begin; but the last one is t_e."""
    prompt, answer = PROMPTS[0], [SPECIAL, 50, SPECIAL, 60, 70, SPECIAL]
    found = attention_of_answer(ours, prompt, answer)
    expected = expected_scores("llama", prompt, answer)
    assert_scores(found, expected)
    weights = reference("llama", [*prompt, *answer]).mean((0, 1))[:, : len(prompt)]
    np.testing.assert_allclose(
        found.scores["answer", "all"], weights[[21, 23, 24]].mean(0), atol=1e-5
    )
    np.testing.assert_allclose(found.scores["first", "all"], weights[21], atol=1e-5)
    np.testing.assert_allclose(found.scores["edges", "all"], weights[[19, 25]].mean(0), atol=1e-5)


def test_a_special_token_amid_an_answer_may_produce_the_next_one() -> None:
    """Its row is read with those of the answer's own tokens only as the one of a producer."""
    tokenizer = trained_tokenizer()
    ours = HuggingFaceModel(tiny("llama"), tokenizer, max_new_tokens=NEW)
    (plain,) = answer_with_attention(ours, PROMPTS[:1])
    amid = plain.answer_ids[2]
    tokenizer.add_tokens(tokenizer.convert_ids_to_tokens(amid), special_tokens=True)
    (found,) = answer_with_attention(ours, PROMPTS[:1])
    assert found.answer_ids == plain.answer_ids
    special = (*range(5), amid)
    assert_scores(found, expected_scores("llama", PROMPTS[0], found.answer_ids, special=special))


def test_what_the_tokenizer_skips_is_no_part_of_the_answer() -> None:
    """Chat models end turns with tokens that are special without a name of their own."""
    tokenizer = trained_tokenizer()
    word = tokenizer.convert_tokens_to_ids("a")
    tokenizer.add_tokens("a", special_tokens=True)
    assert word not in tokenizer.all_special_ids
    ours = HuggingFaceModel(tiny("llama"), tokenizer)
    found = attention_of_answer(ours, PROMPTS[0], [word, 50])
    assert found.answer == ours.text_of([50])
    assert np.array_equal(found.scores["answer", "all"], found.scores["first", "all"])


def test_without_a_question_there_are_no_query_rows(ours: HuggingFaceModel) -> None:
    """Rather than rows of something else."""
    (found,) = answer_with_attention(ours, PROMPTS[:1])
    assert {rows for rows, _ in found.scores} == {"answer", "producer", "edges", "first"}
    assert answer_with_attention(ours, []) == []


def test_the_length_of_an_answer_can_be_given(ours: HuggingFaceModel) -> None:
    """One token is the least; its row is that of the answer and of t_e."""
    (found,) = answer_with_attention(ours, PROMPTS[:1], max_new_tokens=1)
    (whole,) = answer_with_attention(ours, PROMPTS[:1])
    assert found.answer_ids == whole.answer_ids[:1]
    assert_scores(found, expected_scores("llama", PROMPTS[0], found.answer_ids))


def prompt_cache(model: Any, prompt: Sequence[int]) -> Any:
    with torch.no_grad():
        return model(torch.tensor([prompt]), use_cache=True).past_key_values


def held(cache: Any) -> list[torch.Tensor]:
    return [states for layer in cache.layers for states in (layer.keys, layer.values)]


@pytest.mark.parametrize(("kind", "implementation"), PAIRS, ids=map(" ".join, PAIRS))
@pytest.mark.filterwarnings("ignore:no layer of")
def test_a_replayed_answer_has_the_scores_it_had_when_generated(
    kind: str, implementation: str, tokenizer: Any
) -> None:
    """In one pass, and from the prompt's cache, which holds the prompt again afterwards.

    The cache of a window that has slid cannot be cropped, and stays as it is.
    """
    model = HuggingFaceModel(tiny(kind, implementation), tokenizer, max_new_tokens=NEW)
    prompt, span = PROMPTS[0], SPANS[0]
    (generated,) = answer_with_attention(model, [prompt], query_spans=[span])
    cache = prompt_cache(model.model, prompt)
    before = copy.deepcopy(held(cache))
    for given in (None, cache, cache):
        again = attention_of_answer(
            model, prompt, generated.answer_ids, query_span=span, cache=given
        )
        assert (again.answer_ids, again.answer) == (generated.answer_ids, generated.answer)
        assert_scores(again, generated.scores, 1e-4 if kind == "granite" else 1e-5)
    for one, other in zip(held(cache), before, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "length", "span", "read"),
    [
        ("llama", 20, None, 1 + 4),
        ("llama", 20, (12, 14), 8 + 4),
        ("llama", 20, (0, 2), 20 + 4),
        ("deepseek-v3", 20, None, 1 + 4),
        ("gemma3", 20, None, 20 + 4),
        ("gemma3", WINDOW - 3, None, WINDOW - 3 + 4),
        ("gemma3", WINDOW - 5, None, 1 + 4),
    ],
)
@pytest.mark.filterwarnings("ignore:no layer of")
def test_a_prompt_in_the_cache_is_not_read_again(
    kind: str, length: int, span: tuple[int, int] | None, read: int, tokenizer: Any
) -> None:
    """From the first row on, unless that is all or the window slides while the answer is read."""
    model = HuggingFaceModel(tiny(kind), tokenizer)
    prompt, answer = some_tokens(length), some_tokens(4, seed=1)
    cache = prompt_cache(model.model, prompt)
    passes = []
    hook = model.model.register_forward_pre_hook(
        lambda module, args, given: passes.append(given["input_ids"].shape[1]), with_kwargs=True
    )
    try:
        found = attention_of_answer(model, prompt, answer, query_span=span, cache=cache)
    finally:
        hook.remove()
    assert passes == [read]
    assert cache.get_seq_length() == length
    assert_scores(found, attention_of_answer(model, prompt, answer, query_span=span).scores)


def test_a_cache_that_cannot_be_cropped_is_not_used(ours: HuggingFaceModel) -> None:
    """A static one has no way to; one of another prompt is a mistake."""
    prompt, answer = PROMPTS[0], [50, 60]
    static = StaticCache(config=ours.model.config, max_cache_len=40)
    with torch.no_grad():
        ours.model(torch.tensor([prompt]), past_key_values=static)
    found = attention_of_answer(ours, prompt, answer, cache=static)
    assert_scores(found, expected_scores("llama", prompt, answer))
    assert static.get_seq_length() == len(prompt)
    with pytest.raises(ValueError, match="the cache holds 20 tokens but the prompt has 13"):
        attention_of_answer(ours, PROMPTS[2], answer, cache=static)
    with pytest.raises(ValueError, match="the cache holds 0 tokens but the prompt has 20"):
        attention_of_answer(ours, prompt, answer, cache=DynamicCache(config=ours.model.config))


@pytest.mark.parametrize("able", [True, False])
def test_every_layer_must_be_croppable_where_the_cache_does_not_say(able: bool) -> None:
    """As in transformers 4, where the base class of caches has `crop`, and hands it on."""

    def crop(_: int) -> None: ...

    layers = [SimpleNamespace(crop=crop), SimpleNamespace(crop=crop)]
    if not able:
        del layers[1].crop
    assert can_crop(SimpleNamespace(crop=crop, layers=layers), to_hold=9) is able


@pytest.mark.parametrize("with_cache", [False, True])
def test_no_answer_is_read_at_the_last_token_of_the_prompt(
    ours: HuggingFaceModel, with_cache: bool
) -> None:
    """All rows are t_b's then."""
    cache = prompt_cache(ours.model, PROMPTS[0]) if with_cache else None
    found = attention_of_answer(ours, PROMPTS[0], [], cache=cache)
    weights = reference("llama", PROMPTS[0]).mean(1)[:, -1]
    for (_, layers), scores in found.scores.items():
        expected = weights[HALVES[layers]].mean(0)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5)
    assert (found.answer, found.answer_ids) == ("", ())
    assert cache is None or cache.get_seq_length() == len(PROMPTS[0])


@pytest.mark.parametrize(
    "settings",
    [
        {"cache_implementation": "static"},
        {"use_cache": False},
        {"prefill_chunk_size": 7},
        {"repetition_penalty": 5.0, "do_sample": True, "temperature": 9.0, "max_length": 2},
    ],
    ids=str,
)
def test_a_checkpoints_settings_change_nothing(
    settings: dict[str, Any], tokenizer: Any, ours: HuggingFaceModel
) -> None:
    """Neither its cache nor what it recommends for sampling."""
    model = copy.deepcopy(ours.model)
    for name, value in settings.items():
        setattr(model.generation_config, name, value)
    other = HuggingFaceModel(model, tokenizer, max_new_tokens=NEW, batch_size=3)
    expected = answer_with_attention(ours, PROMPTS, query_spans=SPANS)
    found = answer_with_attention(other, PROMPTS, query_spans=SPANS)
    for one, each in zip(found, expected, strict=True):
        assert (one.answer_ids, one.answer) == (each.answer_ids, each.answer)
        assert_scores(one, each.scores)
    assert [vars(model.generation_config)[name] for name in settings] == [*settings.values()]


def test_layers_that_do_not_see_the_whole_prompt_are_left_out(tokenizer: Any) -> None:
    """Where others of the set do, and only for prompts longer than the window."""
    kinds = ["full_attention", "sliding_attention", "sliding_attention"]
    model = HuggingFaceModel(tiny("gemma3", layer_types=kinds), tokenizer)
    answer = [50, 60]
    for prompt, layers in ((PROMPTS[0], {**HALVES, "all": [0]}), (PROMPTS[1], HALVES)):
        ids = torch.tensor([[*prompt, *answer]])
        with torch.no_grad():
            weights = torch.cat(model.model(ids, output_attentions=True).attentions)
        rows = weights.mean(1)[:, -2:, : len(prompt)].double().numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = attention_of_answer(model, prompt, answer)
        for name, chosen in layers.items():
            np.testing.assert_allclose(
                found.scores["answer", name], rows[chosen].mean((0, 1)), rtol=0, atol=1e-5
            )


def test_a_prompt_that_no_layer_sees_is_warned_of(tokenizer: Any, ours: HuggingFaceModel) -> None:
    """Its first passages score 0 whatever they say; a prompt within the window is fine."""
    mistral = HuggingFaceModel(tiny("mistral, window"), tokenizer, name="small", max_new_tokens=2)
    expected = (
        "no layer of all, lower, upper of small sees more than 8 tokens, but a prompt and what is "
        "read of its answer may have 22"
    )
    with pytest.warns(UserWarning, match=expected) as caught:
        (found,) = answer_with_attention(mistral, PROMPTS[:1])
    assert caught[0].filename == __file__
    assert np.all(found.scores["answer", "all"][: 20 - WINDOW] == 0)
    gemma = HuggingFaceModel(tiny("gemma3"), tokenizer, name="small")
    with pytest.warns(UserWarning, match="no layer of lower, upper of small") as caught:
        attention_of_answer(gemma, PROMPTS[0], [50])
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer_with_attention(mistral, [PROMPTS[0][: WINDOW - 2]])
        answer_with_attention(ours, PROMPTS)


@pytest.mark.parametrize(
    ("rows", "length"), [("query", WINDOW), ("first", WINDOW - 1), ("edges", WINDOW - NEW)]
)
def test_the_answer_counts_where_a_window_ends(rows: Any, length: int, tokenizer: Any) -> None:
    """As far as its rows are read: one token later, the first token of the prompt is not seen."""
    mistral = HuggingFaceModel(tiny("mistral, window"), tokenizer, max_new_tokens=NEW)
    kinds = ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention"]
    gemma = HuggingFaceModel(
        tiny("gemma3", num_hidden_layers=4, layer_types=kinds), tokenizer, max_new_tokens=NEW
    )
    gemma.model.generation_config.eos_token_id = None
    for longer in (0, 1):
        prompt = some_tokens(length + longer)
        given: dict[str, Any] = {"query_spans": [(len(prompt) - 1, len(prompt))]}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer_with_attention(mistral, [prompt], **given, wanted=[(rows, "lower")])
        assert len(caught) == longer
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (found,) = answer_with_attention(gemma, [prompt], **given, wanted=[(rows, "lower")])
        ids = torch.tensor([[*prompt, *found.answer_ids]])
        with torch.no_grad():
            weights = torch.cat(gemma.model(ids, output_attentions=True).attentions).mean(1)
        own = {"query": [-NEW - 1], "first": [-NEW], "edges": [-NEW - 1, -1]}[rows]
        expected = weights[[0] if longer else [0, 1]][:, own, : len(prompt)].mean((0, 1))
        np.testing.assert_allclose(found.scores[rows, "lower"], expected, rtol=0, atol=1e-5)


def test_bad_input_is_refused_by_name(ours: HuggingFaceModel) -> None:
    """Before the model has run."""
    prompt = PROMPTS[0]
    with pytest.raises(ValueError, match="max_new_tokens must be an integer >= 1, got 0"):
        answer_with_attention(ours, [prompt], max_new_tokens=0)
    with pytest.raises(ValueError, match="prompt 1 is empty"):
        answer_with_attention(ours, [prompt, []])
    with pytest.raises(ValueError, match="prompt 0 has 20 tokens, which with the 109 behind it"):
        answer_with_attention(ours, [prompt], max_new_tokens=109)
    with pytest.raises(ValueError, match="prompt 0 has 20 tokens, which with the 109 behind it"):
        attention_of_answer(ours, prompt, [50] * 109)
    with pytest.raises(ValueError, match="2 prompts but 1 query spans; give one each"):
        answer_with_attention(ours, [prompt, prompt], query_spans=[(1, 2)])
    for span in ((3, 3), (-1, 2), (18, 21)):
        with pytest.raises(ValueError, match=rf"query span 0 is \[{span[0]}, {span[1]}\)"):
            attention_of_answer(ours, prompt, [50], query_span=span)


def test_a_model_whose_attention_cannot_be_read_is_named(tokenizer: Any) -> None:
    """Its plain answers are still to be had."""
    config = BloomConfig(vocab_size=320, hidden_size=32, n_layer=2, n_head=4)
    model = HuggingFaceModel(BloomForCausalLM(config), tokenizer, max_new_tokens=2)
    with pytest.raises(GenerationError, match="BloomForCausalLM does not compute its attention"):
        answer_with_attention(model, PROMPTS)
    assert len(model.generate(["Rome"])) == 1


@pytest.mark.parametrize("rows", ["answer", "producer", "edges", "first", "query"])
@pytest.mark.parametrize("layers", ["all", "lower", "upper"])
def test_scores_are_the_same_where_only_they_are_wanted(
    rows: Any, layers: Any, ours: HuggingFaceModel
) -> None:
    """And with a replayed answer; the others are not there."""
    whole = answer_with_attention(ours, PROMPTS, query_spans=SPANS)
    some = answer_with_attention(ours, PROMPTS, query_spans=SPANS, wanted=[(rows, layers)])
    for prompt, span, one, other in zip(PROMPTS, SPANS, whole, some, strict=True):
        again = attention_of_answer(
            ours, prompt, one.answer_ids, query_span=span, wanted=[(rows, layers)]
        )
        for found in (other, again):
            assert {*found.scores} == {(rows, layers)}
            np.testing.assert_allclose(
                found.scores[rows, layers], one.scores[rows, layers], rtol=0, atol=1e-6
            )


@torch.no_grad()
def test_layers_that_nothing_wanted_needs_are_not_looked_at(
    ours: HuggingFaceModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While tokens are generated: half of them for the two rounds."""
    read = []
    logits = LayerCall.logits
    monkeypatch.setattr(LayerCall, "logits", lambda *args: read.append(args) or logits(*args))
    answer_with_attention(ours, PROMPTS[:1], wanted=[("answer", "upper"), ("edges", "lower")])
    upper = lower = 1
    assert len(read) <= (upper + lower) + NEW * upper + lower


def test_query_rows_without_a_question_are_refused(ours: HuggingFaceModel) -> None:
    """Rather than an empty score."""
    with pytest.raises(ValueError, match="give its query span"):
        answer_with_attention(ours, PROMPTS[:1], wanted=[("query", "all")])
