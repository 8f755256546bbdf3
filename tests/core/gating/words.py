"""A corpus, an embedding of words and questions, for hosts of the gate in either framework."""

from __future__ import annotations

import re
import zlib

import numpy as np

from instruments.gating_texts import PASSAGES as PASSAGES

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
