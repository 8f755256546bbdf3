"""What answers attended to, against the matrices of eager attention over prompt and answer."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pytest
import torch

from shared_core.arrays import Scores
from shared_core.attention.prompt import RenderedPrompt
from shared_core.attention.reading import AnswerAttention, answer_with_attention
from shared_core.attention.relevance import LayerSet, Recorded, RowSet, TokenSpan
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

END = 2
LENGTHS = (20, 5, 13)
SPANS = [(12, 19), (0, 5), (7, 8)]
NEW = 6
HALVES = {"all": [0, 1, 2], "lower": [0], "upper": [2]}
FAR = HALVES | {"all": [1]}
"""Of models with windows in all layers but the middle one, which is in neither half."""
EVERYTHING: list[Recorded] = [
    (rows, layers) for rows in get_args(RowSet) for layers in get_args(LayerSet)
]


def prompt_of(ids: Sequence[int], question: TokenSpan = (0, 1)) -> RenderedPrompt:
    """Return a prompt of any tokens."""
    return RenderedPrompt(
        text="",
        ids=tuple(ids),
        contents=(),
        question=question,
        _origins=(),
        _offsets=None,  # type: ignore[arg-type]
    )


PROMPTS = [
    prompt_of(some_tokens(length, seed=length), span)
    for length, span in zip(LENGTHS, SPANS, strict=True)
]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return trained_tokenizer(bos=True)


def expected_scores(
    kind: str,
    prompt: RenderedPrompt,
    answer: Sequence[int],
    layers: Mapping[str, Sequence[int]] = HALVES,
    ends: Sequence[int] = (END,),
    special: Sequence[int] = tuple(range(5)),
) -> dict[tuple[str, str], Scores]:
    """Return all scores by their definition."""
    n, last = len(prompt.ids), len(prompt.ids) + len(answer) - 1
    own = [n + at for at, token in enumerate(answer) if token not in (*special, *ends)]
    rows = {
        "answer": own or [n - 1],
        "producer": [at - 1 for at in own] or [n - 1],
        "edges": [n - 1, last],
        "first": own[:1] or [n - 1],
        "query": list(range(*prompt.question)),
    }
    weights = reference(kind, [*prompt.ids, *answer]).mean(1)
    return {
        (group, name): weights[chosen][:, at, :n].mean((0, 1))
        for group, at in rows.items()
        for name, chosen in layers.items()
    }


def continued(model: HuggingFaceModel, prompts: Sequence[RenderedPrompt]) -> list[tuple[int, ...]]:
    """Return the tokens of the answers as the model gives them while nothing is recorded."""
    with evaluating(model.model):
        found = model.continued([prompt.ids for prompt in prompts], model.max_new_tokens)
    return [tuple(ids) for ids in found.answers]


def assert_scores(
    found: AnswerAttention, expected: Mapping[Any, Scores], tolerance: float = 1e-5
) -> None:
    """Assert the same keys, and the same numbers up to `tolerance`."""
    assert {*found.scores} == {*expected}
    for key, scores in found.scores.items():
        assert scores.dtype == np.float64
        np.testing.assert_allclose(scores, expected[key], rtol=0, atol=tolerance, err_msg=str(key))


@pytest.mark.parametrize(("kind", "implementation"), PAIRS, ids=map(" ".join, PAIRS))
@pytest.mark.filterwarnings("ignore:no layer of")
def test_answers_are_those_of_generate_and_scores_those_of_eager_attention(
    kind: str, implementation: str, tokenizer: Any
) -> None:
    """Ragged prompts, two padded and one alone; all rows and layer sets; windows that slide."""
    model = HuggingFaceModel(
        tiny(kind, implementation), tokenizer, max_new_tokens=NEW, batch_size=2
    )
    found = answer_with_attention(model, PROMPTS, wanted=EVERYTHING)
    for prompt, each in zip(PROMPTS, found, strict=True):
        expected = expected_scores(kind, prompt, each.answer_ids)
        if "layer_types" in CONFIGS[kind][1]:
            far = expected_scores(kind, prompt, each.answer_ids, FAR)
            behind = {"query": 0, "first": 1}
            for key in far:
                if len(prompt.ids) + behind.get(key[0], len(each.answer_ids)) > WINDOW:
                    expected[key] = far[key]
        assert_scores(each, expected, 1e-4 if kind == "granite" else 1e-5)
        assert [each.answer_ids] == continued(model, [prompt])
        assert len(each.answer_ids) == NEW or each.answer_ids[-1] == END


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_layers_that_share_keys_see_every_token(implementation: str, tokenizer: Any) -> None:
    """Where only the last token's logits are needed, Gemma 4 shows them that token alone."""
    model = HuggingFaceModel(sharing(implementation), tokenizer, max_new_tokens=NEW, batch_size=2)
    eager, halves = sharing(), {"all": [1, 3, 5], "lower": [1], "upper": [3, 5]}
    wanted = [each for each in EVERYTHING if each[0] == "query"]
    found = answer_with_attention(model, PROMPTS[::2], wanted=wanted)
    for prompt, each in zip(PROMPTS[::2], found, strict=True):
        assert [each.answer_ids] == continued(model, [prompt])
        ids = torch.tensor([[*prompt.ids, *each.answer_ids]])
        with torch.no_grad():
            weights = torch.cat(eager(ids, output_attentions=True, use_cache=False).attentions)
        rows = weights.mean(1)[:, slice(*prompt.question), : len(prompt.ids)].double().numpy()
        expected = {("query", name): rows[at].mean((0, 1)) for name, at in halves.items()}
        assert_scores(each, expected)


