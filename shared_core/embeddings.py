"""Telling embedding models apart by what they make of one text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Vectors
from shared_core.vectors import cosine_similarity

SAME_MODEL = 0.99
"""Cosine from which two embeddings of one text count as made by the same model."""


def other_model(stored: Vectors, again: npt.ArrayLike) -> str | None:
    """Return what shows that a text was embedded by another model; None if nothing does.

    Parameters
    ----------
    stored
        The text's vector as it was kept, shape (dim,), of any length but zero.
    again
        What the model at hand makes of the text.

    Returns
    -------
    str | None
        To be said of the text: "... now has cosine 0.412 with its stored vector".
    """
    vector = np.asarray(again, np.float64)
    if vector.shape != stored.shape:
        dimension = " x ".join(map(str, vector.shape))
        return (
            f"has a stored vector of dimension {stored.size}, the embedding model gives "
            f"dimension {dimension}"
        )
    (cosine,) = cosine_similarity([stored], [vector]).tolist()
    return None if cosine >= SAME_MODEL else f"now has cosine {cosine:.3f} with its stored vector"
