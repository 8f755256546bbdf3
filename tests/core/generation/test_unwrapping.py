"""Models in the wrappers of other libraries give what they give without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from shared_core.attention.prompt import render_prompt
from shared_core.attention.reading import answer_with_attention
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.templates import PromptTemplate
from tests.core.generation.test_hugging_face import PROMPTS, tiny, trained_tokenizer


class Wrapper(torch.nn.Module):
    """As PEFT's: everything of the model is there, and `forward` names a part of its options."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.base_model = model

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.base_model, name)

    def forward(self, input_ids: Any = None, attention_mask: Any = None, **options: Any) -> Any:
        return self.base_model(input_ids=input_ids, attention_mask=attention_mask, **options)


def compiled(model: Any) -> Any:
    return torch.compile(model, backend="eager")


@pytest.mark.parametrize("wrap", [Wrapper, compiled, lambda model: Wrapper(compiled(model))])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_wrapped_model_gives_what_it_gives_without(wrap: Any, kind: str) -> None:
    """Its name, and in a padded batch its answers, log-probabilities and attention."""
    tokenizer = trained_tokenizer(bos=True)
    plain, wrapped = (
        HuggingFaceModel(model, tokenizer, max_new_tokens=4)
        for model in (tiny(kind), wrap(tiny(kind)))
    )
    assert wrapped.name == plain.name
    assert wrapped.identity == plain.identity
    assert wrapped.generate(PROMPTS) == plain.generate(PROMPTS)
    tails = [" Paris"] * len(PROMPTS)
    found, expected = (each.log_probabilities(PROMPTS, tails) for each in (wrapped, plain))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    alone = PromptTemplate("{context}{question}")
    prompts = [render_prompt(plain.encoder, alone, [], prompt) for prompt in PROMPTS]
    wanted = [("answer", "all"), ("edges", "lower")]
    both = (answer_with_attention(each, prompts, wanted=wanted) for each in (wrapped, plain))
    for one, other in zip(*both, strict=True):
        for key, scores in other.scores.items():
            np.testing.assert_allclose(one.scores[key], scores, rtol=0, atol=1e-5)


def test_a_wrapper_with_weights_of_its_own_is_refused() -> None:
    """As of learnt prompts, which would not be read."""
    wrapper = Wrapper(tiny("llama"))
    wrapper.prompt = torch.nn.Parameter(torch.zeros(4, 32))
    with pytest.raises(ValueError, match="Wrapper has weights of its own around its LlamaForCausa"):
        HuggingFaceModel(wrapper, trained_tokenizer())


@pytest.mark.parametrize("model", [torch.nn.Linear(2, 2), "gpt2", None])
def test_what_holds_no_model_is_refused(model: Any) -> None:
    """By its kind."""
    with pytest.raises(ValueError, match="model must be a PreTrainedModel of transformers, got a"):
        HuggingFaceModel(model, trained_tokenizer())
