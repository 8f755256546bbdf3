"""Min-max normalisation of one leg's scores (CAUS eq. 2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

EPS = 1e-7


def min_max(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Scale scores to [0, 1]: ``(x - min) / (max - min + eps)`` with ``eps = 1e-7``.

    Parameters
    ----------
    scores
        Finite scores over the pool, shape (n,), higher is better.

    Returns
    -------
    ndarray
        Shape (n,), in [0, 1). All zero where the scores are all equal.
    """
    if scores.size == 0:
        return scores
    low = scores.min()
    normalised: npt.NDArray[np.float64] = (scores - low) / (scores.max() - low + EPS)
    return normalised
