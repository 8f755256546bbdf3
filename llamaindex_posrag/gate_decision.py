"""Between LlamaIndex's nodes and the gate: the query searched, the nodes found, the decision."""

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
from shared_core.gating.fitting import FitArguments, as_queries, fit_gate, fit_index
from shared_core.gating.found_cosines import Embedded, FoundCosines, afound_cosines, found_cosines
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


class NodeGate(NamedTuple):
    """The gate, and the model that computes the cosines of nodes that come without."""

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
    ) -> RetrievalDecision:
        """Decide by the nodes that were found, and notify the dispatcher.

        The cosines in the nodes are used if every node has one, of the query that was searched.
        Otherwise, as under a retriever that rewrites the query, the texts of the query and the
        nodes are embedded; vectors that they carry are ignored, for they may be of another model.

        Raises
        ------
        ValueError
            If a similarity is not a finite number, or cosines are missing and there is no model.
        """
        details, texts = _read(nodes)
        text, embedded = searched.query_str, embedded_query(searched)
        found = found_cosines(embedded, details, texts, lambda: self._vectors(text, texts))
        return self._announce(query, found)

    async def adecide(
        self, query: QueryBundle, searched: QueryBundle, nodes: Sequence[NodeWithScore]
    ) -> RetrievalDecision:
        """Async version of `decide`."""
        details, texts = _read(nodes)
        text, embedded = searched.query_str, embedded_query(searched)
        found = await afound_cosines(embedded, details, texts, lambda: self._avectors(text, texts))
        return self._announce(query, found)

    def _announce(self, query: QueryBundle, found: FoundCosines) -> RetrievalDecision:
        decision = self.gate.decide(query.query_str, *found)
        asked = unwrapped(query.query_str)
        dispatcher.event(RetrievalDecisionEvent(query=asked, decision=decision.explain()))
        return decision

    def _vectors(self, query: str, texts: list[str]) -> Embedded:
        model = self._model
        return model.get_query_embedding(query), model.get_text_embedding_batch(texts)

    async def _avectors(self, query: str, texts: list[str]) -> Embedded:
        model = self._model
        query_vector = await model.aget_query_embedding(query)
        return query_vector, await model.aget_text_embedding_batch(texts)

    @property
    def _model(self) -> BaseEmbedding:
        if self.embed_model is None:
            raise ValueError(
                "the retriever returns no cosines of the query: give embed_model=, the model that "
                "the gate was fitted with"
            )
        return self.embed_model


def _read(nodes: Sequence[NodeWithScore]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the explanations and the texts of nodes."""
    return [explanation(each) for each in nodes], [embedded_text(each.node) for each in nodes]


def let_through(decision: RetrievalDecision, nodes: Sequence[NodeWithScore]) -> Gated:
    """Return the nodes with the decision in each, or none if it is not to retrieve."""
    if not decision.retrieve:
        return Gated(decision, [])
    return Gated(
        decision,
        [
            ExplainedNode(
                node=node.node,
                score=node.score,
                posrag={**explanation(node), "retrieval": decision.explain()},
            )
            for node in nodes
        ],
    )


def fit_for(
    retriever: BaseRetriever,
    nodes: Iterable[BaseNode] | None,
    embed_model: BaseEmbedding | None,
    **fit: Unpack[FitArguments],
) -> NodeGate:
    """Fit a gate on the nodes that a retriever searches.

    Parameters
    ----------
    retriever
        The retriever.
    nodes
        The nodes it searches; by default those in the index of a `CAUSRetriever`, whose vectors
        are then used as they are, or those of a `FusingRetriever`.
    embed_model
        The model behind it; by default that of a `CAUSRetriever`.
    **fit
        As in `shared_core.gating.fitting.fit_gate`.

    Raises
    ------
    ValueError
        If `nodes` or `embed_model` are missing, one is not a node, `nodes` is one node instead of
        several, or the gate cannot be fitted on them.
    EmbeddingMismatchError
        If `embed_model` is not the model of the index.
    """
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
    return NodeGate(gate, model)


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
