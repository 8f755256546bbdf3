"""The retrieval gate over LlamaIndex's nodes, and as a selector under its routers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias, Unpack

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.tools.types import ToolMetadata

from llamaindex_posrag.embedding import embed_nodes, embedded_query, embedded_text
from llamaindex_posrag.nodes import ExplainedNode, explanation
from llamaindex_posrag.retrievers import CAUSRetriever
from llamaindex_posrag.vector_index import IndexEngine
from shared_core.checking import check_each
from shared_core.gating import ContextGate, RetrievalDecision, Transform, unwrapped
from shared_core.gating.fit import FitArguments, fit_behind
from shared_core.gating.gate import Embedder, Found
from shared_core.types import Tokenizer

Retrieve: TypeAlias = Callable[[QueryBundle], list[NodeWithScore]]
AsyncRetrieve: TypeAlias = Callable[[QueryBundle], Awaitable[list[NodeWithScore]]]


class Gated(NamedTuple):
    """A decision, and the nodes that the gate let through.

    Attributes
    ----------
    decision
        The decision.
    nodes
        The retrieved nodes, each with the decision under ``posrag["retrieval"]``; empty if the
        question is to be answered without context.
    """

    decision: RetrievalDecision
    nodes: list[NodeWithScore]


class RetrievalGate(NamedTuple):
    """The gate, and the model that computes the cosines of nodes that come without.

    The cosines in the nodes are used if every node has one, of the query that was searched.
    Otherwise, as under a retriever that rewrites the query, the texts of the query and the nodes
    are embedded; vectors that they carry are ignored, for they may be of another model.
    """

    gate: ContextGate
    embed_model: BaseEmbedding | None

    def ask(self, query: QueryBundle, retrieve: Retrieve) -> Gated:
        """Search for a query, and decide by the nodes that were found.

        Raises
        ------
        ValueError
            If the query is blank, a similarity is not a finite number, or cosines are missing and
            there is no model.
        """
        searched = self._searched(query)
        nodes = retrieve(searched)
        decision = self.gate.decide_found(_found(query, searched, nodes), self._embedder)
        return _gated(decision, nodes)

    async def aask(self, query: QueryBundle, aretrieve: AsyncRetrieve) -> Gated:
        """Async version of `ask`; the gate's transform is called in a thread."""
        searched = await asyncio.to_thread(self._searched, query)
        nodes = await aretrieve(searched)
        found = _found(query, searched, nodes)
        return _gated(await self.gate.adecide_found(found, self._embedder), nodes)

    def _searched(self, query: QueryBundle) -> QueryBundle:
        """Return the query to be searched, a copy; an embedding of another text is dropped."""
        text = self.gate.prepare(query.query_str)
        if text == unwrapped(query.query_str):
            return replace(query, query_str=text)
        return QueryBundle(text, image_path=query.image_path)

    def _embedder(self) -> Embedder:
        if self.embed_model is None:
            raise ValueError(
                "the retriever returns no cosines of the query: give embed_model=, the model that "
                "the gate was fitted with"
            )
        return embedder_of(self.embed_model)


def _found(query: QueryBundle, searched: QueryBundle, nodes: Sequence[NodeWithScore]) -> Found:
    return Found(
        query=query.query_str,
        searched=searched.query_str,
        embedded=embedded_query(searched),
        details=[explanation(each) for each in nodes],
        texts=[embedded_text(each.node) for each in nodes],
    )


def _gated(decision: RetrievalDecision, nodes: Sequence[NodeWithScore]) -> Gated:
    """Put a decision into each node if they are let through."""
    passed: list[NodeWithScore] = []
    for each in nodes if decision.retrieve else ():
        posrag = {**explanation(each), "retrieval": decision.explain()}
        passed.append(ExplainedNode(node=each.node, score=each.score, posrag=posrag))
    return Gated(decision, passed)


def fit_for(
    retriever: BaseRetriever,
    nodes: Iterable[BaseNode] | None,
    embed_model: BaseEmbedding | None,
    **fit: Unpack[FitArguments],
) -> RetrievalGate:
    """Fit a gate on the nodes that a retriever searches; see `GatedQueryEngine.from_retriever`."""
    own = retriever if isinstance(retriever, CAUSRetriever) else None
    model = own.embed_model if embed_model is None and own is not None else embed_model
    if model is None:
        raise ValueError(f"{type(retriever).__name__} has no embedding model: give embed_model=")
    engine = None if own is None else own.index
    if nodes is None and isinstance(engine, IndexEngine):
        nodes = engine.nodes
    given = None
    if nodes is not None:
        nodes = check_each(nodes, "nodes", BaseNode)
        ids, texts = [node.node_id for node in nodes], [embedded_text(node) for node in nodes]
        given = ids, texts, embed_nodes(model, nodes)
    gate = fit_behind(
        engine,
        given,
        embedder_of(model),
        verify=embed_model is not None,
        missing=f"{type(retriever).__name__} does not expose its nodes: give nodes=",
        **fit,
    )
    return RetrievalGate(gate, model)


