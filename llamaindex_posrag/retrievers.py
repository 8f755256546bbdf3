"""The hybrid retriever: an index of nodes, searched by both legs, fused and placed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Unpack

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation.events.retrieval import (
    RetrievalEndEvent,
    RetrievalStartEvent,
)
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.settings import Settings
from llama_index.core.vector_stores.types import MetadataFilters
from llama_index_instrumentation import get_dispatcher

from llamaindex_posrag.caus_options import CAUSOptions, caus_of, refuse_similarity_top_k
from llamaindex_posrag.embedding import (
    aembed,
    as_bundles,
    embed,
    embed_nodes,
    embedded_query,
    plain_text,
)
from llamaindex_posrag.filters import where
from llamaindex_posrag.fusing import FusingRetriever
from llamaindex_posrag.index_objects import ObjectRetriever
from llamaindex_posrag.node_chunks import NodeChunks
from llamaindex_posrag.nodes import arranged, explanation, to_passage
from llamaindex_posrag.persistence import complete, decode_node, encode_node
from shared_core import CAUS, Arrangement, HybridIndex
from shared_core.checking import SHOWN, check_each
from shared_core.errors import IndexFormatError
from shared_core.index.dense.view import Dense, Metric
from shared_core.index.hybrid import check_passages
from shared_core.index.sparse.bm25 import Variant
from shared_core.options import CAUSArguments, decode_caus, encode_caus
from shared_core.overriding import inherits
from shared_core.types import Tokenizer
from shared_core.wording import shortened

dispatcher = get_dispatcher(__name__)

_ADAPTER = "llamaindex_posrag"


class CAUSRetriever(CAUSOptions, ObjectRetriever):
    """Dense and BM25 search side by side, fused, cut to k, and placed if the gate opens.

    Every node comes back as a copy with its fused score in [0, 1], higher is better, and all
    that led to its slot in ``posrag`` (`llamaindex_posrag.nodes.ExplainedNode`).

    A query may be text or a `QueryBundle`, whose own embedding or embedding strings are used. A
    blank query is answered by the dense leg; an empty index answers ``[]``.

    With ``caus.expand`` the k nodes that were found take in their neighbours, and what follows
    each other becomes one node: at most k come back, each with the id and metadata of its best
    node and the text of the span. Neighbours pass the filters too. Who stands next to whom is
    told as `llamaindex_posrag.node_chunks.NodeChunks` says.

    An `IndexNode` leads to its object, as in LlamaIndex's own retrievers: to a node with the score
    and the explanation of the index node, or to what a retriever or query engine makes of the
    query, as it comes from there.

    Parameters
    ----------
    index
        Passages made by `add_nodes`; `from_nodes` builds one.
    embed_model
        Model of the vectors in `index`.
    caus
        Options of the search and the placement; `shared_core.CAUS` explains them.
    filters
        Metadata a node must have to be found, in either leg. Whatever the metadata say,
        ``doc_id``, ``ref_doc_id`` and ``document_id`` are the id of the source document, as in
        LlamaIndex's own stores, and ``"None"`` where there is none.
    callback_manager
        By default ``Settings.callback_manager``; `embed_model` gets it, too.
    object_map, verbose
        As in LlamaIndex's `BaseRetriever`.

    Attributes
    ----------
    index, embed_model
        As given.
    caus
        As given. A retriever with other options shares the index:
        ``CAUSRetriever(r.index, r.embed_model, caus=replace(r.caus, alpha=0.5))``.
    k, alpha, fetch_k, fusion, placement, psi, evidence, expand, chunk_keys
        Those of `caus`; one that is set, as by ``r.k = 3``, counts from the next query.

    Raises
    ------
    ValueError
        If `index`, `embed_model`, `caus` or `filters` is something else.

    Examples
    --------
    >>> from llama_index.core import MockEmbedding
    >>> from llama_index.core.schema import TextNode
    >>> texts = ["torch.sort sorts a tensor", "torch.load loads a file"]
    >>> nodes = [TextNode(text=text) for text in texts]
    >>> model = MockEmbedding(embed_dim=8)  # or the one you have
    >>> retriever = CAUSRetriever.from_nodes(nodes, model, k=2, alpha=0.3, psi="always")
    >>> best, *_ = retriever.retrieve("How do I sort a tensor?")
    >>> best.node.text, best.posrag["slot"]
    ('torch.sort sorts a tensor', 0)
    """

    def __init__(
        self,
        index: HybridIndex,
        embed_model: BaseEmbedding,
        *,
        caus: CAUS | None = None,
        filters: MetadataFilters | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        if not isinstance(index, HybridIndex):
            raise ValueError(
                f"index must be a HybridIndex, got {shortened(repr(index), SHOWN)}; from_nodes "
                "makes one of nodes, and from_index takes a VectorStoreIndex"
            )
        if not isinstance(embed_model, BaseEmbedding):
            raise ValueError(
                f"embed_model must be an embedding model of LlamaIndex, got {embed_model!r}"
            )
        self.index = index
        self.embed_model = embed_model
        self.caus = CAUS() if caus is None else caus
        self._filters = filters
        self._where = where(filters)
        # One manager for both, as an index of LlamaIndex has it: the model's own would never see
        # a trace begin, and keep the events of every query.
        manager = callback_manager or Settings.callback_manager
        embed_model.callback_manager = manager
        super().__init__(manager, object_map, verbose=verbose)

    @property
    def filters(self) -> MetadataFilters | None:
        """Metadata a node must have to be found."""
        return self._filters

    @classmethod
    def from_nodes(
        cls,
        nodes: Iterable[BaseNode],
        embed_model: BaseEmbedding,
        *,
        dense: Dense = "flat",
        metric: Metric = "cosine",
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
        filters: MetadataFilters | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
        show_progress: bool = False,
        **options: Unpack[CAUSArguments],
    ) -> CAUSRetriever:
        """Embed and index nodes; an empty list makes an empty index to add to.

        Parameters
        ----------
        nodes, show_progress
            As in `add_nodes`.
        dense, metric, variant, tokenizer
            As in `shared_core.HybridIndex`.
        embed_model, filters, callback_manager, object_map, verbose
            As in the constructor.
        **options
            As in `shared_core.CAUS`: `k`, `alpha`, `fetch_k`, `fusion`, `placement`, `psi`,
            `evidence`, `expand` and `chunk_keys`.

        Raises
        ------
        ValueError
            If an option is out of range, and wherever `add_nodes` does.
        """
        retriever = cls(
            HybridIndex(metric=metric, dense=dense, variant=variant, tokenizer=tokenizer),
            embed_model,
            caus=caus_of(options),
            filters=filters,
            callback_manager=callback_manager,
            object_map=object_map,
            verbose=verbose,
        )
        retriever.add_nodes(nodes, show_progress=show_progress)
        return retriever

    # Its dense leg is not an index of ours, so it makes a retriever of another class.
    from_index = FusingRetriever.from_index

    def add_nodes(self, nodes: Iterable[BaseNode], *, show_progress: bool = False) -> list[str]:
        """Add nodes, or replace those whose id is there, and return their ids.

        A node that has an embedding keeps it. The others are embedded first, so that a model
        that raises leaves the index as it was.

        Raises
        ------
        ValueError
            If one is no node, `nodes` is one node instead of several, two share an id, metadata
            cannot be copied, or an embedding is NaN, infinite or of another dimension.
        """
        nodes = check_each(nodes, "nodes", BaseNode)
        passages = [to_passage(node) for node in nodes]
        check_passages(passages)
        vectors = embed_nodes(self.embed_model, nodes, show_progress=show_progress)
        return self.index.add(passages, vectors) if passages else []

    def delete_nodes(self, node_ids: Iterable[str]) -> list[str]:
        """Delete nodes and return the ids that were there; others are ignored.

        Raises
        ------
        ValueError
            If `node_ids` is one text instead of several.
        """
        return self.index.delete(node_ids)

    def delete(self, ref_doc_id: str) -> list[str]:
        """Delete every node of a source document and return their ids.

        Raises
        ------
        ValueError
            If it is not the id of one document: None is that of every node without a source.
        """
        if not isinstance(ref_doc_id, str):
            raise ValueError(
                f"ref_doc_id must be the id of one source document, got {ref_doc_id!r}; "
                "delete_nodes deletes nodes by their own ids"
            )
        sources = (passage.source for passage in self.index.passages)
        return self.delete_nodes(
            [node.node_id for node in sources if node.ref_doc_id == ref_doc_id]
        )

    @dispatcher.span
    def retrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """Retrieve for many queries at once, sooner; the results are those of `retrieve`.

        Each query is announced as one retrieval, like those of `retrieve`, to the dispatcher and
        to the callback manager; the latter hears of one when the common search is over. A
        subclass with a `retrieve` or ``_retrieve`` of its own is asked query by query.

        Raises
        ------
        ValueError
            If `queries` is one query instead of several.
        """
        bundles = as_bundles(queries)
        if not inherits(type(self), CAUSRetriever, "retrieve", "_retrieve"):
            return [self.retrieve(bundle) for bundle in bundles]
        for bundle in bundles:
            dispatcher.event(RetrievalStartEvent(str_or_query_bundle=bundle))
        with self.callback_manager.as_trace("query"):
            found = zip(bundles, self._search_batch(bundles), strict=True)
            return [self._announced(bundle, nodes) for bundle, nodes in found]

    def _announced(self, query: QueryBundle, found: list[NodeWithScore]) -> list[NodeWithScore]:
        """Go on to the objects of what a batch found for a query, and announce the result."""
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query.query_str}
        with self.callback_manager.event(CBEventType.RETRIEVE, payload=payload) as event:
            nodes = self._handle_recursive_retrieval(query, found)
            event.on_end(payload={EventPayload.NODES: nodes})
        dispatcher.event(RetrievalEndEvent(str_or_query_bundle=query, nodes=nodes))
        return nodes

    def save(self, path: str | Path) -> None:
        """Write nodes, vectors and options to a folder, at once or not at all; no pickle.

        Raises
        ------
        ValueError
            If a node's metadata would not come back from JSON as it is.
        """
        filters = None if self.filters is None else self.filters.model_dump(mode="json")
        extra = {"adapter": _ADAPTER, "caus": encode_caus(self.caus), "filters": filters}
        self.index.save(path, encode_source=encode_node, extra=extra)

    @classmethod
    def load(
        cls,
        path: str | Path,
        embed_model: BaseEmbedding,
        *,
        verify: bool = True,
        filters: MetadataFilters | None = None,
        tokenizer: Tokenizer | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
        **options: Unpack[CAUSArguments],
    ) -> CAUSRetriever:
        """Read what `save` wrote; nodes come back as the classes they were.

        Parameters
        ----------
        path
            The folder.
        embed_model
            Model the nodes were embedded with.
        verify
            Embed one stored node again and compare; catches another model of equal dimension.
        filters
            In place of those that were saved.
        tokenizer
            The one the index was built with, if it was not the default.
        callback_manager, object_map, verbose
            As in the constructor.
        **options
            As in `from_nodes`, in place of those that were saved; the others stay. A placement of
            one's own is saved by name only and has to be given here again, as ``placement=``, and
            so has ``expand=`` with a ``count_tokens``.

        Raises
        ------
        ValueError
            If an option is unknown or out of range, or has to be given again.
        IndexFormatError
            If the folder is not an index of this class, has been saved again by what keeps no
            nodes, as LangChain's retriever, or a node's class is not loaded.
        CorruptIndexError
            If a file is missing, truncated or altered.
        EmbeddingMismatchError
            If `embed_model` is not the one the nodes were embedded with.
        """
        index = HybridIndex.load(path, tokenizer=tokenizer, decode_source=decode_node)
        extra = index.extra
        if extra.get("adapter") != _ADAPTER:
            raise IndexFormatError(
                f"{path} was not saved by {_ADAPTER}, and holds no nodes: load it with "
                "shared_core.HybridIndex or LangChain's CAUSRetriever, or build it anew"
            )
        refuse_similarity_top_k(options)
        caus = decode_caus({**extra["caus"], **options})
        complete(index.passages)
        if filters is None and extra["filters"] is not None:
            filters = MetadataFilters.model_validate(extra["filters"])
        retriever = cls(
            index,
            embed_model,
            caus=caus,
            filters=filters,
            callback_manager=callback_manager,
            object_map=object_map,
            verbose=verbose,
        )
        if verify:
            index.verify_embeddings(embed_model.get_text_embedding)
        return retriever

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not len(self.index):
            return []
        return self._search(query_bundle, embed(self.embed_model, query_bundle))

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not len(self.index):
            return []
        vector = await aembed(self.embed_model, query_bundle)
        return await asyncio.to_thread(self._search, query_bundle, vector)

    def _search(self, query: QueryBundle, vector: list[float]) -> list[NodeWithScore]:
        text, reader = plain_text(query), NodeChunks(self.caus.chunk_keys)
        found = self.caus.search(self.index, text, vector, where=self._where, reader=reader)
        return _told(found, query)

    def _search_batch(self, queries: list[QueryBundle]) -> list[list[NodeWithScore]]:
        if not queries or not len(self.index):
            return [[] for _ in queries]
        texts = [plain_text(query) for query in queries]
        vectors = [embed(self.embed_model, query) for query in queries]
        reader = NodeChunks(self.caus.chunk_keys)
        found = self.caus.search_batch(self.index, texts, vectors, where=self._where, reader=reader)
        return list(map(_told, found, queries))


def _told(found: Arrangement, query: QueryBundle) -> list[NodeWithScore]:
    """Return the nodes of a result; each names what was embedded, which BM25 may not have seen."""
    nodes, embedded = arranged(found), embedded_query(query)
    if embedded != found.ranking.query:
        for detail in map(explanation, nodes):
            if "query" in detail:
                detail["query"] = embedded
    return nodes
