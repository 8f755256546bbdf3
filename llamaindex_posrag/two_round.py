"""A query engine that asks a local model twice, the second time with the nodes placed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Unpack

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation.events.synthesis import (
    SynthesizeEndEvent,
    SynthesizeStartEvent,
)
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

from llamaindex_posrag.attention import text_of
from llamaindex_posrag.embedding import plain_text
from llamaindex_posrag.nodes import with_slot
from llamaindex_posrag.query_engines import AnnouncedQueryEngine
from shared_core.attention import AttentionPlacer, Case
from shared_core.attention.rounds import AttentionArguments, PlacedAnswer
from shared_core.generation.local_model import LocalModel, ModelLike

dispatcher = get_dispatcher(__name__)


class TwoRoundQueryEngine(AnnouncedQueryEngine):
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
        super().__init__(callback_manager)
        self._retriever = retriever
        self._placer = AttentionPlacer(model=LocalModel.of(model), **options)

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
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.SYNTHESIZE, payload=payload) as event:
            texts = [text_of(node) for node in nodes]
            case = Case(question=plain_text(query_bundle), documents=texts)
            (found,) = self._placer.answer([case])
            response = self._response(nodes, found)
            response.source_nodes.extend(additional_source_nodes or [])
            event.on_end(payload={EventPayload.RESPONSE: response})
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

    def _answer(self, query: QueryBundle) -> Response:
        return self.synthesize(query, self.retrieve(query))

    async def _aanswer(self, query: QueryBundle) -> Response:
        return await self.asynthesize(query, await self.aretrieve(query))

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
