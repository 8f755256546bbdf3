"""Nodes put where a local model attends: by a postprocessor, or between two rounds of a query.

As with every placement, the order reaches the prompt in the response modes that make one prompt
of all nodes: ``compact``, ``tree_summarize`` and ``simple_summarize``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Unpack

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import Response
from llama_index.core.bridge.pydantic import ConfigDict, Field, PlainSerializer, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation.events.synthesis import (
    SynthesizeEndEvent,
    SynthesizeStartEvent,
)
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.settings import Settings
from llama_index_instrumentation import get_dispatcher
from pydantic import BeforeValidator, PlainValidator

from llamaindex_posrag.embedding import plain_text
from llamaindex_posrag.nodes import with_slot
from llamaindex_posrag.postprocessors import FixedOptionsPostprocessor
from shared_core.attention import AttentionPlacer, Case, OneRound, TwoRound
from shared_core.attention.rounds import AttentionArguments, PlacedAnswer
from shared_core.generation.local_model import LocalModel, ModelLike
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.sensitivity.curve import PositionalCurve, resolve_curve

ModelField = Annotated[
    LocalModel, PlainValidator(LocalModel.of), PlainSerializer(lambda model: model.location)
]

CurveField = Annotated[PositionalCurve | None, BeforeValidator(resolve_curve)]

dispatcher = get_dispatcher(__name__)


class AttentionPlacementArguments(AttentionArguments, total=False):
    """Keyword arguments of `AttentionPlacementPostprocessor` besides the model."""

    curve: PositionalCurve | str | Path | None
    callback_manager: CallbackManager


class AttentionPlacementPostprocessor(FixedOptionsPostprocessor):
    """Put nodes where a local model attends to them, in one extra round.

    The model answers the query over the nodes as they come; its attention ranks them, and
    determines which positions are good. Every node comes back as an `ExplainedNode`, with the
    score it came with; its ``posrag`` holds ``rank``, ``slot``, ``score`` (its relevance to the
    model), ``placement`` and ``estimator``. Fewer than two nodes are left in their order.

    Parameters
    ----------
    model
        A `shared_core.HuggingFaceModel`, a pair of a transformers model and its tokenizer, or
        the folder or hub name of one, which is loaded at first use and kept. Only a model given
        by name goes into ``to_dict``.
    estimator
        How relevance is measured: ``"answer"``, the default, ``"producer"``,
        ``"attention_sorting"`` or ``"icr"``.
    placement
        ``"attention_u_shape"``, the default, its control ``"attention_u_shape_reversed"``,
        ``"best_slot_first"`` or ``"back_first"``.
    template
        The prompt that the model reads; by default `shared_core.generation.templates.ANSWER`.
    curve
        The model's attention by position: a curve, its file, or the name of the model whose
        curve `posrag attention` has saved. With it there is no round, and only the model's
        tokenizer is used: the nodes keep the ranking they come in, no query is needed, `estimator`
        is ignored, and ``posrag`` holds ``curve``, the name of its model, instead of ``score`` and
        ``estimator``.

    Raises
    ------
    ValueError
        If an option is unknown or out of range, or the placement cannot use a curve. When it runs:
        if there is neither a query nor a curve, a node is empty, or the prompt is longer than the
        model's context.
    GenerationError
        When it runs, if the model cannot be loaded or its attention cannot be read.
    """

    model_config = ConfigDict(extra="forbid")

    model: ModelField = Field(frozen=True)
    estimator: str = Field(default="answer", frozen=True)
    placement: str = Field(default="attention_u_shape", frozen=True)
    template: PromptTemplate = Field(default=ANSWER, frozen=True)
    curve: CurveField = Field(default=None, frozen=True)
    _placer: AttentionPlacer = PrivateAttr()

    def __init__(self, model: ModelLike, **options: Unpack[AttentionPlacementArguments]) -> None:
        super().__init__(model=model, **options)

    def model_post_init(self, context: Any) -> None:
        """Check the options."""
        kind = TwoRound if self.curve is None else OneRound
        self._placer = AttentionPlacer(model=self.model, method=kind(**self._options_of(kind)))

    def _processed(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle | None
    ) -> list[NodeWithScore]:
        question = None if query is None else plain_text(query)
        slots = self._placer.place([text_of(node) for node in nodes], question)
        return [with_slot(nodes[at], why) for at, why in slots]


def text_of(node: NodeWithScore) -> str:
    """Return the text of a node that a language model reads."""
    return node.node.get_content(MetadataMode.LLM)


class TwoRoundQueryEngine(BaseQueryEngine):
    """Answer a query on a local model, place the nodes by its attention, and answer again.

    The ``source_nodes`` of the response are in their final order, each with the score it was
    retrieved with, and with ``rank``, ``slot``, ``score`` (its relevance to the model),
    ``placement`` and ``estimator`` in its `ExplainedNode.posrag`. The ``metadata`` holds

    ``first_answer``
        the answer of the first round;
    ``order``
        slot -> node, as retrieved;
    ``scores``
        relevance of each node, as retrieved; higher is better;
    ``rounds``
        1 if the nodes were in their best order already, 2 otherwise;
    ``without_context``
        whether nothing was retrieved, and the model was asked without context.

    The model runs in this process; the async methods run it in a thread.

    Parameters
    ----------
    retriever
        Retrieves the nodes, best first.
    model
        A `shared_core.HuggingFaceModel`, a pair of a transformers model and its tokenizer, or
        the folder or hub name of one, which is loaded at first use and kept.
    estimator, placement, template
        As in `AttentionPlacementPostprocessor`.
    callback_manager
        Notified of each query.

    Raises
    ------
    ValueError
        If an option is unknown. At a query: if a node is empty, or the prompt is longer than the
        model's context.
    GenerationError
        At a query, if the model cannot be loaded or its attention cannot be read.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        model: ModelLike,
        *,
        callback_manager: CallbackManager | None = None,
        **options: Unpack[AttentionArguments],
    ) -> None:
        super().__init__(callback_manager or Settings.callback_manager)
        self._retriever = retriever
        self._placer = AttentionPlacer(model=LocalModel.of(model), method=TwoRound(**options))

    @property
    def retriever(self) -> BaseRetriever:
        """The retriever of the nodes."""
        return self._retriever

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Return the nodes as retrieved, not placed."""
        return self._retriever.retrieve(query_bundle)

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Return the nodes as retrieved, not placed."""
        return await self._retriever.aretrieve(query_bundle)

    @dispatcher.span
    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> Response:
        """Answer in two rounds over given nodes; the additional ones are only passed on."""
        dispatcher.event(SynthesizeStartEvent(query=query_bundle))
        texts = [text_of(node) for node in nodes]
        case = Case(question=plain_text(query_bundle), documents=texts)
        (found,) = self._placer.answer([case])
        response = self._response(nodes, found)
        response.source_nodes.extend(additional_source_nodes or [])
        dispatcher.event(SynthesizeEndEvent(query=query_bundle, response=response))
        return response

    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> Response:
        """Async version of `synthesize`, in a thread."""
        return await asyncio.to_thread(
            self.synthesize, query_bundle, nodes, additional_source_nodes
        )

    def _query(self, query_bundle: QueryBundle) -> Response:
        return self.synthesize(query_bundle, self.retrieve(query_bundle))

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        return await self.asynthesize(query_bundle, await self.aretrieve(query_bundle))

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _response(self, nodes: Sequence[NodeWithScore], found: PlacedAnswer) -> Response:
        metadata = {
            "first_answer": found.first_answer,
            "order": list(found.order),
            "scores": list(found.scores),
            "rounds": found.rounds,
            "without_context": not nodes,
        }
        return Response(
            response=found.answer,
            source_nodes=[with_slot(nodes[at], why) for at, why in self._placer.slots(found)],
            metadata=metadata,
        )