def load_gate(
    path: str | Path,
    embed_model: BaseEmbedding,
    *,
    transform: Transform | None = None,
    tokenizer: Tokenizer | None = None,
) -> ContextGate:
    """Read a gate that `ContextGate.save` wrote, and check the model; see `ContextGate.load`."""
    embed = embedder_of(embed_model).queries
    return ContextGate.load(path, embed=embed, transform=transform, tokenizer=tokenizer)


def embedder_of(model: BaseEmbedding) -> Embedder:
    """Return the functions of a model."""
    return Embedder(
        query=model.get_query_embedding,
        texts=model.get_text_embedding_batch,
        aquery=model.aget_query_embedding,
        atexts=model.aget_text_embedding_batch,
    )


class GatedSelection(SelectorResult):
    """One choice, and the decision that led to it; the selection's reason is the decision's.

    Attributes
    ----------
    retrieval
        `shared_core.gating.RetrievalDecision.explain`.
    """

    retrieval: dict[str, Any] = Field(default_factory=dict)


class ContextAwarenessSelector(BaseSelector):
    """Choose between an engine with context and one without, under a RouterQueryEngine (CAG).

    Under a RouterRetriever the choices are retrievers: of this corpus, and of anything else. The
    router puts the selection, with the decision, into ``response.metadata["selector_result"]``.
    The engine that a router chooses searches again; a `GatedQueryEngine` searches once.

    Parameters
    ----------
    retriever
        Searches the nodes that the gate was fitted on.
    gate
        The fitted gate; `from_retriever` fits one.
    embed_model
        The model that the gate was fitted with; needed as in `GatedQueryEngine`.
    context, direct
        Positions of the choice with context, and of the one without; other choices are never
        taken.

    Raises
    ------
    ValueError
        If the positions are equal or negative. When it selects: if there are too few choices, the
        query is blank, or a similarity is not a finite number.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        gate: ContextGate,
        *,
        embed_model: BaseEmbedding | None = None,
        context: int = 0,
        direct: int = 1,
    ) -> None:
        if context == direct or min(context, direct) < 0:
            raise ValueError(
                f"context and direct must be two positions >= 0, got {context} and {direct}"
            )
        self._retriever = retriever
        self._gate = RetrievalGate(gate, embed_model)
        self._context, self._direct = context, direct

    @classmethod
    def from_retriever(
        cls,
        retriever: BaseRetriever,
        nodes: Iterable[BaseNode] | None = None,
        *,
        embed_model: BaseEmbedding | None = None,
        context: int = 0,
        direct: int = 1,
        **fit: Unpack[FitArguments],
    ) -> Self:
        """Fit a gate on the nodes that a retriever searches, and select by it.

        Parameters
        ----------
        retriever, nodes, embed_model, **fit
            As in `GatedQueryEngine.from_retriever`.
        context, direct
            As in the constructor.
        """
        gate, model = fit_for(retriever, nodes, embed_model, **fit)
        return cls(retriever, gate, embed_model=model, context=context, direct=direct)

    @property
    def gate(self) -> ContextGate:
        """The fitted gate."""
        return self._gate.gate

    def _select(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        self._check(choices)
        return self._selection(self._gate.ask(query, self._retriever.retrieve).decision)

    async def _aselect(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        self._check(choices)
        found = await self._gate.aask(query, self._retriever.aretrieve)
        return self._selection(found.decision)

    def _check(self, choices: Sequence[ToolMetadata]) -> None:
        if max(self._context, self._direct) >= len(choices):
            raise ValueError(
                f"the selector chooses between the positions {self._context} (with context) and "
                f"{self._direct} (without), got {len(choices)} choices"
            )

    def _selection(self, decision: RetrievalDecision) -> GatedSelection:
        index = self._context if decision.retrieve else self._direct
        selection = SingleSelection(index=index, reason=decision.reason)
        return GatedSelection(selections=[selection], retrieval=decision.explain())

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """Do nothing: a gate has no prompts."""
