"""The options that retriever, compressor and transformer share."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypedDict

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from shared_core import CAUS, Placement, PositionProfile, decide
from shared_core.checking import check_count
from shared_core.placement import resolve_placement
from shared_core.scoring.fusion import Alpha, check_alpha
from shared_core.types import Evidence, Fusion

Psi = float | str | Path | InstanceOf[PositionProfile] | None

# The range is checked by `check_alpha`, whose message is the same everywhere, and is here for the
# schema; within the union, as LangChain's configurable fields drop what stands around a whole type.
CountField = Annotated[int, Field(ge=1)]
AlphaField = Annotated[float, Field(ge=0, le=1)] | Literal["auto"]


def refuse_arguments(step: object, arguments: Mapping[str, Any]) -> None:
    """Raise TypeError if a call gives arguments to a step whose options are its fields only.

    LangChain's signatures take any, and would lose them without a word.
    """
    if arguments:
        named = ", ".join(f"{name}=" for name in arguments)
        raise TypeError(
            f"a call of {type(step).__name__} takes no options, got {named}: give them to the "
            "constructor, or let each call set them with configurable_fields()"
        )


class PlacementOptions(BaseModel):
    """Whether and how passages are put into the slots of a prompt.

    Attributes
    ----------
    placement
        Name in `shared_core.PLACEMENTS`, or a placement.
    psi
        What the gate knows of the model: a number, a `PositionProfile`, the path or name of a
        saved one, ``"always"`` or ``"never"``. None keeps the ranked order and says so.
    evidence
        ``"point"`` or ``"interval"``; see `shared_core.decide`.
    include_scores
        Whether the documents explain themselves in their metadata. What is found by several
        queries then differs by query; set it to False under LangChain's MultiQueryRetriever,
        which keeps equal documents once and these as often as they are found.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    placement: str | InstanceOf[Placement] = "u_shape"
    psi: Psi = None
    evidence: Evidence = "point"
    include_scores: bool = True

    _method: ClassVar[tuple[str, ...]] = ("placement", "psi", "evidence")
    _read: ClassVar[attrgetter[tuple[object, ...]]]
    _built: tuple[tuple[object, ...], CAUS] | None = PrivateAttr(default=None)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls._read = attrgetter(*cls._method)

    # Before pydantic, which takes True for 1 and "3" for 3, and of what fits no part of a union
    # says something for each part.
    @field_validator("placement", mode="before")
    @classmethod
    def _check_placement(cls, value: str | Placement) -> str | Placement:
        resolve_placement(value)
        return value

    @field_validator("psi", mode="before")
    @classmethod
    def _check_psi(cls, value: Psi) -> Psi:
        if not isinstance(value, str | Path):  # these are read once, by CAUS
            decide(value)
        return value

    @model_validator(mode="after")
    def _check_method(self) -> Self:
        self.caus  # noqa: B018 - building it is the check
        return self

    @property
    def caus(self) -> CAUS:
        """The core's method with the present options; built anew only when one has changed."""
        values = self._read(self)
        private = self.__pydantic_private__ or {}  # as an attribute it takes 30 times as long
        built = private.get("_built")
        if built is None or built[0] != values:
            options: dict[str, Any] = dict(zip(self._method, values, strict=True))
            built = self._built = (values, CAUS(**options))
        return built[1]


class CAUSOptions(PlacementOptions):
    """How two legs are fused into one score, and what is done with the best.

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

    _method: ClassVar[tuple[str, ...]] = (*PlacementOptions._method, "k", "alpha", "fusion")

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
