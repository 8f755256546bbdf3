"""Options that the retriever, the compressor and the transformers share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypedDict

from pydantic import (
    ConfigDict,
    Field,
    InstanceOf,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from typing_extensions import TypeAliasType

from langchain_posrag.checked_options import CheckedOptions
from shared_core import CAUS, Placement, PositionProfile, decide_order
from shared_core.checking import check_count
from shared_core.index import Tokenizer, Variant
from shared_core.index.dense import Dense, Metric
from shared_core.neighbour_spans import NeighbourSpans
from shared_core.options import CAUSArguments
from shared_core.placement import resolve_placement
from shared_core.scoring.fusion import Alpha, check_alpha
from shared_core.types import Evidence, Fusion

Psi = float | str | Path | InstanceOf[PositionProfile] | None

# `check_alpha` checks the range, with the same message everywhere; here it is for the schema. It is
# inside the union because LangChain's configurable fields drop annotations of a whole type.
CountField = Annotated[int, Field(ge=1)]
AlphaField = Annotated[float, Field(ge=0, le=1)] | Literal["auto"]

# Pydantic has no schema for its function `count_tokens`.
SpansField = TypeAliasType(
    "SpansField",
    Annotated[
        InstanceOf[NeighbourSpans], WithJsonSchema({"title": "NeighbourSpans", "type": "object"})
    ],
)


def refuse_arguments(step: object, arguments: Mapping[str, Any]) -> None:
    """Raise TypeError if a call gives arguments to a step whose only options are its fields.

    LangChain's signatures take any argument, and would ignore it silently.
    """
    if arguments:
        named = ", ".join(f"{name}=" for name in arguments)
        raise TypeError(
            f"a call of {type(step).__name__} takes no options, got {named}: give them to the "
            "constructor, or let each call set them with configurable_fields()"
        )


@cache
def _options_of(cls: type[CheckedOptions]) -> tuple[str, ...]:
    """Return the options of `CAUS` that a class has as fields."""
    return tuple(field.name for field in fields(CAUS) if field.name in cls.model_fields)


class PlacementOptions(CheckedOptions):
    """Whether and how passages are put into the slots of a prompt.

    Attributes
    ----------
    placement
        Name in `PLACEMENTS`, or a placement.
    psi
        What the gate knows about the model: a number, a `PositionProfile`, the path or name of a
        saved one, ``"always"`` or ``"never"``. None keeps the ranked order and says so.
    evidence
        ``"point"`` or ``"interval"``; see `shared_core.decide_order`.
    include_scores
        Whether the documents carry their explanation in their metadata. It differs by query: set
        this to False under LangChain's MultiQueryRetriever, which keeps only equal documents once.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    placement: str | InstanceOf[Placement] = "u_shape"
    psi: Psi = None
    evidence: Evidence = "point"
    include_scores: bool = True

    _built: tuple[dict[str, Any], CAUS] | None = PrivateAttr(default=None)

    # Before pydantic, which takes True for 1 and "3" for 3, and reports a value that fits no part
    # of a union once for each part.
    @field_validator("placement", mode="before")
    @classmethod
    def _check_placement(cls, value: str | Placement) -> str | Placement:
        resolve_placement(value)
        return value

    @field_validator("psi", mode="before")
    @classmethod
    def _check_psi(cls, value: Psi) -> Psi:
        if not isinstance(value, str | Path):  # CAUS reads these, once
            decide_order(value)
        return value

    @model_validator(mode="after")
    def _check_method(self) -> Self:
        self.caus  # noqa: B018 - building it is the check
        return self

    @property
    def caus(self) -> CAUS:
        """The core's method with the current options; rebuilt only when one has changed."""
        options = {name: getattr(self, name) for name in _options_of(type(self))}
        if self._built is None or self._built[0] != options:
            self._built = options, CAUS(**options)
        return self._built[1]


class CAUSOptions(PlacementOptions):
    """How two legs are fused into one score, and how the best documents are placed.

    Attributes
    ----------
    k
        Number of documents to return, >= 1; fewer are returned where there are no more.
    alpha
        Weight of the dense leg in [0, 1] (the sparse leg weighs ``1 - alpha``), or ``"auto"``.
    fusion
        ``"min_max"`` (CAUS eq. 2) or ``"rrf"``.
    """

    k: CountField = 10
    alpha: AlphaField = 0.3
    fusion: Fusion = "min_max"

    @field_validator("k", "fetch_k", mode="before", check_fields=False)
    @classmethod
    def _check_count(cls, value: int, field: ValidationInfo) -> int:
        return check_count(value, str(field.field_name))

    @field_validator("alpha", mode="before")
    @classmethod
    def _check_alpha(cls, value: Alpha) -> Alpha:
        return check_alpha(value)


class PlacementArguments(TypedDict, total=False):
    """Keyword arguments of `PlacementOptions` besides the placement."""

    psi: Psi
    evidence: Evidence
    include_scores: bool


class RetrieverArguments(CAUSArguments, total=False):
    """Keyword arguments of `CAUSRetriever` besides its index."""

    include_scores: bool
    name: str | None
    tags: list[str] | None
    metadata: dict[str, Any] | None


class IndexArguments(RetrieverArguments, total=False):
    """Keyword arguments of a `CAUSRetriever` that builds its index."""

    metric: Metric
    dense: Dense
    variant: Variant
    tokenizer: Tokenizer | None
