"""BM25 weights: the formulas, without the data structures.

``okapi`` is BM25Okapi of rank-bm25: ``idf = log(N - df + 0.5) - log(df + 0.5)``, negative ones
replaced by ``epsilon`` times the mean idf of the vocabulary, and
``idf * f * (k1 + 1) / (f + k1 * (1 - b + b * length / mean length))``.

``lucene`` is Lucene's BM25Similarity: ``idf = log(1 + (N - df + 0.5) / (df + 0.5))``, never zero
or negative, and no constant factor ``k1 + 1``.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Literal, TypedDict, cast

import numpy as np
import numpy.typing as npt

from shared_core.checking import check_between, check_choice

Variant = Literal["lucene", "okapi"]

LARGEST, TINY = sys.float_info.max, sys.float_info.min


class BM25Arguments(TypedDict, total=False):
    """Keyword arguments of `BM25Options`."""

    variant: Variant
    k1: float | None
    b: float
    epsilon: float
    mean_length: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class BM25Options:
    """Options of BM25.

    Attributes
    ----------
    variant
        ``"lucene"`` or ``"okapi"``.
    k1
        Saturation of the term frequency, >= 0. None: the variant's usual one, 1.2 or (``okapi``)
        1.5.
    b
        Strength of the length normalisation, in [0, 1].
    epsilon
        Floor of negative idf as a share of the mean idf (``okapi`` only), >= 0.
    mean_length
        Mean number of tokens that lengths are compared with, > 0. None: that of the texts.

    Raises
    ------
    ValueError
        If an option is not a number, or out of range.
    """

    variant: Variant = "lucene"
    k1: float | None = None
    b: float = 0.75
    epsilon: float = 0.25
    mean_length: float | None = None

    def __post_init__(self) -> None:
        check_choice(self.variant, "variant", Variant)
        if self.k1 is None:
            object.__setattr__(self, "k1", 1.5 if self.variant == "okapi" else 1.2)
        for name, most in (("k1", LARGEST), ("b", 1.0), ("epsilon", LARGEST)):
            value = getattr(self, name)
            if value is None:
                raise ValueError(f"{name} must be a number, got None")
            check_between(value, name, 0, most)
            object.__setattr__(self, name, float(value))  # JSON cannot hold NumPy's
        check_between(self.mean_length, "mean_length", TINY, LARGEST)

    @property
    def _k1(self) -> float:
        return cast(float, self.k1)

    @property
    def gain(self) -> float:
        """Least upper bound of a term's weight, in units of its idf."""
        return self._k1 + 1 if self.variant == "okapi" else 1.0

    def idf(self, df: int, n: int, mean_idf: float) -> float:
        """Inverse document frequency of a term that occurs in `df` of `n` documents."""
        if self.variant == "lucene":
            return math.log1p((n - df + 0.5) / (df + 0.5))
        idf = math.log(n - df + 0.5) - math.log(df + 0.5)
        return self.epsilon * mean_idf if idf < 0 else idf

    def mean_idf(self, df: npt.NDArray[np.int64], n: int) -> float:
        """Mean of the unfloored ``okapi`` idf over the vocabulary; 0 for ``lucene``.

        It is summed in the order of the frequencies, so that that of the terms, which depends on
        what was deleted, makes no difference to the last bit.
        """
        if self.variant == "lucene" or not df.any():
            return 0.0
        terms = np.bincount(df)[1:]
        held = np.arange(1, terms.size + 1)
        idf = np.log(n - held + 0.5) - np.log(held + 0.5)
        return float(np.sum(terms * idf) / terms.sum())

    def length_norm(self, mean: float) -> tuple[float, float]:
        """Return slope and base of ``k1 * (1 - b + b * length / mean)``, linear in the length.

        This is the denominator without the count. It is kept above zero, so that an absent term
        weighs 0 even if ``k1`` is 0. A `mean_length` of the options replaces `mean`.
        """
        mean = self.mean_length or mean
        slope = self._k1 * self.b / mean if mean > 0 else 0.0
        return slope, self._k1 * (1 - self.b) + TINY
