"""The hybrid retriever: an index of nodes, searched by both legs, fused and placed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation.events.retrieval import (
    RetrievalEndEvent,
    RetrievalStartEvent,
)
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.vector_stores.types import MetadataFilters
from llama_index_instrumentation import get_dispatcher

from llamaindex_posrag.embedding import aembed, as_bundle, embed, embed_nodes, plain_text
from llamaindex_posrag.filters import where
from llamaindex_posrag.fusing import FusingRetriever
from llamaindex_posrag.node_chunks import NodeChunks
from llamaindex_posrag.nodes import arranged, to_passage
from llamaindex_posrag.persistence import decode_node, encode_node
from shared_core import CAUS, HybridIndex, Placement
from shared_core.errors import IndexFormatError
from shared_core.expansion import NeighbourSpans
from shared_core.index import ChunkKeys
from shared_core.index.bm25 import Variant
from shared_core.index.dense import Dense, Metric
from shared_core.index.tokenize import Tokenizer
from shared_core.options import decode_caus, encode_caus
from shared_core.scoring.fusion import Alpha
from shared_core.sensitivity import Psi
from shared_core.types import Evidence, Fusion

dispatcher = get_dispatcher(__name__)

_ADAPTER = "llamaindex_posrag"


class CAUSRetriever(BaseRetriever):
    """Dense and BM25 search side by side, fused, cut to k, and placed if the gate opens.

    Every node comes back as a copy with its fused score in [0, 1], higher is better, and all
    that led to its slot in ``posrag`` (`llamaindex_posrag.nodes.ExplainedNode`).

    A query may be text or a `QueryBundle`, whose own embedding or embedding strings are used. A
    blank query is answered by the dense leg; an empty index answers ``[]``.

    With ``caus.expand`` the k nodes that were found take in their neighbours, and what follows
    each other becomes one node: at most k come back, each with the id and metadata of its best
    node and the text of the span. Neighbours pass the filters too. Who stands next to whom is
    told as `llamaindex_posrag.node_chunks.NodeChunks` says.

    Parameters
    ----------
    index
        Passages made by `add_nodes`; `from_nodes` builds one.
    embed_model
        Model of the vectors in `index`.
    caus
        Options of the search and the placement.
    filters
        Metadata a node must have to be found, in either leg.
    callback_manager, object_map, verbose
        As in LlamaIndex's `BaseRetriever`.

    Attributes
    ----------
    index, embed_model, caus
        As given. A retriever with other options shares the index:
        ``CAUSRetriever(r.index, r.embed_model, caus=replace(r.caus, alpha=0.5))``.
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
        self.index = index
        self.embed_model = embed_model
        self.caus = caus or CAUS()
        self._filters = filters
        self._where = where(filters)
        super().__init__(callback_manager, object_map, verbose=verbose)

    @property
    def filters(self) -> MetadataFilters | None:
        """Metadata a node must have to be found."""
        return self._filters

    @classmethod
    def from_nodes(
        cls,
        nodes: Sequence[BaseNode],
        embed_model: BaseEmbedding,
        *,
        k: int = 10,
        alpha: Alpha = 0.3,
        fetch_k: int = 50,
        placement: str | Placement = "u_shape",
        psi: Psi = None,
        evidence: Evidence = "point",
        fusion: Fusion = "min_max",
        expand: NeighbourSpans | None = None,
        chunk_keys: ChunkKeys | None = None,
        dense: Dense = "flat",
        metric: Metric = "cosine",
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
        filters: MetadataFilters | None = None,
        show_progress: bool = False,
    ) -> CAUSRetriever:
        """Embed and index nodes; an empty list makes an empty index to add to.

        Parameters
        ----------
        nodes, show_progress
            As in `add_nodes`.
        k, alpha, fetch_k, placement, psi, evidence, fusion, expand, chunk_keys
            As in `shared_core.CAUS`.
        dense, metric, variant, tokenizer
            As in `shared_core.HybridIndex`.
        embed_model, filters
            As in the constructor.

        Raises
        ------
        ValueError
            If an option is out of range, and wherever `add_nodes` does.
        """
        caus = CAUS(
            k=k,
            alpha=alpha,
            fetch_k=fetch_k,
            fusion=fusion,
            placement=placement,
            psi=psi,
            evidence=evidence,
            expand=expand,
            chunk_keys=chunk_keys or ChunkKeys(),
        )
        index = HybridIndex(metric=metric, dense=dense, variant=variant, tokenizer=tokenizer)
        retriever = cls(index, embed_model, caus=caus, filters=filters)
        retriever.add_nodes(nodes, show_progress=show_progress)
        return retriever

    # Its dense leg is not an index of ours, so it is another class.
    from_index = FusingRetriever.from_index

    def add_nodes(self, nodes: Sequence[BaseNode], *, show_progress: bool = False) -> list[str]:
        """Add nodes, or replace those whose id is there, and return their ids.

        A node that has an embedding keeps it. The others are embedded first, so that a model
        that raises leaves the index as it was.

        Raises
        ------
        ValueError
            If two nodes share an id, or an embedding is NaN, infinite or of another dimension.
        """
        vectors = embed_nodes(self.embed_model, nodes, show_progress=show_progress)
        return self.index.add([to_passage(node) for node in nodes], vectors) if nodes else []

    def delete_nodes(self, node_ids: Iterable[str]) -> list[str]:
        """Delete nodes and return the ids that were there; others are ignored."""
        return self.index.delete(node_ids)

    def delete(self, ref_doc_id: str) -> list[str]:
        """Delete every node of a source document and return their ids."""
        sources = (passage.source for passage in self.index.passages)
        return self.delete_nodes(
            [node.node_id for node in sources if node.ref_doc_id == ref_doc_id]
        )

    @dispatcher.span
    def retrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """Retrieve for many queries with one matrix product; the results are those of `retrieve`.

        Each query is announced as one retrieval, like those of `retrieve`.
        """
        bundles = [as_bundle(query) for query in queries]
        for bundle in bundles:
            dispatcher.event(RetrievalStartEvent(str_or_query_bundle=bundle))
        results = [
            self._handle_recursive_retrieval(bundle, nodes)
            for bundle, nodes in zip(bundles, self._search_batch(bundles), strict=True)
        ]
        for bundle, nodes in zip(bundles, results, strict=True):
            dispatcher.event(RetrievalEndEvent(str_or_query_bundle=bundle, nodes=nodes))
        return results

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
        caus: CAUS | None = None,
        filters: MetadataFilters | None = None,
        tokenizer: Tokenizer | None = None,
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
        caus, filters
            In place of those that were saved. A placement of one's own is saved by name only
            and has to be given here again, and so has `expand` with a ``count_tokens``.
        tokenizer
            The one the index was built with, if it was not the default.

        Raises
        ------
        IndexFormatError
            If the folder is not an index of this class, or a node's class is not loaded.
        CorruptIndexError
            If a file is missing, truncated or altered.
        EmbeddingMismatchError
            If `embed_model` is not the one the nodes were embedded with.
        """
        index = HybridIndex.load(path, tokenizer=tokenizer, decode_source=decode_node)
        extra = index.extra
        if extra.get("adapter") != _ADAPTER:
            raise IndexFormatError(f"{path} was not saved by {_ADAPTER}")
        if verify:
            index.verify_embeddings(embed_model.get_text_embedding)
        if filters is None and extra["filters"] is not None:
            filters = MetadataFilters.model_validate(extra["filters"])
        return cls(index, embed_model, caus=caus or decode_caus(extra["caus"]), filters=filters)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not len(self.index):
            return []
        return self._search(query_bundle, embed(self.embed_model, query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not len(self.index):
            return []
        vector = await aembed(self.embed_model, query_bundle)
        return await asyncio.to_thread(self._search, query_bundle, vector)

    def _search(self, query: QueryBundle, vector: list[float]) -> list[NodeWithScore]:
        text, reader = plain_text(query), NodeChunks(self.caus.chunk_keys)
        found = self.caus.search(self.index, text, vector, where=self._where, reader=reader)
        return arranged(found)

    def _search_batch(self, queries: list[QueryBundle]) -> list[list[NodeWithScore]]:
        if not queries or not len(self.index):
            return [[] for _ in queries]
        texts = [plain_text(query) for query in queries]
        vectors = [embed(self.embed_model, query) for query in queries]
        reader = NodeChunks(self.caus.chunk_keys)
        found = self.caus.search_batch(self.index, texts, vectors, where=self._where, reader=reader)
        return [arranged(arrangement) for arrangement in found]
