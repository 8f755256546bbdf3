"""Arrays on disk."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shared_core.index.persistence.manifest import corrupt_if_unreadable


def read_array(path: Path, dimensions: int, *dtypes: type[np.number]) -> npt.NDArray[Any]:
    """Read an array, provided that the file is as long as its header promises.

    Parameters
    ----------
    path
        An ``.npy`` file as ``numpy.save`` writes it.
    dimensions
        Number of dimensions it must have.
    *dtypes
        Types of which it must have one.

    Raises
    ------
    CorruptIndexError
        If the file is anything else.
    """
    with corrupt_if_unreadable(path), path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
        except Exception as error:  # an invalid header may raise anything
            raise ValueError(f"it has no array header ({error})") from error
        if version != (1, 0) or by_column or len(shape) != dimensions or dtype not in dtypes:
            raise ValueError(f"it holds an array of type {dtype} and shape {shape}")
        promised, held = math.prod(shape) * dtype.itemsize, path.stat().st_size - file.tell()
        if promised != held:
            raise ValueError(f"an array of shape {shape} has {promised} bytes, it holds {held}")
        return np.fromfile(file, dtype, math.prod(shape)).reshape(shape)
