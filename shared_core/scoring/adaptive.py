"""A query-adaptive weight of the dense leg: CAUS's future work, without labels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BEST = 20


def auto_alpha(dense: npt.NDArray[np.float64], sparse: npt.NDArray[np.float64]) -> float:
    """Weigh the dense leg by how far its best score stands out, against the sparse leg's.

    Parameters
    ----------
    dense, sparse
        Finite scores over the pool, shape (n,), higher is better.

    Returns
    -------
    float
        Weight in [0, 1].
    """
    standing = _stands_out(dense), _stands_out(sparse)
    total = sum(standing)
    return 0.5 + 0.5 * (standing[0] / total) if total > 0 else 0.5


def _stands_out(scores: npt.NDArray[np.float64]) -> float:
    if scores.size < 2:
        return 0.0
    deviation = float(scores.std())
    if deviation == 0:
        return 0.0
    best = np.sort(scores)[::-1][:BEST]
    return float(best[0] - best.mean()) / deviation
