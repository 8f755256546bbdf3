"""Options of a retriever: those of `CAUS`, given, read and set on the retriever itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from llama_index.core.callbacks import CallbackManager
from llama_index.core.vector_stores.types import MetadataFilters

from shared_core import CAUS, ChunkKeys, NeighbourSpans, Placement
from shared_core.options import CAUSArguments
from shared_core.placement.order_gate import Psi
from shared_core.scoring.fusion import Alpha
from shared_core.types import Fusion, OrderRule, Tuning

T = TypeVar("T")


class Option(Generic[T]):
    """An option of ``caus``; setting it puts a new `CAUS` there, which checks the value."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, retriever: Any, owner: type) -> T:
        value: Any = self if retriever is None else getattr(retriever.caus, self._name)
        return cast(T, value)

    def __set__(self, retriever: Any, value: T) -> None:
        changed: dict[str, Any] = {self._name: value}
        retriever.caus = replace(retriever.caus, **changed)


class CAUSOptions:
    """Base of a retriever with a `CAUS`; an option that is set counts from the next query.

    Attributes
    ----------
    caus
        The options of the search and the placement. They are immutable and may be shared: setting
        one of those below replaces them.
    k, alpha, fetch_k, fusion, placement, psi, rule, hit_rates, expand, chunk_keys,
    distinct, per_source, min_similarity, tuning
        As in `CAUS`.
    similarity_top_k
        The name of `k` in LlamaIndex's own retrievers.

    Raises
    ------
    ValueError
        If a value is out of range; the options then stay as they were.
    """

    k = Option[int]("k")
    alpha = Option[Alpha]("alpha")
    fetch_k = Option[int]("fetch_k")
    fusion = Option[Fusion]("fusion")
    placement = Option[str | Placement]("placement")
    psi = Option[Psi]("psi")
    rule = Option[OrderRule]("rule")
    hit_rates = Option[Sequence[float] | None]("hit_rates")
    expand = Option[NeighbourSpans | None]("expand")
    chunk_keys = Option[ChunkKeys]("chunk_keys")
    distinct = Option[float | None]("distinct")
    per_source = Option[int | None]("per_source")
    min_similarity = Option[float | None]("min_similarity")
    tuning = Option[Tuning | None]("tuning")
    similarity_top_k = Option[int]("k")
    _caus: CAUS

    @property
    def caus(self) -> CAUS:
        """The options of the search and the placement."""
        return self._caus

    @caus.setter
    def caus(self, caus: CAUS) -> None:
        if not isinstance(caus, CAUS):
            raise ValueError(f"caus must be a CAUS, as CAUS(k=3), got {caus!r:.80}")
        self._caus = caus


def caus_of(options: CAUSArguments, caus: CAUS | None = None) -> CAUS:
    """Return `caus`, or a `CAUS` with the options if it is None.

    Raises
    ------
    ValueError
        If both are given, or an option is out of range.
    TypeError
        If an option is unknown.
    """
    if caus is None:
        if unknown := options.keys() - CAUSArguments.__optional_keys__:
            raise TypeError(
                f"unknown options {sorted(unknown)} (how many nodes come back is k=): the options "
                f"are {', '.join(sorted(CAUSArguments.__optional_keys__))}"
            )
        return CAUS(**options)
    if options:
        named = ", ".join(f"{name}=" for name in options)
        raise ValueError(f"give caus= or {named}, not both: caus= holds every option, as CAUS(k=3)")
    return caus


class CallArguments(CAUSArguments, total=False):
    """Keyword arguments of `CAUSRetriever.using`."""

    filters: MetadataFilters | Any | None


class RetrieverArguments(CallArguments, total=False):
    """Keyword arguments of a retriever that have a default."""

    callback_manager: CallbackManager | None
    object_map: dict[str, Any] | None
    verbose: bool
