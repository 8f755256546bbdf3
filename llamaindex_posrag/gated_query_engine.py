"""Query engines of the Context Awareness Gate: with a decision before, and without context."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Self, Unpack

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.llms import LLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.settings import Settings

from llamaindex_posrag.retrieval_gate import Gated, RetrievalGate, fit_for
from shared_core.checking import SHOWN
from shared_core.gating import ContextGate, GatedPrompts, RetrievalDecision, unwrapped
from shared_core.gating.fit import FitArguments
from shared_core.wording import shortened

_ALL_OF_IT = PromptTemplate("{asked}")


class DirectQueryEngine(BaseQueryEngine):
    """Ask the model alone: the alternative to retrieval.

    Parameters
    ----------
    llm
        The model.
    prompts
        Its ``direct`` is used: chain of thought by default.
    streaming
        Whether the answer comes as a stream.
    callback_manager
        Notified of each query.
    """

    def __init__(
        self,
        llm: LLM,
        *,
        prompts: GatedPrompts | None = None,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager or Settings.callback_manager)
        self._llm = llm
        self._prompts = prompts or GatedPrompts()
        self._streaming = streaming

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            prompt = self._prompt(query_bundle)
            response: RESPONSE_TYPE
            if self._streaming:
                response = StreamingResponse(self._llm.stream(_ALL_OF_IT, asked=prompt))
            else:
                response = Response(self._llm.predict(_ALL_OF_IT, asked=prompt))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            prompt = self._prompt(query_bundle)
            response: RESPONSE_TYPE
            if self._streaming:
                tokens = await self._llm.astream(_ALL_OF_IT, asked=prompt)
                response = AsyncStreamingResponse(tokens)
            else:
                response = Response(await self._llm.apredict(_ALL_OF_IT, asked=prompt))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def _prompt(self, query: QueryBundle) -> str:
        return self._prompts.render(unwrapped(query.query_str), None)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


class GatedQueryEngine(BaseQueryEngine):
    """Answer with context, or without if the query lies outside the corpus (CAG).

    One search serves both the decision and the context. If nothing is retrieved, for whatever
    reason, the model is asked directly: the answer is never "Empty Response" for lack of nodes.
    The decision and its reason are in ``response.metadata["retrieval"]``, in the ``posrag`` of
    every source node, and in a `RetrievalDecisionEvent`.

    Parameters
    ----------
    query_engine
        An engine with ``retrieve`` and ``synthesize``, as RetrieverQueryEngine and
        `TwoRoundQueryEngine`; its prompts are those with context.
    llm
        Answers without context.
    gate
        The fitted gate; `from_retriever` fits one, `load_gate` reads one from a file.
    embed_model
        The model that the gate was fitted with; needed unless every node carries its cosine to
        the query, as those of a `CAUSRetriever` do if no retriever around it rewrites the query.
        The nearest node then has to be among those found.
    prompts, streaming
        Of the answer without context, as in `DirectQueryEngine`.
    callback_manager
        Notified of each query.

    Raises
    ------
    ValueError
        If `query_engine` cannot retrieve and synthesize, or `gate` is not a gate. When it is
        asked: if the query is blank, or a similarity is not a finite number.
    """

    def __init__(
        self,
        query_engine: BaseQueryEngine,
        llm: LLM,
        gate: ContextGate,
        *,
        embed_model: BaseEmbedding | None = None,
        prompts: GatedPrompts | None = None,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        if not hasattr(query_engine, "retrieve") or not hasattr(query_engine, "synthesize"):
            raise ValueError(
                "query_engine must have retrieve and synthesize, as a RetrieverQueryEngine has; "
                f"got {shortened(repr(query_engine), SHOWN)}; from_retriever takes a retriever"
            )
        if not isinstance(gate, ContextGate):
            raise ValueError(
                f"gate must be a ContextGate, got {shortened(repr(gate), SHOWN)}; from_retriever "
                "fits one"
            )
        super().__init__(callback_manager=callback_manager or Settings.callback_manager)
        self._engine = query_engine
        self._gate = RetrievalGate(gate, embed_model)
        self._direct = DirectQueryEngine(
            llm, prompts=prompts, streaming=streaming, callback_manager=callback_manager
        )

    @classmethod
    def from_retriever(
        cls,
        retriever: BaseRetriever,
        llm: LLM,
        nodes: Iterable[BaseNode] | None = None,
        *,
        embed_model: BaseEmbedding | None = None,
        prompts: GatedPrompts | None = None,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
        **fit: Unpack[FitArguments],
    ) -> Self:
        """Fit a gate on the nodes that a retriever searches, and answer from those it finds.

        Parameters
        ----------
        retriever
            The retriever.
        llm
            Answers, with context and without.
        nodes
            The nodes it searches; by default those in the index of a `CAUSRetriever`, whose
            vectors are then used as they are, or those of a `FusingRetriever`.
        embed_model
            The model behind it; by default that of a `CAUSRetriever`.
        prompts, callback_manager
            As in the constructor.
        streaming
            Whether the answers come as streams.
        **fit
            ``pseudo_queries``, ``negatives``, ``policy``, ``threshold``, ``transform``,
            ``coverage`` and ``tokenizer``, see `shared_core.gating.fit.fit_gate`.

        Raises
        ------
        ValueError
            If `nodes` or `embed_model` are missing, one is not a node, `nodes` is one node
            instead of several, or the gate cannot be fitted on them.
        EmbeddingMismatchError
            If `embed_model` is not the model of the index.
        """
        gate, model = fit_for(retriever, nodes, embed_model, **fit)
        return cls(
            RetrieverQueryEngine.from_args(
                retriever, llm=llm, streaming=streaming, callback_manager=callback_manager
            ),
            llm,
            gate,
            embed_model=model,
            prompts=prompts,
            streaming=streaming,
            callback_manager=callback_manager,
        )

    @property
    def gate(self) -> ContextGate:
        """The fitted gate."""
        return self._gate.gate

    def decide(self, query_bundle: QueryBundle) -> Gated:
        """Search, and decide by the nodes found: the first half of a query."""
        searched = self._gate.prepare(query_bundle)
        return self._gate.decide(query_bundle, searched, self._engine.retrieve(searched))

    async def adecide(self, query_bundle: QueryBundle) -> Gated:
        """Async version of `decide`; a transform, and a sync ``retrieve``, in a thread."""
        searched = await asyncio.to_thread(self._gate.prepare, query_bundle)
        aretrieve: Any = getattr(self._engine, "aretrieve", None)
        if aretrieve is None:
            nodes = await asyncio.to_thread(self._engine.retrieve, searched)
        else:
            nodes = await aretrieve(searched)
        return await self._gate.adecide(query_bundle, searched, nodes)

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Return the nodes that the gate lets through; none for a query without context."""
        return self.decide(query_bundle).nodes

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Async version of `retrieve`."""
        return (await self.adecide(query_bundle)).nodes

    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Answer from given nodes, or directly if there are none.

        The additional ones are passed on, and do not affect the choice.
        """
        asked = _asked(query_bundle)
        if nodes:
            return self._engine.synthesize(asked, nodes, additional_source_nodes)
        response = self._direct.query(asked)
        response.source_nodes.extend(additional_source_nodes or [])
        return response

    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Async version of `synthesize`."""
        asked = _asked(query_bundle)
        if nodes:
            return await self._engine.asynthesize(asked, nodes, additional_source_nodes)
        response = await self._direct.aquery(asked)
        response.source_nodes.extend(additional_source_nodes or [])
        return response

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            found = self.decide(query_bundle)
            response = add_decision(self.synthesize(query_bundle, found.nodes), found.decision)
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            found = await self.adecide(query_bundle)
            answer = await self.asynthesize(query_bundle, found.nodes)
            response = add_decision(answer, found.decision)
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"query_engine": self._engine}


def add_decision(response: RESPONSE_TYPE, decision: RetrievalDecision) -> RESPONSE_TYPE:
    """Put a decision into the metadata of a response, and return the response."""
    response.metadata = {**(response.metadata or {}), "retrieval": decision.explain()}
    return response


def _asked(query: QueryBundle) -> QueryBundle:
    return QueryBundle(unwrapped(query.query_str), image_path=query.image_path)
