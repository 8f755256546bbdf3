"""What a fit and a decision cost, as the corpus grows."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.gating_collections import SEED
from shared_core.gating import VectorCandidates

SIZES = (1_700, 10_000, 100_000, 1_000_000)
PART = 10_000
DECISIONS = 10_000


def growth(everyday: np.ndarray, most: int) -> None:
    """Print seconds of a fit on three pseudo-queries a context, and milliseconds of a decision."""
    for contexts in (size for size in SIZES if size <= most):
        gate, spent = _fitted(contexts, everyday)
        begun = time.perf_counter()
        _ = gate.levels
        levels = time.perf_counter() - begun
        begun = time.perf_counter()
        for similarity in np.linspace(0, 1, DECISIONS).tolist():
            gate.decide(similarity)
        decision = (time.perf_counter() - begun) / DECISIONS
        print(
            f"  {contexts:>9,} x 3: fit {spent + levels:.2f} s (of it the levels {levels:.2f} s), "
            f"a decision {decision * 1e3:.4f} ms"
        )


def _fitted(contexts: int, everyday: np.ndarray) -> tuple[VectorCandidates, float]:
    """Return a gate on random vectors, and the seconds that adding them took."""
    rng = np.random.default_rng(SEED)
    gate, spent = VectorCandidates(negatives=everyday), 0.0
    for start in range(0, contexts, PART):
        size = min(PART, contexts - start)
        vectors = rng.standard_normal((size, everyday.shape[1]), np.float32)
        pseudo = np.repeat(vectors, 3, axis=0)
        pseudo += rng.standard_normal(pseudo.shape, np.float32)
        ids = [str(number) for number in range(start, start + size)]
        owners = [id for id in ids for _ in range(3)]
        begun = time.perf_counter()
        gate.add(ids, vectors, owners, pseudo)
        spent += time.perf_counter() - begun
    return gate, spent
