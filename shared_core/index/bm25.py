"""BM25 weights: the formulas, without the data structures.

``okapi`` is BM25Okapi of rank-bm25: ``idf = log(N - df + 0.5) - log(df + 0.5)``, negative ones
replaced by ``epsilon`` times the mean idf of the vocabulary, and
``idf * f * (k1 + 1) / (f + k1 * (1 - b + b * length / mean length))``.

``lucene`` is Lucene's BM25Similarity: ``idf = log(1 + (N - df + 0.5) / (df + 0.5))``, never zero
or negative, and no constant factor ``k1 + 1``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Variant = Literal["lucene", "okapi"]

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, kw_only=True, slots=True)
class BM25Options:
    """Options of BM25.

    Attributes
    ----------
    variant
        ``"lucene"`` or ``"okapi"``.
    k1
        Saturation of the term frequency, >= 0.
    b
        Strength of the length normalisation, in [0, 1].
    epsilon
        Floor of negative idf as a share of the mean idf (``okapi`` only), >= 0.

    Raises
    ------
    ValueError
        If an option is out of range.
    """

    variant: Variant = "lucene"
    k1: float = 1.2
    b: float = 0.75
    epsilon: float = 0.25

    def __post_init__(self) -> None:
        if self.variant not in ("lucene", "okapi"):
            raise ValueError(f"variant must be 'lucene' or 'okapi', got {self.variant!r}")
        if not 0 <= self.k1 < np.inf:
            raise ValueError(f"k1 must be >= 0, got {self.k1}")
        if not 0 <= self.b <= 1:
            raise ValueError(f"b must lie in [0, 1], got {self.b}")
        if not 0 <= self.epsilon < np.inf:
            raise ValueError(f"epsilon must be >= 0, got {self.epsilon}")

    @classmethod
    def of(cls, variant: Variant, k1: float | None, b: float, epsilon: float) -> BM25Options:
        """Return options; `k1` of None is the variant's usual one, 1.2 or (``okapi``) 1.5."""
        usual = 1.5 if variant == "okapi" else 1.2
        return cls(variant=variant, k1=usual if k1 is None else k1, b=b, epsilon=epsilon)

    @property
    def gain(self) -> float:
        """Least upper bound of a term's weight, in units of its idf."""
        return self.k1 + 1 if self.variant == "okapi" else 1.0

    def idf(self, df: int, n: int, mean_idf: float) -> float:
        """Inverse document frequency of a term that occurs in `df` of `n` documents."""
        if self.variant == "lucene":
            return math.log1p((n - df + 0.5) / (df + 0.5))
        idf = math.log(n - df + 0.5) - math.log(df + 0.5)
        return self.epsilon * mean_idf if idf < 0 else idf

    def mean_idf(self, df: npt.NDArray[np.int64], n: int) -> float:
        """Mean of the unfloored ``okapi`` idf over the vocabulary; 0 for ``lucene``."""
        present = df[df > 0]
        if self.variant == "lucene" or present.size == 0:
            return 0.0
        return float(np.mean(np.log(n - present + 0.5) - np.log(present + 0.5)))

    def length_norm(self, mean: float) -> tuple[float, float]:
        """Return slope and base of ``k1 * (1 - b + b * length / mean)``, a line over the length.

        It is the denominator's part beside the count. Kept above zero, so that an absent term
        weighs 0 also where ``k1`` is 0.
        """
        slope = self.k1 * self.b / mean if mean > 0 else 0.0
        return slope, self.k1 * (1 - self.b) + _TINY
