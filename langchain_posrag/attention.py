"""Documents put where a local model attends; two rounds that answer with them so placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self, Unpack

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import (
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    PlainValidator,
    model_validator,
)
from typing_extensions import TypedDict, override

from langchain_posrag.document_step import QueryStep, QuestionAndDocuments, asked
from langchain_posrag.documents import check_documents, copy_of
from langchain_posrag.options import CheckedOptions
from shared_core.attention import AttentionPlacer, Case, OneRound, TwoRound
from shared_core.attention.rounds import AttentionArguments
from shared_core.generation.local_model import LocalModel, ModelLike
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.sensitivity.curve import PositionalCurve, resolve_curve

ModelField = Annotated[
    LocalModel,
    PlainValidator(LocalModel.of),
    PlainSerializer(lambda model: model.location, when_used="json"),
]

CurveField = Annotated[PositionalCurve | None, BeforeValidator(resolve_curve)]


class AttentionStepArguments(AttentionArguments, total=False):
    """Keyword arguments of `AttentionOptions`."""

    include_scores: bool


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
        ``"best_slot_first"`` or ``"back_first"``.
    template
        The prompt that the model reads; by default `shared_core.generation.templates.ANSWER`.
    include_scores
        Whether the documents carry their explanation in their metadata.
    """

    model: ModelField
    estimator: str = "answer"
    placement: str = "attention_u_shape"
    template: PromptTemplate = ANSWER
    include_scores: bool = True

    @model_validator(mode="after")
    def _check_placer(self) -> Self:
        self.placer  # noqa: B018 - building it is the check
        return self

    @property
    def placer(self) -> AttentionPlacer:
        """The core's placer with the current options."""
        method = TwoRound(
            estimator=self.estimator, placement=self.placement, template=self.template
        )
        return AttentionPlacer(model=self.model, method=method)

    def _placed(
        self,
        documents: Sequence[Document],
        slots: Sequence[tuple[int, Mapping[str, Any] | None]],
    ) -> list[Document]:
        """Return copies of the documents by slot."""
        return [copy_of(documents[at], why, told=self.include_scores) for at, why in slots]


class PlacementByAttentionArguments(AttentionStepArguments, total=False):
    """Keyword arguments of `AttentionPlacement`."""

    curve: PositionalCurve | str | Path | None


class AttentionPlacement(AttentionOptions, QueryStep):
    """Put documents where a local model attends to them, in a separate round.

    The model answers the query over the documents as they come; its attention ranks them and
    shows which positions are good. Every document comes back, as a copy that carries ``rank``,
    ``slot``, ``score``, ``placement`` and ``estimator`` under ``metadata["posrag"]``, which replace
    those of an earlier slot and keep the rest; fewer than two are copied and left as they are. If
    `include_scores` is False, they carry no explanation at all, and no score that came with one.

    In a pipe, the input is ``{"question": str, "documents": [Document, ...]}``, or documents alone
    if they explain which question found them, as those of `CAUSRetriever` do, or if there is a
    curve.

    Parameters
    ----------
    model, estimator, placement, template, include_scores
        As in `AttentionOptions`.
    curve
        Attention of the model by position: a curve, its file, or the name of a model whose curve
        `posrag attention` has saved. With it only the tokenizer of the model is used, and no
        round is made: the documents keep the ranking they come in, `estimator` is ignored, and
        they carry ``curve``, the name of its model, in place of ``score`` and ``estimator``.

    Raises
    ------
    ValueError
        If an option is unknown, or the placement does not use the curve (pydantic's
        ``ValidationError`` is one).

    Examples
    --------
    ``retriever | AttentionPlacement(model) | prompt | llm``
    """

    curve: CurveField = None

    def __init__(self, model: ModelLike, **options: Unpack[PlacementByAttentionArguments]) -> None:
        fields: dict[str, Any] = {**options}
        super().__init__(model=model, **fields)

    @property
    @override
    def placer(self) -> AttentionPlacer:
        """The core's placer with the current options."""
        if self.curve is None:
            return super().placer
        method = OneRound(placement=self.placement, curve=self.curve, template=self.template)
        return AttentionPlacer(model=self.model, method=method)

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
        texts = [document.page_content for document in documents]
        return self._placed(documents, self.placer.place(texts, query))

    @override
    def _asked(
        self, input: QuestionAndDocuments | Sequence[Document]
    ) -> tuple[Sequence[Document], str]:
        if self.curve is None or isinstance(input, Mapping):
            return super()._asked(input)
        return input, ""  # on a curve the question has no say


class Answered(TypedDict):
    """Output of `TwoRoundChain`; see there."""

    answer: str
    first_answer: str
    documents: list[Document]
    order: list[int]
    scores: list[float]
    rounds: int


class TwoRoundChain(AttentionOptions, RunnableSerializable[QuestionAndDocuments, Answered]):
    """Answer a question on a local model, place the documents by its attention, and answer again.

    The input is ``{"question": str, "documents": [Document, ...]}``, as a retriever in a pipe
    makes it. The output holds

    ``answer``, ``first_answer``
        the final answer, and that of the first round;
    ``documents``
        copies in their final order, each with ``rank``, ``slot``, ``score``, ``placement`` and
        ``estimator`` under ``metadata["posrag"]``, unless `include_scores` is False;
    ``order``
        slot -> document of the input;
    ``scores``
        relevance of each document of the input, higher is better;
    ``rounds``
        1 if the documents were in their best order already, 2 otherwise.

    Without documents the model is asked without context. It runs in this process, in a thread of
    the async methods, and answers one input at a time, also of a batch.

    Parameters
    ----------
    model, estimator, placement, template, include_scores
        As in `AttentionOptions`.

    Raises
    ------
    ValueError
        If an option is unknown (pydantic's ``ValidationError`` is one), or an input is not as
        above.
    TypeError
        If a call gives an argument: the options are the fields.
    GenerationError
        At first use, if the model cannot be loaded or its attention cannot be read.

    Examples
    --------
    ``{"question": RunnablePassthrough(), "documents": retriever} | TwoRoundChain(model)``
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    def __init__(self, model: ModelLike, **options: Unpack[AttentionStepArguments]) -> None:
        super().__init__(model=model, **options)

    @override
    def invoke(
        self, input: QuestionAndDocuments, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Answered:
        """Answer one question."""
        return self._call_with_config(self._answer, input, config, **kwargs)

    def _answer(self, input: QuestionAndDocuments) -> Answered:
        documents, question = asked(input)
        texts = [document.page_content for document in documents]
        placer = self.placer
        (found,) = placer.answer([Case(question=question, documents=texts)])
        return {
            "answer": found.answer,
            "first_answer": found.first_answer,
            "documents": self._placed(documents, placer.slots(found)),
            "order": list(found.order),
            "scores": list(found.scores),
            "rounds": found.rounds,
        }
