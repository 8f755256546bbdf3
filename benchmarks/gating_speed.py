"""What a fit and a decision cost, as the corpus grows."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.gating_collections import SEED, fit
from shared_core.gating.candidates import ASKED, spread

SIZES = (1_700, 10_000, 100_000, 1_000_000)
DECISIONS = 10_000


def growth(everyday: np.ndarray, most: int) -> None:
    """Print seconds of a fit on 1,000 pseudo-queries, and milliseconds of a decision."""
    for contexts in (size for size in SIZES if size <= most):
        rng = np.random.default_rng(SEED)
        vectors = rng.standard_normal((contexts, everyday.shape[1]), np.float32)
        owners = spread(contexts, ASKED)
        pseudo = vectors[owners] + rng.standard_normal((ASKED, everyday.shape[1]), np.float32)
        begun = time.perf_counter()
        gate = fit(vectors, owners, pseudo, everyday)
        spent = time.perf_counter() - begun
        begun = time.perf_counter()
        for similarity in np.linspace(0, 1, DECISIONS).tolist():
            gate.decide(similarity)
        decision = (time.perf_counter() - begun) / DECISIONS
        print(f"  {contexts:>9,}: fit {spent:.2f} s, a decision {decision * 1e3:.4f} ms")
