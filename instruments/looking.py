"""Where the lower layers look while a reader answers, as a loss: the control is to look evenly."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import LlamaForCausalLM

from instruments.batches import Batch

TENTHS = 10


def unevenness(model: LlamaForCausalLM, batch: Batch, eos: int) -> torch.Tensor:
    """Return how far the positional curve of a batch is from a flat one.

    The curve is what ``posrag attention`` draws: the attention of the token that the answer is
    read from and of the end token, two places on, in the lower half of the layers, over tenths of
    the documents, in multiples of its mean. Taken over questions that ask for every document once,
    so that it leaves room for looking at the right document.

    Parameters
    ----------
    model
        The reader.
    batch
        Laid out by `one_by_one`, with end tokens.
    eos
        Id of the end token.

    Returns
    -------
    torch.Tensor
        Mean square of the curve less 1, a scalar.
    """
    model.set_attn_implementation("eager")  # the only one that returns attention
    assert batch.mask is not None
    hidden = torch.zeros(batch.mask.shape).masked_fill(~batch.mask, torch.finfo(torch.float32).min)
    layers = model.model(
        input_ids=batch.ids,
        attention_mask=hidden,
        position_ids=batch.positions,
        use_cache=False,
        output_attentions=True,
    ).attentions
    model.set_attn_implementation("sdpa")
    lower = torch.stack(layers[: len(layers) // 2]).mean(dim=(0, 2))
    looked = lower @ in_tenths(batch.lengths, batch.ids.shape[1])
    answered = (batch.labels != -100) & (batch.labels != eos)
    both = looked[answered] + looked[:, 2:][answered[:, :-2]]
    curve = (both / both.sum(dim=1, keepdim=True)).mean(dim=0) * TENTHS
    return ((curve - 1) ** 2).mean()


def in_tenths(lengths: Sequence[int], wide: int) -> torch.Tensor:
    """Return how much of each tenth of a row's documents each token is, shape (rows, wide, 10).

    Documents begin after the first token, which is the head of the prompt.
    """
    parts = torch.zeros(len(lengths), wide, TENTHS)
    for row, length in enumerate(lengths):
        edges = torch.linspace(0, length - 1, TENTHS + 1)
        start = torch.arange(length - 1)[:, None]
        shared = torch.minimum(start + 1, edges[1:]) - torch.maximum(start, edges[:-1])
        parts[row, 1:length] = shared.clamp(min=0)
    return parts
