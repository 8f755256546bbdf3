"""A corpus, an embedding of words and questions, for hosts of the gate in either framework."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from instruments.gating_texts import PASSAGES as PASSAGES
from shared_core.gating import ContextGate
from shared_core.gating.fit import fit_gate

DIM = 512

INSIDE = "Why does smoke calm a hive, so that bees seldom sting?"

OUTSIDE = "Who painted the ceiling of the Sistine Chapel?"

IDS = [f"p{number}" for number in range(len(PASSAGES))]


def embed(text: str) -> list[float]:
    """Hash words of four letters or more; deterministic, and near where words are shared."""
    vector = np.full(DIM, 0.001)
    for word in re.findall(r"\w{4,}", text.lower()):
        vector[zlib.crc32(word.encode()) % DIM] += 1
    return [float(value) for value in vector / np.linalg.norm(vector)]


def embed_all(texts: Sequence[str]) -> list[list[float]]:
    return [embed(text) for text in texts]


VECTORS = np.array(embed_all(PASSAGES), np.float32)


def fitted(**options: Any) -> ContextGate:
    """Return a gate that is fitted on the corpus."""
    return fit_gate(IDS, PASSAGES, VECTORS, embed_all, **options)
