"""Pipelines by name: where the passages of a comparison come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared_core.scoring.fusion import Alpha

GIVEN = "given"
SPARSE = "sparse"
ALPHAS: Mapping[str, Alpha] = {"dense": 1.0, "hybrid": 0.3, "auto": "auto"}
"""Weight of the dense leg by pipeline (CAUS, section IV-A, for the hybrid one)."""

PIPELINES = (GIVEN, "dense", SPARSE, "hybrid", "auto")
"""Each may be followed by ``+rerank``, ``+spans``, or both in this order."""

RERANKED = "+rerank"

SPANNED = "+spans"


@dataclass(frozen=True)
class Pipeline:
    """What the name of a pipeline says.

    Attributes
    ----------
    name
        One of `PIPELINES`, with its suffixes.

    Raises
    ------
    ValueError
        If there is no pipeline of that name.
    """

    name: str

    def __post_init__(self) -> None:
        if self.base not in PIPELINES:
            raise ValueError(
                f"no pipeline {self.name!r}; there are {', '.join(PIPELINES)}, each also with "
                f"{RERANKED}, {SPANNED} or {RERANKED}{SPANNED}"
            )

    @property
    def spanned(self) -> bool:
        """Whether passages are expanded by their neighbours."""
        return self.name.endswith(SPANNED)

    @property
    def reranked(self) -> bool:
        """Whether a reranker orders the passages found."""
        return self.name.removesuffix(SPANNED).endswith(RERANKED)

    @property
    def base(self) -> str:
        """Where passages come from."""
        return self.name.removesuffix(SPANNED).removesuffix(RERANKED)

    @property
    def embedded(self) -> bool:
        """Whether it has a dense leg, which needs an embedding model."""
        return self.base in ALPHAS
