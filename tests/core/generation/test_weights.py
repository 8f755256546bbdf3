"""What tells two local models apart, and what does not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from tokenizers import normalizers, processors

from shared_core.generation import HuggingFaceModel
from tests.core.attention.models import made
from tests.core.generation.test_hugging_face import TEMPLATE, trained_tokenizer


def fingerprint(model: Any, tokenizer: Any = None, **options: Any) -> str:
    tokenizer = trained_tokenizer(bos=True) if tokenizer is None else tokenizer
    return HuggingFaceModel(model, tokenizer, name="m", **options).fingerprint


PLAIN = processors.TemplateProcessing(single="$A", special_tokens=[])
CHANGES: dict[str, Callable[[Any, Any], object]] = {
    "ends elsewhere": lambda model, _: setattr(model.generation_config, "eos_token_id", [2, 77]),
    "turns otherwise": lambda model, _: setattr(model.config, "rope_theta", 5e5),
    "last row": lambda model, _: model.lm_head.weight.data[-1, -1].add_(1e-3),
    "bfloat16": lambda model, _: model.model.norm.to(torch.bfloat16),  # ones remain ones
    "no <s>": lambda _, tokenizer: setattr(tokenizer.backend_tokenizer, "post_processor", PLAIN),
    "small": lambda _, it: setattr(it.backend_tokenizer, "normalizer", normalizers.Lowercase()),
    "special": lambda _, tokenizer: tokenizer.add_special_tokens({"cls_token": "<|user|>"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_model_has_another_fingerprint(change: str) -> None:
    """Or the answers that are kept of the one would be taken for the other's."""
    model, tokenizer = made("llama"), trained_tokenizer(bos=True)
    ours = HuggingFaceModel(model, tokenizer, name="m")
    before = ours.fingerprint
    assert fingerprint(made("llama"), trained_tokenizer(bos=True)) == before
    CHANGES[change](model, tokenizer)
    assert fingerprint(model, tokenizer) != before
    if change == "last row":  # trained in place
        assert ours.fingerprint != before


def test_length_and_template_count() -> None:
    """They change what is asked and what is answered."""
    chat = trained_tokenizer(bos=True, chat_template=TEMPLATE)
    found = [
        fingerprint(made("llama"), chat),
        fingerprint(made("llama"), chat, chat=False),
        fingerprint(made("llama"), chat, chat={"enable_thinking": False}),
        fingerprint(made("llama"), chat, max_new_tokens=3),
    ]
    assert len({*found}) == 4


def test_what_changes_no_answer_does_not_count(tmp_path: Path) -> None:
    """Where the model lies, how it is batched, and what other calls had the tokenizer do."""
    model, tokenizer = made("llama"), trained_tokenizer(bos=True)
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        for part in (model, tokenizer):
            part.save_pretrained(folder)
    here, there = (HuggingFaceModel.from_pretrained(each, device="cpu") for each in folders)
    before = fingerprint(here.model, here.tokenizer)
    assert fingerprint(there.model, there.tokenizer, batch_size=1) == before
    before = fingerprint(model, tokenizer)
    padding = copy.deepcopy(tokenizer)
    padding.pad_token = "<pad>"
    padding(["a", "a longer one"], padding=True, truncation=True, max_length=3)
    assert fingerprint(model, padding) == before


def test_weights_that_cannot_be_read_count_by_their_shape_with_a_warning() -> None:
    """As those that wait on disk until they are needed."""
    model = made("llama")
    model.model.layers[0].to("meta")
    with pytest.warns(UserWarning, match=r"9 weights of 'm' cannot be read, .*; ask afresh then"):
        assert fingerprint(model) != fingerprint(made("llama"))
