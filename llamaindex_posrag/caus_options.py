"""The options of a retriever's `CAUS` as settable attributes of the retriever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar, overload

from shared_core import CAUS, Placement
from shared_core.checking import SHOWN
from shared_core.index import ChunkKeys
from shared_core.neighbour_spans import NeighbourSpans
from shared_core.options import CAUSArguments
from shared_core.scoring.fusion import Alpha
from shared_core.sensitivity import Psi
from shared_core.types import Evidence, Fusion
from shared_core.wording import shortened

T = TypeVar("T")


def caus_of(options: CAUSArguments, caus: CAUS | None = None) -> CAUS:
    """Return `caus`, or a `CAUS` with the options if it is None.

    Raises
    ------
    ValueError
        If both are given, or an option is out of range.
    TypeError
        If an option is unknown.
    """
    refuse_similarity_top_k(options)
    if caus is None:
        return CAUS(**options)
    if options:
        named = ", ".join(f"{name}=" for name in options)
        raise ValueError(f"give caus= or {named}, not both: caus= holds every option, as CAUS(k=3)")
    return caus


def refuse_similarity_top_k(options: Mapping[str, object]) -> None:
    """Raise TypeError for `similarity_top_k`, the name of `k` in LlamaIndex's retrievers."""
    if "similarity_top_k" in options:
        raise TypeError(
            f"similarity_top_k is called k here: give k={options['similarity_top_k']!r}"
        )


class Option(Generic[T]):
    """An option of ``caus``; setting it puts a new `CAUS` there, which checks the value."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, retriever: None, owner: type) -> Self: ...
    @overload
    def __get__(self, retriever: CAUSOptions, owner: type) -> T: ...
    def __get__(self, retriever: CAUSOptions | None, owner: type) -> Self | T:
        if retriever is None:
            return self
        value: T = getattr(retriever.caus, self._name)
        return value

    def __set__(self, retriever: CAUSOptions, value: T) -> None:
        changed: dict[str, Any] = {self._name: value}
        retriever.caus = replace(retriever.caus, **changed)


class CAUSOptions:
    """Base of retrievers with a `CAUS`; an option that is set counts from the next query.

    Attributes
    ----------
    caus
        The options of the search and the placement. They are immutable and may be shared: setting
        one of those below replaces them.
    k, alpha, fetch_k, fusion, placement, psi, evidence, expand, chunk_keys
        As in `shared_core.CAUS`.

    Raises
    ------
    ValueError
        If a value is out of range; the options then stay as they were.
    AttributeError
        If `similarity_top_k` is read or set: it is called `k` here.
    """

    k = Option[int]()
    alpha = Option[Alpha]()
    fetch_k = Option[int]()
    fusion = Option[Fusion]()
    placement = Option[str | Placement]()
    psi = Option[Psi]()
    evidence = Option[Evidence]()
    expand = Option[NeighbourSpans | None]()
    chunk_keys = Option[ChunkKeys]()
    _caus: CAUS

    @property
    def caus(self) -> CAUS:
        """The options of the search and the placement."""
        return self._caus

    @caus.setter
    def caus(self, caus: CAUS) -> None:
        if not isinstance(caus, CAUS):
            raise ValueError(
                f"caus must be a CAUS, as CAUS(k=3), got {shortened(repr(caus), SHOWN)}"
            )
        self._prepare(caus)
        self._caus = caus

    def _prepare(self, caus: CAUS) -> None:
        """Prepare for options that are about to be set; a hook for subclasses."""

    @property
    def similarity_top_k(self) -> int:
        """The name of `k` in LlamaIndex's retrievers."""
        raise AttributeError(f"{type(self).__name__} has no similarity_top_k: it is called k here")

    @similarity_top_k.setter
    def similarity_top_k(self, value: int) -> None:
        raise AttributeError(f"similarity_top_k is called k here: set k = {value!r}")
