"""Query engines of the retrieval gate: without context, and with a decision before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Any, Self, TypedDict, Unpack

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import Generation
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.settings import Settings

from llamaindex_posrag.options import CallArguments
from llamaindex_posrag.retrieval_gate import Gated, RetrievalGate, fit_for
from llamaindex_posrag.retrievers import CAUSRetriever
from shared_core.gating import ContextGate, GatedPrompts, RetrievalDecision, unwrapped
from shared_core.gating.fit import FitArguments


class DirectArguments(TypedDict, total=False):
    """Keyword arguments of an engine that can ask the model alone."""

    prompts: GatedPrompts | None
    streaming: bool
    callback_manager: CallbackManager | None


class DirectQueryEngine(BaseQueryEngine):
    """Ask the model alone: the alternative to retrieval.

    Parameters
    ----------
    llm
        The model.
    prompts
        Its ``direct`` is used: chain of thought by default.
    streaming
        Whether the answer comes as a stream; False by default.
    callback_manager
        Notified of each query; by default that of LlamaIndex's ``Settings``.
    """

    def __init__(self, llm: LLM, **options: Unpack[DirectArguments]) -> None:
        super().__init__(options.get("callback_manager") or Settings.callback_manager)
        self._synthesizer = _direct(llm, **options)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return self._synthesizer.synthesize(_asked(query_bundle), [])

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return await self._synthesizer.asynthesize(_asked(query_bundle), [])

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


class GatedQueryEngine(BaseQueryEngine):
    """Answer with context, or without if the query lies outside the corpus (CAG).

    One search serves both the decision and the context. If nothing is retrieved, for whatever
    reason, the model is asked directly: the answer is never "Empty Response" for lack of nodes.
    The decision and its reason are in ``response.metadata["retrieval"]``, and in the ``posrag`` of
    every source node.

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
        **options: Unpack[DirectArguments],
    ) -> None:
        if not hasattr(query_engine, "retrieve") or not hasattr(query_engine, "synthesize"):
            raise ValueError(
                "query_engine must have retrieve and synthesize, as a RetrieverQueryEngine has; "
                f"got {query_engine!r:.80}; from_retriever takes a retriever"
            )
        if not isinstance(gate, ContextGate):
            raise ValueError(
                f"gate must be a ContextGate, as from_retriever fits, got {gate!r:.80}"
            )
        super().__init__(options.get("callback_manager") or Settings.callback_manager)
        self._engine = query_engine
        self._gate = RetrievalGate(gate, embed_model)
        self._direct = _direct(llm, **options)

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
            vectors are then used as they are if it is a `HybridIndex`.
        embed_model
            The model behind it; by default that of a `CAUSRetriever`.
        prompts, callback_manager
            As in the constructor.
        streaming
            Whether the answers come as streams.
        **fit
            ``pseudo_queries``, ``negatives``, ``policy``, ``threshold``, ``transform``,
            ``coverage`` and ``tokenizer`` (by default that of a retriever of this package), see
            `shared_core.gating.fit.fit_gate`.

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

    def using(self, **options: Unpack[CallArguments]) -> Self:
        """Return an engine whose retriever has other options, for one query, say.

        ``engine.using(k=3, filters=...).query(query)``; see `CAUSRetriever.using`.

        Raises
        ------
        ValueError
            If `query_engine` is not one over a retriever of posrag, or a value is out of range.
        TypeError
            If an option is unknown.
        """
        engine: Any = self._engine
        retriever = getattr(engine, "retriever", None)
        if not isinstance(retriever, CAUSRetriever) or not hasattr(engine, "with_retriever"):
            raise ValueError(
                f"using() needs a RetrieverQueryEngine over a CAUSRetriever, got {engine!r:.80}"
            )
        other = copy(self)
        other._engine = engine.with_retriever(retriever.using(**options))
        return other

    def decide(self, query_bundle: QueryBundle) -> Gated:
        """Search, and decide by the nodes found: the first half of a query."""
        return self._gate.ask(query_bundle, self._engine.retrieve)

    async def adecide(self, query_bundle: QueryBundle) -> Gated:
        """Async version of `decide`; a transform, and a sync ``retrieve``, in a thread."""

        async def in_thread(searched: QueryBundle) -> list[NodeWithScore]:
            return await asyncio.to_thread(self._engine.retrieve, searched)

        return await self._gate.aask(query_bundle, getattr(self._engine, "aretrieve", in_thread))

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        found = self.decide(query_bundle)
        engine = self._engine if found.nodes else self._direct
        response = engine.synthesize(_asked(query_bundle), found.nodes)
        return _told(response, found.decision)

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        found = await self.adecide(query_bundle)
        engine = self._engine if found.nodes else self._direct
        response = await engine.asynthesize(_asked(query_bundle), found.nodes)
        return _told(response, found.decision)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"query_engine": self._engine}


def _told(response: RESPONSE_TYPE, decision: RetrievalDecision) -> RESPONSE_TYPE:
    """Put a decision into the metadata of a response, and return the response."""
    response.metadata = {**(response.metadata or {}), "retrieval": decision.explain()}
    return response


def _direct(
    llm: LLM,
    *,
    prompts: GatedPrompts | None = None,
    streaming: bool = False,
    callback_manager: CallbackManager | None = None,
) -> Generation:
    """Return what asks a model alone; nodes are only listed as sources."""
    prompt = (prompts or GatedPrompts()).direct
    template = PromptTemplate(prompt, template_var_mappings={"query_str": "question"})
    return Generation(llm, callback_manager, simple_template=template, streaming=streaming)


def _asked(query: QueryBundle) -> QueryBundle:
    return replace(query, query_str=unwrapped(query.query_str))
