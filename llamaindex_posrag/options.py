"""Options: those of a retriever as attributes, those of a postprocessor as checked fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Generic, Self, TypeAlias, TypeVar, overload

from llama_index.core.bridge.pydantic import PlainSerializer
from pydantic import BeforeValidator, PlainValidator

from shared_core import CAUS, NeighbourSpans, Placement
from shared_core.checking import SHOWN, check_count
from shared_core.index import ChunkKeys
from shared_core.neighbour_spans import ChunkSource
from shared_core.options import (
    CAUSArguments,
    decode_chunk_keys,
    decode_expand,
    decode_placement,
    decode_psi,
    encode_chunk_keys,
    encode_expand,
    encode_placement,
    encode_psi,
)
from shared_core.scoring.fusion import Alpha, check_alpha
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
        self._caus = caus

    @property
    def similarity_top_k(self) -> int:
        """The name of `k` in LlamaIndex's retrievers."""
        raise AttributeError(f"{type(self).__name__} has no similarity_top_k: it is called k here")

    @similarity_top_k.setter
    def similarity_top_k(self, value: int) -> None:
        raise AttributeError(f"similarity_top_k is called k here: set k = {value!r}")


def _decoded(name: str, decode: Callable[[Any], Any], *kinds: type) -> PlainValidator:
    """Return a check that takes an option, or what it was encoded as."""

    def check(value: Any) -> Any:
        decoded = decode(value)
        if not isinstance(decoded, kinds):
            named = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"{name} must be a {named}, got {value!r}")
        return decoded

    return PlainValidator(check)


# Checked before pydantic, which takes True for 1 and "3" for 3; pydantic makes NumPy's numbers
# Python's.
KField: TypeAlias = Annotated[int, BeforeValidator(partial(check_count, name="k"))]
AlphaField: TypeAlias = Annotated[Alpha, BeforeValidator(check_alpha)]
PlacementField: TypeAlias = Annotated[
    str | Placement,
    _decoded("placement", decode_placement, str, Placement),
    PlainSerializer(encode_placement),
]
PsiField: TypeAlias = Annotated[Psi, PlainValidator(decode_psi), PlainSerializer(encode_psi)]
ExpandField: TypeAlias = Annotated[
    NeighbourSpans,
    _decoded("expand", decode_expand, NeighbourSpans),
    PlainSerializer(encode_expand),
]
ChunkKeysField: TypeAlias = Annotated[
    ChunkKeys,
    _decoded("chunk_keys", decode_chunk_keys, ChunkKeys),
    PlainSerializer(encode_chunk_keys),
]


def _chunks(value: Any) -> ChunkSource | None:
    if value is not None and not hasattr(value, "around"):
        raise ValueError(f"chunks must be a ChunkSource, got {value!r}")
    source: ChunkSource | None = value
    return source


ChunksField: TypeAlias = Annotated[ChunkSource | None, PlainValidator(_chunks)]