def test_an_answer_ends_where_the_model_ends_it(tokenizer: Any) -> None:
    """At any end token, which is t_e and no part of y, while others in the batch go on.

    An answer of no tokens is read at t_b.
    """
    plain = HuggingFaceModel(tiny("llama"), tokenizer, max_new_tokens=NEW, batch_size=3)
    long, short, empty = continued(plain, PROMPTS)
    ends = [END, short[2], empty[0]]
    assert not {*ends} & {*long}
    model = copy.deepcopy(plain.model)
    model.generation_config.eos_token_id = ends
    ours = HuggingFaceModel(model, tokenizer, max_new_tokens=NEW, batch_size=3)
    found = answer_with_attention(ours, PROMPTS, wanted=EVERYTHING)
    assert [each.answer_ids for each in found] == [long, short[:3], empty[:1]]
    for prompt, each in zip(PROMPTS, found, strict=True):
        assert_scores(each, expected_scores("llama", prompt, each.answer_ids, ends=ends))
        words = [token for token in each.answer_ids if token not in ends]
        assert each.answer == tokenizer.decode(words, skip_special_tokens=True).strip()
    assert found[2].answer == ""


@pytest.mark.parametrize("special", [[2], [0, 1], [0, 3, 5]], ids=str)
def test_special_tokens_are_no_part_of_the_answer(special: list[int]) -> None:
    """Wherever they stand; the row of one is read where it produced a token of the answer's own.

    Chat models end turns with tokens that are special without a name of their own.
    """
    tokenizer = trained_tokenizer()
    ours = HuggingFaceModel(tiny("llama"), tokenizer, max_new_tokens=NEW)
    (answer,) = continued(ours, PROMPTS[:1])
    chosen = [answer[at] for at in special]
    tokenizer.add_tokens(tokenizer.convert_ids_to_tokens(chosen), special_tokens=True)
    assert not {*chosen} <= {*tokenizer.all_special_ids}
    (found,) = answer_with_attention(ours, PROMPTS[:1], wanted=EVERYTHING)
    assert found.answer_ids == answer
    expected = expected_scores("llama", PROMPTS[0], answer, special=(*range(5), *chosen))
    assert_scores(found, expected)


@pytest.mark.parametrize("name", ["cache_implementation", "use_cache", "prefill_chunk_size"])
def test_a_checkpoints_cache_changes_nothing(name: str, tokenizer: Any) -> None:
    """Static, none as after training, or filled in chunks."""
    ours = HuggingFaceModel(tiny("llama", "sdpa"), tokenizer, max_new_tokens=NEW, batch_size=3)
    model = copy.deepcopy(ours.model)
    settings = {"cache_implementation": "static", "use_cache": False, "prefill_chunk_size": 7}
    setattr(model.generation_config, name, settings[name])
    model.config.use_cache = name != "use_cache"
    other = HuggingFaceModel(model, tokenizer, max_new_tokens=NEW, batch_size=3)
    for one, each in zip(
        *(answer_with_attention(each, PROMPTS, wanted=EVERYTHING) for each in (other, ours)),
        strict=True,
    ):
        assert one.answer_ids == each.answer_ids
        assert_scores(one, each.scores)


@pytest.mark.parametrize(
    ("rows", "length"), [("query", WINDOW), ("first", WINDOW - 1), ("edges", WINDOW - NEW)]
)
def test_the_answer_counts_where_a_window_ends(rows: Any, length: int, tokenizer: Any) -> None:
    """As far as its rows are read: one token later, the first token of the prompt is not seen."""
    mistral = HuggingFaceModel(tiny("mistral, window"), tokenizer, max_new_tokens=NEW)
    for longer in (0, 1):
        ids = some_tokens(length + longer)
        prompt = prompt_of(ids, (len(ids) - 1, len(ids)))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer_with_attention(mistral, [prompt], wanted=[(rows, "lower")])
        assert [each.filename for each in caught] == [__file__] * longer
        assert all("no layer of all, lower, upper of" in str(each.message) for each in caught)
