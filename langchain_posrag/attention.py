"""Documents put where a local model attends, as a document compressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self, TypedDict, Unpack

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import run_in_executor
from pydantic import (
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    PlainValidator,
    model_validator,
)
from typing_extensions import override

from langchain_posrag.checked_options import CheckedOptions
from langchain_posrag.documents import bare_copy_of, check_documents, copy_of
from shared_core.attention.method import AttentionMethod
from shared_core.attention.two_round import TwoRound
from shared_core.generation.local_model import LocalModel, ModelLike
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.sensitivity.curve import PositionalCurve, resolve_curve

ModelField = Annotated[
    LocalModel,
    PlainValidator(LocalModel.of),
    PlainSerializer(lambda model: model.location, when_used="json"),
]

CurveField = Annotated[
    PositionalCurve | None,
    BeforeValidator(lambda given: resolve_curve(given) if isinstance(given, str | Path) else given),
]


class AttentionArguments(TypedDict, total=False):
    """Keyword arguments of `AttentionOptions`."""

    estimator: str
    placement: str
    template: PromptTemplate


class AttentionOptions(CheckedOptions):
    """The model whose attention places documents, and how it does.

    Attributes
    ----------
    model
        A `shared_core.HuggingFaceModel`, a pair of a transformers model and its tokenizer, or
        the folder or hub name of one, which is loaded at first use and kept.
    estimator
        How relevance is estimated: ``"answer"``, ``"producer"``, ``"attention_sorting"`` or
        ``"icr"``.
    placement
        ``"attention_u_shape"``, its control ``"attention_u_shape_reversed"``,
        ``"best_slot_first"`` or ``"relevant_last"``.
    template
        The prompt that the model reads.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    model: ModelField
    estimator: str = "answer"
    placement: str = "attention_u_shape"
    template: PromptTemplate = ANSWER

    @model_validator(mode="after")
    def _check_method(self) -> Self:
        self.method  # noqa: B018 - building it is the check
        return self

    @property
    def method(self) -> AttentionMethod:
        """The core's method with the current options."""
        return AttentionMethod(
            model=self.model,
            two_rounds=TwoRound(
                estimator=self.estimator, placement=self.placement, template=self.template
            ),
        )


class PlacementByAttentionArguments(AttentionArguments, total=False):
    """Keyword arguments of `AttentionPlacement`."""

    curve: PositionalCurve | str | Path | None
    include_scores: bool


class AttentionPlacement(AttentionOptions, BaseDocumentCompressor):
    """Put documents where a local model attends to them, in a separate round.

    The model answers the query over the documents as they come; its attention ranks them and
    shows which positions are good. Every document comes back, as a copy that carries ``rank``,
    ``slot``, ``score``, ``placement`` and ``estimator`` under ``metadata["posrag"]``, which replace
    those of an earlier slot and keep the rest; fewer than two are copied and left as they are. If
    `include_scores` is False, they carry no explanation at all, and no score that came with one.

    Parameters
    ----------
    model, estimator, placement, template
        As in `AttentionOptions`.
    curve
        Attention of the model by position: a curve, its file, or the name of a model whose curve
        `posrag attention` has saved. With it only the tokenizer of the model is used, and no
        round is made: the documents keep the ranking they come in, `estimator` is ignored, and
        they carry ``curve``, the name of its model, in place of ``score`` and ``estimator``.
    include_scores
        Whether the documents carry their explanation in their metadata.

    Raises
    ------
    ValueError
        If an option is unknown, or the placement does not use the curve (pydantic's
        ``ValidationError`` is one).
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    curve: CurveField = None
    include_scores: bool = True

    def __init__(self, model: ModelLike, **options: Unpack[PlacementByAttentionArguments]) -> None:
        fields: dict[str, Any] = {**options}
        super().__init__(model=model, **fields)

    @property
    @override
    def method(self) -> AttentionMethod:
        """The core's method with the current options."""
        return replace(super().method, curve=self.curve)

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return copies of the documents by slot.

        Raises
        ------
        ValueError
            If `documents` is one instead of several, one is not a Document or empty, or the prompt
            is longer than the model's context.
        GenerationError
            If the model cannot be loaded, or its attention cannot be read.
        """
        documents = check_documents(documents)
        if len(documents) < 2:
            return [*map(copy_of if self.include_scores else bare_copy_of, documents)]
        order, details = self.method.place([each.page_content for each in documents], query)
        if not self.include_scores:
            return [bare_copy_of(documents[at]) for at in order]
        return [copy_of(documents[at], why) for at, why in zip(order, details, strict=True)]

    @override
    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Async version of `compress_documents`, in a thread."""
        return await run_in_executor(None, self.compress_documents, documents, query)
