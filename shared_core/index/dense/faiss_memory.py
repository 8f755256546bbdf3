"""The memory of a FAISS index as an array, without copying."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
import numpy.typing as npt


def memory(index: faiss.IndexFlatCodes, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the contents of a flat or scalar-quantised index, shape (room, dim), room >= ntotal.

    The array keeps the index alive. It is valid until the index is added to or resized.
    """
    if not index.codes.size():  # numpy before 2.4 refuses a null address
        return np.zeros((0, index.d), dtype)
    return np.asarray(_Memory(index, np.dtype(dtype)))


class _Memory:
    def __init__(self, index: faiss.IndexFlatCodes, dtype: np.dtype[Any]) -> None:
        self._index = index
        self.__array_interface__ = {
            "version": 3,
            "typestr": dtype.str,
            "shape": (index.codes.size() // (dtype.itemsize * index.d), index.d),
            "data": (int(index.codes.data()), False),
        }
