"""What tells two local models apart, and what does not."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from tokenizers import processors

from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.identity import model_identity
from tests.core.generation.test_hugging_face import TEMPLATE, tiny, trained_tokenizer


def identity(model: Any, tokenizer: Any = None, **options: Any) -> str:
    tokenizer = trained_tokenizer(bos=True) if tokenizer is None else tokenizer
    return HuggingFaceModel(model, tokenizer, name="m", **options).identity


def ends_elsewhere(model: Any, tokenizer: Any) -> None:
    model.generation_config.eos_token_id = [2, 77]


def turns_otherwise(model: Any, tokenizer: Any) -> None:
    model.config.rope_theta = 5e5


def is_trained_on(model: Any, tokenizer: Any) -> None:
    model.lm_head.weight.data += 1e-3


def is_in_half_precision(model: Any, tokenizer: Any) -> None:
    model.lm_head.weight.data = torch.zeros(320, 32)
    model.lm_head.to(torch.bfloat16)


def begins_otherwise(model: Any, tokenizer: Any) -> None:
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A", special_tokens=[]
    )


def leaves_other_tokens_out(model: Any, tokenizer: Any) -> None:
    tokenizer.add_special_tokens({"cls_token": "<|user|>"})


@pytest.mark.parametrize(
    "change",
    [
        ends_elsewhere,
        turns_otherwise,
        is_trained_on,
        is_in_half_precision,
        begins_otherwise,
        leaves_other_tokens_out,
    ],
)
def test_another_model_has_another_identity(change: Callable[[Any, Any], None]) -> None:
    """Or the answers that are kept of the one would be taken for the other's."""
    model, tokenizer = tiny("llama"), trained_tokenizer(bos=True)
    before = identity(model, tokenizer)
    assert identity(tiny("llama"), trained_tokenizer(bos=True)) == before
    change(model, tokenizer)
    assert identity(model, tokenizer) != before


def test_length_and_template_count() -> None:
    """They change what is asked and what is answered."""
    chat = trained_tokenizer(bos=True, chat_template=TEMPLATE)
    found = [
        identity(tiny("llama"), chat),
        identity(tiny("llama"), chat, chat=False),
        identity(tiny("llama"), chat, chat={"enable_thinking": False}),
        identity(tiny("llama"), chat, chat={"enable_thinking": True}),
        identity(tiny("llama"), chat, max_new_tokens=3),
    ]
    assert len({*found}) == 5


def test_what_changes_no_answer_does_not_count(tmp_path: Path) -> None:
    """Where the model lies, how it is batched, and what other calls had the tokenizer do."""
    model, tokenizer = tiny("llama"), trained_tokenizer(bos=True)
    before = identity(model, tokenizer)
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path)
    loaded = HuggingFaceModel.from_pretrained(tmp_path, device="cpu", batch_size=3)
    assert identity(loaded.model, loaded.tokenizer, batch_size=1) == before
    padding = copy.deepcopy(tokenizer)
    padding.pad_token = "<pad>"
    padding(["a", "a longer one"], padding=True, truncation=True, max_length=3)
    assert identity(model, padding) == before


@pytest.mark.filterwarnings("ignore")
def test_quantised_weights_count() -> None:
    """They are no tensors, or tensors of their own kind."""

    def quantised(seed: int) -> Any:
        return torch.ao.quantization.quantize_dynamic(
            tiny("llama", seed=seed), {torch.nn.Linear}, dtype=torch.qint8
        )

    models = [quantised(0), quantised(0), quantised(0), quantised(0)]
    models[2].lm_head = quantised(1).lm_head
    models[3].lm_head.register_buffer("more", torch.zeros(2))
    one, same, *others = map(identity, models)
    assert one == same
    assert len({one, *others}) == 3


def test_weights_that_are_elsewhere_count_by_their_shape() -> None:
    """As those that wait on disk until they are needed."""
    model = tiny("llama")
    model.model.layers[0].to("meta")
    assert identity(model) != identity(tiny("llama"))


def test_a_tensor_that_cannot_be_cut_counts_as_it_is_written() -> None:
    """Quantisers bring kinds of their own, which do not know every operation."""

    class Packed(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if function is torch.Tensor.flatten:
                raise NotImplementedError("flatten")
            return super().__torch_function__(function, types, args, kwargs or {})

    found = []
    for value in (1.0, 1.0, 2.0):
        model = tiny("llama")
        model.register_buffer("packed", torch.full((2, 2), value).as_subclass(Packed))
        found.append(identity(model))
    assert found[0] == found[1] != found[2]


def test_an_error_within_the_identity_is_no_lack_of_one() -> None:
    """Two models of one class and name would share what is left: their kept answers."""

    class Broken:
        name = "m"

        @property
        def identity(self) -> str:
            return str(self.missing)  # type: ignore[attr-defined]

        def generate(self, prompts: Sequence[str]) -> Sequence[str]:
            return prompts

    class Plain:
        name = "m"

        def generate(self, prompts: Sequence[str]) -> Sequence[str]:
            return prompts

    with pytest.raises(AttributeError, match="missing"):
        model_identity(Broken())
    assert model_identity(Plain()).startswith("m ")
