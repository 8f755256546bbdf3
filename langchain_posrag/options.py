"""Options that the retriever and the steps share, checked whenever they are set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from typing_extensions import TypeAliasType, override

from shared_core import CAUS, Placement, PositionProfile
from shared_core.index import Tokenizer, Variant
from shared_core.index.dense import Dense, Metric
from shared_core.neighbour_spans import NeighbourSpans
from shared_core.options import CAUSArguments, OrderArguments, check_option
from shared_core.types import Fusion, OrderRule

_OPTIONS = CAUSArguments.__annotations__

Psi = float | str | Path | InstanceOf[PositionProfile] | None

# `CAUS` checks the range, with the same message everywhere; here it is for the schema. It is inside
# the union because LangChain's configurable fields drop annotations of a whole type.
CountField = Annotated[int, Field(ge=1)]
AlphaField = Annotated[float, Field(ge=0, le=1)] | None

# Pydantic has no schema for its function `count_tokens`.
SpansField = TypeAliasType(
    "SpansField",
    Annotated[
        InstanceOf[NeighbourSpans], WithJsonSchema({"title": "NeighbourSpans", "type": "object"})
    ],
)


class CheckedOptions(BaseModel):
    """Fields that refuse by assignment and by ``model_copy`` what the constructor refuses.

    Pydantic's own ``validate_assignment`` keeps a value that only a check of the whole model
    refuses, and its ``model_copy`` checks nothing.

    Raises
    ------
    ValueError
        If a field is unknown or a value out of range; the options then stay as they were.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    if not TYPE_CHECKING:  # type checkers would let a class with this set any attribute

        @override
        def __setattr__(self, name: str, value: Any) -> None:
            if name in type(self).model_fields:
                self._set({name: value})
            else:
                super().__setattr__(name, value)

    @override
    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, with the options in `update` in place of its own."""
        copied = super().model_copy(deep=deep)
        if update:
            copied._set(update)
        return copied

    def _set(self, options: Mapping[str, Any]) -> None:
        """Check options next to the others, and take them."""
        own = {name: getattr(self, name) for name in type(self).model_fields}
        made = type(self).__new__(type(self))
        BaseModel.__init__(made, **{**own, **options})  # a subclass may have its own constructor
        vars(self).update(vars(made))
        self.model_fields_set.update(options)


class PlacementOptions(CheckedOptions):
    """Whether and how passages are put into the slots of a prompt.

    Attributes
    ----------
    placement
        ``"auto"``, a name in `PLACEMENTS`, or a placement; see `shared_core.decide_order`.
    psi
        What the gate knows about the model: a number, a `PositionProfile`, the path or name of a
        saved one, ``"always"`` or ``"never"``. None keeps the ranked order and says so.
    rule, hit_rates
        How a profile decides; see `shared_core.decide_order`.
    include_scores
        Whether the documents carry their explanation in their metadata. It differs by query: set
        this to False under LangChain's MultiQueryRetriever, which keeps only equal documents once.
    """

    placement: str | InstanceOf[Placement] = "auto"
    psi: Psi = None
    rule: OrderRule = "gain"
    hit_rates: Sequence[float] | None = None
    include_scores: bool = True

    # Before pydantic, which takes True for 1 and "3" for 3, and reports a value that fits no part
    # of a union once for each part.
    @field_validator("*", mode="before")
    @classmethod
    def _check_option(cls, value: Any, field: ValidationInfo) -> Any:
        name = str(field.field_name)
        return check_option(name, value) if name in _OPTIONS else value

    @model_validator(mode="after")
    def _check_method(self) -> Self:
        self.caus  # noqa: B018 - building it is the check
        return self

    @cached_property
    def caus(self) -> CAUS:
        """The core's method with the current options."""
        fields = type(self).model_fields
        return CAUS(**{name: getattr(self, name) for name in _OPTIONS if name in fields})


class CAUSOptions(PlacementOptions):
    """How two legs are fused into one score, and how the best documents are placed.

    Attributes
    ----------
    k
        Number of documents to return, >= 1; fewer are returned where there are no more.
    alpha
        Weight of the dense leg in [0, 1] (the sparse leg weighs ``1 - alpha``). None: that of the
        fusion, see `shared_core.rank`.
    fusion
        ``"theoretical_min"``, ``"min_max"`` (CAUS eq. 2) or ``"rrf"``.
    distinct, per_source
        Leave out near-duplicates of a better document, and more than so many of one source; see
        `CAUS`.
    """

    k: CountField = 10
    alpha: AlphaField = None
    fusion: Fusion = "theoretical_min"
    distinct: AlphaField = None
    per_source: CountField | None = None


class PlacementArguments(OrderArguments, total=False):
    """Keyword arguments of `PlacementOptions` besides the placement."""

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
