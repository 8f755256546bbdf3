"""Embeddings of chunks by id, in one matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Vectors

GROWTH = 1.5
"""How much room a full matrix grows by."""


class VectorTable:
    """Embeddings by the id of their chunk, of unit length so that a product is the cosine.

    Deleted ones are dropped when the matrix grows.
    """

    def __init__(self) -> None:
        self._matrix: Vectors = np.zeros((0, 0), np.float32)
        self._size = 0
        self._rows: dict[str, int] = {}

    def checked(self, vectors: npt.ArrayLike, count: int) -> Vectors:
        """Return `vectors` as float32 if they are one finite vector for each of `count` chunks.

        Raises
        ------
        ValueError
            If the shape does not fit or a value is not finite.
        """
        matrix = np.asarray(vectors, dtype=np.float32)
        if matrix.ndim != 2 or len(matrix) != count or (count and not matrix.shape[1]):
            raise ValueError(f"expected {count} vectors, got shape {matrix.shape}")
        if self._rows and matrix.shape[1] != self._matrix.shape[1]:
            raise ValueError(
                f"the table holds vectors of dimension {self._matrix.shape[1]}, got dimension "
                f"{matrix.shape[1]}: embed with the same model"
            )
        if not np.isfinite(matrix).all():
            raise ValueError("the vectors hold NaN or infinite values")
        return matrix

    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Keep a copy of vectors that `checked` has passed, one for each id."""
        if not ids:
            return
        if not self._rows or self._size + len(ids) > len(self._matrix):
            self._grow(len(ids), vectors.shape[1])
        end = self._size + len(ids)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=self._matrix[self._size : end], where=lengths > 0)
        self._rows.update(zip(ids, range(self._size, end), strict=True))
        self._size = end

    def discard(self, ids: Iterable[str]) -> None:
        """Forget the vectors of `ids`, where there are any."""
        for id in ids:
            self._rows.pop(id, None)

    def cosines(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Return the cosine of each pair of ids; None where either has no vector."""
        rows = self._rows
        if not rows:
            return [None] * len(pairs)
        first = [rows.get(id, -1) for id, _ in pairs]
        second = [rows.get(id, -1) for _, id in pairs]
        found = np.vecdot(self._matrix[first], self._matrix[second]).clip(-1, 1).tolist()
        return [
            None if one < 0 or other < 0 else cosine
            for one, other, cosine in zip(first, second, found, strict=True)
        ]

    def _grow(self, count: int, dim: int) -> None:
        kept = list(self._rows.values())
        held = self._matrix[kept]
        room = max(len(kept) + count, int(len(kept) * GROWTH))
        self._matrix = np.zeros((room, dim), np.float32)
        self._matrix[: len(kept)] = held.reshape(len(kept), dim)
        self._rows = dict(zip(self._rows, range(len(kept)), strict=True))
        self._size = len(kept)
