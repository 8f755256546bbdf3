"""The model to train: a small Llama, of random weights or grown from a trained one."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Return a model to train, as `LlamaForCausalLM` initialises it."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=512,
        initializer_range=0.05,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = LlamaForCausalLM(config)
    model.generation_config.do_sample = False
    return model


def grow(folder: Path) -> LlamaForCausalLM:
    """Return a trained model with one layer more, the last, which at first passes all on as it is.

    What it writes into the hidden state begins at zero, the rest of it random; so it answers as
    before, and learns from there.
    """
    trained = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    deeper = {"num_hidden_layers": trained.config.num_hidden_layers + 1}
    model = LlamaForCausalLM(LlamaConfig(**trained.config.to_dict() | deeper))
    model.generation_config = trained.generation_config
    model.load_state_dict(trained.state_dict(), strict=False)
    last = model.model.layers[-1]
    torch.nn.init.zeros_(last.self_attn.o_proj.weight)
    torch.nn.init.zeros_(last.mlp.down_proj.weight)
    return model
