"""Tiny random models of many architectures, and their attention as eager attention returns it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    DeepseekV3Config,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    GPTNeoXConfig,
    GptOssConfig,
    GraniteConfig,
    LlamaConfig,
    MistralConfig,
)

from shared_core.arrays import Scores

WINDOW = 8
SMALL: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
}
HEAD: dict[str, Any] = {"head_dim": 8}
MIXED: dict[str, Any] = {
    "sliding_window": WINDOW,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
}
SHARP: dict[str, Any] = {"query_pre_attn_scalar": 2}
EXPERTS: dict[str, Any] = {"num_experts_per_tok": 1}
LATENT: dict[str, Any] = {
    "num_key_value_heads": 4,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "n_routed_experts": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 16,
    "first_k_dense_replace": 2,
}
GPT2: dict[str, Any] = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 128}
CONFIGS: dict[str, tuple[Any, dict[str, Any]]] = {
    "llama": (LlamaConfig, HEAD),
    "mistral, window": (MistralConfig, {"sliding_window": WINDOW}),
    "gemma2": (Gemma2Config, HEAD | MIXED | SHARP | {"attn_logit_softcapping": 2.0}),
    "gemma3": (Gemma3TextConfig, HEAD | MIXED | SHARP),
    "gpt-neox": (GPTNeoXConfig, {}),
    "granite": (GraniteConfig, {"attention_multiplier": 0.3}),
    "deepseek-v3": (DeepseekV3Config, EXPERTS | LATENT),
    "gpt-oss": (GptOssConfig, HEAD | MIXED | EXPERTS | {"num_local_experts": 2}),
    "gpt2": (GPT2Config, GPT2),
}
NO_SDPA = {"gemma2", "gpt-oss"}
"""Those whose attention SDPA cannot compute: a softcap, sinks."""

PAIRS = [(kind, "eager") for kind in CONFIGS] + [
    (kind, "sdpa") for kind in CONFIGS if kind not in NO_SDPA
]
_made: dict[tuple[str, str], Any] = {}


def tiny(kind: str, implementation: str = "eager", **options: Any) -> Any:
    """Return a small random model in float32, the same for every implementation.

    One that is made without `options` is made once, and not to be changed.
    """
    if options:
        return made(kind, implementation, **options)
    if (kind, implementation) not in _made:
        _made[kind, implementation] = made(kind, implementation)
    return _made[kind, implementation]


def made(kind: str, implementation: str | None = None, seed: int = 0, **options: Any) -> Any:
    """Return such a model that the caller may change; by default with the usual attention."""
    config_class, own = CONFIGS[kind]
    config = config_class(**copy.deepcopy(SMALL | own | options))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(
            config, dtype=torch.float32, attn_implementation=implementation
        ).eval()
        for name, weight in model.named_parameters():
            if name.endswith("sinks"):
                torch.nn.init.normal_(weight)
    assert model.config._attn_implementation == implementation or implementation is None
    return model


def sharing(implementation: str = "eager") -> Any:
    """Return a Gemma 4 of six layers, of which the last four take the keys of the first two."""
    if not hasattr(transformers, "Gemma4TextConfig"):
        pytest.skip("this transformers has no Gemma 4")
    own = {
        "num_hidden_layers": 6,
        "num_kv_shared_layers": 4,
        "layer_types": ["sliding_attention", "full_attention"] * 3,
        "sliding_window": WINDOW,
        "vocab_size_per_layer_input": SMALL["vocab_size"],
        "hidden_size_per_layer_input": 8,
    }
    config = transformers.Gemma4TextConfig(**SMALL | HEAD | own)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return AutoModelForCausalLM.from_config(
            config, dtype=torch.float32, attn_implementation=implementation
        ).eval()


SPECIAL = ["<pad>", "<s>", "</s>", "<|user|>", "<|assistant|>"]


def trained_bytes(texts: Sequence[str], size: int, split: str | None = None) -> Tokenizer:
    """Return a byte-level tokenizer trained on texts, which a pattern may split into words."""
    tokenizer = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split is None)
    splitting = [pre_tokenizers.Split(Regex(split), "isolated")] if split else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splitting, level])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def some_tokens(length: int, seed: int = 0) -> list[int]:
    """Return token ids that are no special ones."""
    return np.random.default_rng(seed).integers(10, 300, length).tolist()


@torch.no_grad()
def reference(kind: str, ids: Sequence[int], **options: Any) -> Scores:
    """Return what eager attention says of one sequence, shape (layers, heads, tokens, tokens)."""
    found = tiny(kind, **options)(
        torch.tensor([list(ids)]), output_attentions=True, use_cache=False
    )
    return torch.cat(found.attentions).numpy().astype(np.float64)
