"""The retrieval gate over LlamaIndex's nodes: the query searched, the decision, fit and load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

from llamaindex_posrag.embedding import embed_nodes, embedded_query, embedded_text
from llamaindex_posrag.fusion import FusingRetriever
from llamaindex_posrag.nodes import ExplainedNode, explanation
from llamaindex_posrag.retrievers import CAUSRetriever
from shared_core.arrays import Embed
from shared_core.checking import check_each
from shared_core.gating import ContextGate, RetrievalDecision, Transform, unwrapped
from shared_core.gating.fit import FitArguments, as_queries, fit_gate, fit_index
from shared_core.types import Tokenizer

dispatcher = get_dispatcher(__name__)


class RetrievalDecisionEvent(BaseEvent):
    """A gate has decided whether to retrieve.

    Attributes
    ----------
    query
        The question, unwrapped.
    decision
        `shared_core.gating.RetrievalDecision.explain`.
    """

    query: str
    decision: dict[str, Any]

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises the event."""
        return "RetrievalDecisionEvent"


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

    def prepare(self, query: QueryBundle) -> QueryBundle:
        """Return the query to be searched, a copy; an embedding of another text is dropped.

        Raises
        ------
        ValueError
            If the query is blank.
        """
        text = self.gate.prepare(query.query_str)
        if text != unwrapped(query.query_str):
            return QueryBundle(text, image_path=query.image_path)
        return QueryBundle(
            text,
            image_path=query.image_path,
            custom_embedding_strs=query.custom_embedding_strs,
            embedding=query.embedding,
        )

    def decide(
        self, query: QueryBundle, searched: QueryBundle, nodes: Sequence[NodeWithScore]
    ) -> Gated:
        """Decide by the nodes that were found, and notify the dispatcher.

        Raises
        ------
        ValueError
            If a similarity is not a finite number, or cosines are missing and there is no model.
        """
        texts = [embedded_text(each.node) for each in nodes]
        decision = self._by_explanations(query, searched, nodes, texts)
        if decision is None:
            vector = self._model.get_query_embedding(searched.query_str)
            vectors = self._model.get_text_embedding_batch(texts)
            decision = self.gate.decide_by_vectors(query.query_str, vector, vectors, texts)
        return _announced(query, decision, nodes)

    async def adecide(
        self, query: QueryBundle, searched: QueryBundle, nodes: Sequence[NodeWithScore]
    ) -> Gated:
        """Async version of `decide`."""
        texts = [embedded_text(each.node) for each in nodes]
        decision = self._by_explanations(query, searched, nodes, texts)
        if decision is None:
            vector = await self._model.aget_query_embedding(searched.query_str)
            vectors = await self._model.aget_text_embedding_batch(texts)
            decision = self.gate.decide_by_vectors(query.query_str, vector, vectors, texts)
        return _announced(query, decision, nodes)

    def _by_explanations(
        self,
        query: QueryBundle,
        searched: QueryBundle,
        nodes: Sequence[NodeWithScore],
        texts: Sequence[str],
    ) -> RetrievalDecision | None:
        details = [explanation(each) for each in nodes]
        text = embedded_query(searched)
        return self.gate.decide_by_explanations(query.query_str, text, details, texts)

    @property
    def _model(self) -> BaseEmbedding:
        if self.embed_model is None:
            raise ValueError(
                "the retriever returns no cosines of the query: give embed_model=, the model that "
                "the gate was fitted with"
            )
        return self.embed_model


def _announced(
    query: QueryBundle, decision: RetrievalDecision, nodes: Sequence[NodeWithScore]
) -> Gated:
    """Dispatch a decision, and put it into each node if they are let through."""
    told = decision.explain()
    dispatcher.event(RetrievalDecisionEvent(query=unwrapped(query.query_str), decision=told))
    if not decision.retrieve:
        return Gated(decision, [])
    passed: list[NodeWithScore] = []
    for each in nodes:
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
    if nodes is None and isinstance(retriever, FusingRetriever):
        nodes = retriever.nodes
    model = own.embed_model if embed_model is None and own is not None else embed_model
    if model is None:
        raise ValueError(f"{type(retriever).__name__} has no embedding model: give embed_model=")
    if nodes is not None:
        nodes = check_each(nodes, "nodes", BaseNode)
        ids, texts = [node.node_id for node in nodes], [embedded_text(node) for node in nodes]
        gate = fit_gate(ids, texts, embed_nodes(model, nodes), _embed(model), **fit)
    elif own is not None:
        verify = None if embed_model is None else embed_model.get_text_embedding
        gate = fit_index(own.index, _embed(model), verify=verify, **fit)
    else:
        raise ValueError(f"{type(retriever).__name__} does not expose its nodes: give nodes=")
    return RetrievalGate(gate, model)


def load_gate(
    path: str | Path,
    embed_model: BaseEmbedding,
    *,
    transform: Transform | None = None,
    tokenizer: Tokenizer | None = None,
) -> ContextGate:
    """Read a gate that `ContextGate.save` wrote, and check the model; see `ContextGate.load`."""
    embed = _embed(embed_model)
    return ContextGate.load(path, embed=embed, transform=transform, tokenizer=tokenizer)


def _embed(model: BaseEmbedding) -> Embed:
    return as_queries(model.get_query_embedding, model.get_text_embedding_batch)
