"""A framework's embedding model, as the gates of both frameworks use it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

ALIKE = 0.9999
"""Cosine from which the embeddings of one text as query and as passage count as equal."""

Vector: TypeAlias = list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedder:
    """The functions of an embedding model.

    Attributes
    ----------
    query, aquery
        Text of a query -> its vector; the second is awaited.
    texts, atexts
        Texts of passages -> their vectors.
    """

    query: Callable[[str], Vector]
    texts: Callable[[list[str]], list[Vector]]
    aquery: Callable[[str], Awaitable[Vector]]
    atexts: Callable[[list[str]], Awaitable[list[Vector]]]

    def queries(self, queries: Sequence[str]) -> npt.ArrayLike:
        """Embed many queries, at least one.

        The models of the frameworks embed passages in batches and queries one by one. If the first
        query has the same embedding as a query and as a passage, all are embedded in a batch.
        """
        first = np.asarray(self.query(queries[0]), np.float64)
        if len(queries) == 1:
            return first[None]
        as_text = np.asarray(self.texts([queries[0]])[0], np.float64)
        lengths = float(np.linalg.norm(first) * np.linalg.norm(as_text))
        if first @ as_text >= ALIKE * lengths:
            return self.texts([*queries])
        return np.array([first, *(self.query(query) for query in queries[1:])])
