"""How long a prompt may be, as configurations say it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("transformers")

from transformers import GPT2Config, LlamaConfig, MambaConfig, MptConfig

from shared_core.generation.context import context_length

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}


def llama(limit: int, rope: dict[str, Any] | None = None) -> LlamaConfig:
    """Return a configuration whose rotary embedding is scaled so, as this transformers calls it."""
    config = LlamaConfig(max_position_embeddings=limit)
    name = "rope_parameters" if hasattr(config, "rope_parameters") else "rope_scaling"
    if rope is not None:
        setattr(config, name, rope)
    return config


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (llama(64), 64),
        (GPT2Config(n_positions=96), 96),
        (MptConfig(max_seq_len=80), 80),
        (llama(64, YARN), 256),
        (llama(80, YARN | {"factor": 1.5}), 96),
        (llama(512, YARN), 512),
        (llama(64, {"full_attention": YARN, "sliding_attention": {}}), 256),
        (llama(64, {"type": "dynamic", "factor": 2.0}), 128),
        (llama(512, {"rope_type": "linear", "factor": 8.0}), 512),
        (llama(512, {"rope_type": "longrope", "factor": None}), 512),
    ],
)
def test_a_scaled_embedding_reads_what_it_is_scaled_to(config: Any, expected: int) -> None:
    """By the card of the model, which leaves the limit as it was; or the limit itself says it."""
    assert context_length(config) == expected


def test_where_nothing_is_said_there_is_no_limit() -> None:
    """State-space models have none."""
    assert context_length(MambaConfig()) is None


def test_the_name_of_other_makers_is_known() -> None:
    config = MambaConfig()
    config.model_max_length = 48
    assert context_length(config) == 48
