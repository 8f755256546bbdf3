"""Questions about neighbouring topics: those of one part of a corpus, put to the rest of it.

Foreign questions of the nearest kind that can be had without labels. Everyday questions are the
farthest: an edge between these and a corpus's own lets most of what is about a neighbouring topic
pass.
"""

from __future__ import annotations

import numpy as np

from shared_core.arrays import Rows, Scores, Vectors

PARTS = 16
"""Parts that a corpus is cut into: about as many as there are neighbouring topics."""

ASKED = 1000
"""Questions that are put to the rest: enough for a median."""

_CUT_BY = 20_000
"""Passages by which the parts are found; the others go to the nearest."""


def neighbouring_similarities(vectors: Vectors, owners: Rows, questions: Vectors) -> Scores:
    """Return each question's highest similarity to passages outside its own part, ascending.

    Parameters
    ----------
    vectors
        Passages, unit vectors of shape (n, dim).
    owners, questions
        The row of the passage that each question is about, and its unit vector; of more than 1,000
        some, evenly spread, are taken.

    Returns
    -------
    ndarray
        Empty for fewer than 4 passages.
    """
    if len(vectors) < 4 or not len(owners):
        return np.empty(0)
    some = spread(len(owners), ASKED)
    owners, questions = owners[some], questions[some]
    part_of = parts(vectors)
    highest = np.full(len(owners), -1.0)
    for part in range(int(part_of.max()) + 1):
        asked, others = part_of[owners] == part, part_of != part
        if asked.any() and others.any():
            highest[asked] = (questions[asked] @ vectors.T)[:, others].max(axis=1)
    return np.sort(highest)


def spread(count: int, most: int) -> Rows:
    """Return at most `most` of `count` rows, evenly spread and ascending."""
    return np.linspace(0, count - 1, min(count, most)).astype(np.intp)


def parts(vectors: Vectors) -> Rows:
    """Return the part of each passage, at most 16, by k-means of their directions."""
    import faiss  # loaded where it is asked for

    kmeans = faiss.Kmeans(
        vectors.shape[1],
        min(PARTS, len(vectors) // 2),
        spherical=True,
        min_points_per_centroid=1,
        seed=0,
    )
    kmeans.train(np.ascontiguousarray(vectors[spread(len(vectors), _CUT_BY)]))
    found: Rows = kmeans.assign(np.ascontiguousarray(vectors))[1]
    return found
