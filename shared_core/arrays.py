"""Type aliases for the arrays of the core, and for embedding models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bools: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int32]
Rows: TypeAlias = npt.NDArray[np.intp]
Scores: TypeAlias = npt.NDArray[np.float64]
Vectors: TypeAlias = npt.NDArray[np.float32]

Found: TypeAlias = tuple[Rows, Scores]
"""Rows, ascending, and their scores, each of shape (n,)."""

Embed: TypeAlias = Callable[[Sequence[str]], npt.ArrayLike]
"""An embedding model: texts to vectors, shape (len(texts), dim)."""
