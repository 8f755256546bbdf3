"""The untrained model: a small Llama that starts near one that looks words up.

Random weights were still close to guessing among the values of a prompt after five minutes on a
CPU; from attention set up as in `prepare`, looking up takes two or three to learn.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

# Heads a layer, and how many of a head's pairs of dimensions turn fast with the distance.
HEADS, FAST = 2, 12


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Return a model to train."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=512,
        initializer_range=0.05,
        attention_bias=True,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = LlamaForCausalLM(config)
    model.generation_config.do_sample = False
    prepare(model)
    return model


@torch.no_grad()
def prepare(model: LlamaForCausalLM) -> None:
    """Start near a model that looks words up.

    Heads hand on what they attend to: their output map is the transpose of their value map. The
    first layer's attend to the tokens two and three back, the others' to far tokens that have
    neighbours like their own. All slots of a prompt are alike to it: what a slot is worth is left
    to training, and so is which of a document's words is the answer.
    """
    nn.init.normal_(model.model.embed_tokens.weight, std=0.04)
    model.lm_head.weight.copy_(model.model.embed_tokens.weight)
    for number, layer in enumerate(model.model.layers):
        layer.mlp.down_proj.weight.mul_(0.1)
        attention = layer.self_attn
        nn.init.orthogonal_(attention.v_proj.weight, 0.63)
        attention.o_proj.weight.copy_(attention.v_proj.weight.T)
        if number == 0:
            look_back(attention.q_proj, attention.k_proj, attention.head_dim)
        else:
            look_alike(attention.q_proj, attention.k_proj, attention.head_dim)


def look_back(query: nn.Linear, key: nn.Linear, size: int) -> None:
    """Let head 0 attend two tokens back and head 1 three, whatever the tokens are."""
    for head in range(HEADS):
        rows = slice(head * size, (head + 1) * size)
        query.bias[rows], key.bias[rows] = toward(size, 2.0 + head, 1.5)
    query.weight.mul_(0.3)
    key.weight.mul_(0.3)


def look_alike(query: nn.Linear, key: nn.Linear, size: int) -> None:
    """Let the heads attend to like tokens that are not right before.

    The likeness is read from the dimensions that hardly turn over a prompt's length.
    """
    for head in range(HEADS):
        rows = slice(head * size, (head + 1) * size)
        query.bias[rows], near = toward(size, 1.0, 2.0)
        key.bias[rows] = -near
    nn.init.orthogonal_(query.weight, 2.0)
    query.weight[torch.arange(HEADS * size) % (size // 2) < FAST + 3] *= 0.1
    key.weight.copy_(query.weight)


def toward(size: int, offset: float, strength: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return biases of query and key that favour the token `offset` back.

    Rotary positions turn the dimensions d and d + size/2 of a head by the distance, the first
    ones fast; the product of the biases is greatest where the turn makes up their angle.
    """
    half = size // 2
    angle = offset * 10_000.0 ** (-torch.arange(FAST) / half)
    query, key = torch.zeros(size), torch.zeros(size)
    query[:FAST] = strength * 2**0.5
    key[:FAST] = strength * 2**0.5 * torch.cos(angle)
    key[half : half + FAST] = strength * 2**0.5 * torch.sin(angle)
    return query, key
