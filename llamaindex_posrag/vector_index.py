"""A vector index of LlamaIndex as the dense leg of an engine, with BM25 over its nodes."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from llama_index.core import VectorStoreIndex
from llama_index.core.schema import BaseNode, QueryBundle
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilters

from llamaindex_posrag.embedding import aembed, embed
from llamaindex_posrag.nodes import isolated, passages_of, to_passage
from shared_core.checking import check_bool, check_each
from shared_core.engines.store import (
    QDRANT_SCORES,
    Call,
    Hits,
    ScoreKind,
    Store,
    StoreEngine,
    finished,
    here,
    is_native,
    known_of,
    qdrant_pages,
)
from shared_core.index import PassageIndex, Variant, Where
from shared_core.types import Passage, Query, Tokenizer
from shared_core.vectors import query_similarities

SCORES: dict[str, Callable[[Any], ScoreKind]] = {
    "llama_index.core.vector_stores.simple.SimpleVectorStore": lambda store: "cosine",
    "llama_index.vector_stores.chroma.base.ChromaVectorStore": lambda store: "similarity",
    "llama_index.vector_stores.faiss.base.FaissVectorStore": (
        # 0 is faiss.METRIC_INNER_PRODUCT
        lambda store: "distance" if store.client.metric_type else "similarity"
    ),
    "llama_index.vector_stores.milvus.base.MilvusVectorStore": (
        lambda store: "distance" if store.similarity_metric == "L2" else "similarity"
    ),
    "llama_index.vector_stores.postgres.base.PGVectorStore": lambda store: "similarity",
    "llama_index.vector_stores.qdrant.base.QdrantVectorStore": (
        lambda store: QDRANT_SCORES.get(qdrant_distance(store), "distance")
    ),
}
"""What the scores are, by qualified class name; from the sources of the stores."""

OWN_FILTERS = {
    "llama_index.vector_stores.chroma.base.ChromaVectorStore": "where",
    "llama_index.vector_stores.lancedb.base.LanceDBVectorStore": "where",
    "llama_index.vector_stores.milvus.base.MilvusVectorStore": "string_expr",
    "llama_index.vector_stores.qdrant.base.QdrantVectorStore": "qdrant_filters",
}
"""In which of ``vector_store_kwargs`` a store takes a filter of its own, by class name."""

Held: TypeAlias = tuple[list[str], list[Any]]
"""Ids of nodes, and for each an object that is another one if the node is inserted again."""


@dataclass(frozen=True, slots=True)
class BundleQuery(Query):
    """A query with the bundle, and the filters, by which a vector index is asked."""

    bundle: QueryBundle | None = None
    filters: MetadataFilters | Any | None = None


class VectorIndexStore(Store):
    """A vector index, searched under the filters of the query.

    It fills BM25, with the given nodes or those of the index, and keeps it in step with these.
    """

    replaces = False  # some raise, others keep both

    def __init__(
        self,
        index: VectorStoreIndex,
        sparse: PassageIndex,
        nodes: Iterable[BaseNode] | None,
        *,
        rescores: bool,
    ) -> None:
        self.index, self.sparse, self.rescores = index, sparse, rescores
        self.name = type(index.vector_store).__name__
        self.own_filter = known_of(OWN_FILTERS, index.vector_store)
        self._following = threading.Lock()
        self._held: Held | None = None
        """What the index had in its docstore; None: BM25 does not follow."""
        if nodes is None:
            if index.vector_store.stores_text and not index._store_nodes_override:
                nodes, self.gets = listed_nodes(index.vector_store), True
            else:
                self._held = [], []
                self._follow()
        sparse.add(passages_of(check_each(nodes or (), "nodes", BaseNode)))

    async def follow(self, call: Call) -> None:
        """Bring BM25 up to date where it follows the docstore of the index."""
        if self._held is not None:
            await call(self._follow, None)

    def _follow(self) -> None:
        """Read the nodes that the index has taken in, and forget those that it has lost."""
        with self._following:  # what one query has added, a later one forgets
            former, held = self._held or ([], []), held_nodes(self.index)
            if held[0] == former[0] and all(map(operator.is_, held[1], former[1])):
                return
            before = dict(zip(*former, strict=True))
            new = [id_ for id_, mark in zip(*held, strict=True) if before.get(id_) is not mark]
            nodes = self.index.docstore.get_nodes([*dict.fromkeys(new)], raise_error=False)
            self.sparse.add(passages_of(nodes))
            self.sparse.delete(before.keys() - {*held[0]})
            self._held = held

    async def search(self, call: Call, query: Any, depth: int, where: Where) -> Hits:
        """Search as LlamaIndex's own retriever of the index does."""
        await self.follow(call)
        bundle, model = query.bundle, self.index._embed_model
        if bundle.embedding is None and not bundle.embedding_strs:  # a blank query
            bundle.embedding = await call(partial(embed, model), partial(aembed, model), bundle)
        given: dict[str, Any] = {"filters": query.filters}
        if is_native(where):
            given = {"vector_store_kwargs": {self.own_filter: where}}
        leg: Any = self.index.as_retriever(similarity_top_k=depth, **given)
        # `retrieve` would follow index nodes to their objects, which has time until the end.
        found = await call(leg._retrieve, leg._aretrieve, bundle)
        return [(to_passage(hit.node), hit.score) for hit in found]

    async def rescore(self, call: Call, query: Any, found: Sequence[Passage]) -> list[float]:
        """Embed the query and passages."""
        model = self.index._embed_model
        texts = [passage.text for passage in found]
        asked = await call(partial(embed, model), partial(aembed, model), query.bundle)
        batch, abatch = model.get_text_embedding_batch, model.aget_text_embedding_batch
        return query_similarities(asked, await call(batch, abatch, texts), len(found))

    async def get(self, call: Call, ids: Sequence[str]) -> list[Passage]:
        """Return nodes of a vector store that lists them."""
        store: Any = self.index.vector_store
        return [*map(to_passage, await call(store.get_nodes, store.aget_nodes, [*ids]))]

    async def add(self, call: Call, passages: Sequence[Passage]) -> list[str]:
        """Insert the nodes of passages into the index, which embeds them."""
        nodes = [isolated(passage.source) for passage in passages]
        await call(self.index.insert_nodes, self.index.ainsert_nodes, nodes)
        return [node.node_id for node in nodes]

    async def delete(self, call: Call, ids: Sequence[str]) -> None:
        """Delete nodes from the index, and from its docstore."""
        plain, awaited = self.index.delete_nodes, self.index.adelete_nodes
        await call(plain, awaited, [*ids], delete_from_docstore=True)

    def delete_unseen(self, ref_doc_id: str) -> list[str]:
        """Delete the nodes of a document that BM25 has not, and return the ids that are known."""
        index = self.index
        known = index.docstore.get_ref_doc_info(ref_doc_id)
        ids, there = known.node_ids if known else [], index.index_struct.nodes_dict
        if gone := [id_ for id_ in ids if id_ in there]:  # no store is asked to delete nothing
            index.delete_nodes(gone, delete_from_docstore=True)
        if index.vector_store.stores_text:
            index.vector_store.delete(ref_doc_id)
        return gone


class IndexEngine(StoreEngine):
    """A vector index of LlamaIndex, and BM25 over its nodes; see `StoreEngine`.

    A vector store cannot be asked for the score of a given node, so a node that only BM25 found
    gets the lowest score of the store, unless `rescore` embeds it.

    What is written here is written to the index and to BM25; a node whose id is there has to be
    deleted first. What is written to the index itself, as by ``index.refresh_ref_docs``, BM25, and
    neighbours for ``expand``, follow by the next query where the index keeps its nodes in a
    docstore, and `nodes` is left out. Where a vector store keeps the text, BM25 then finds deleted
    nodes no longer, but new ones only once the engine is built anew, until when deleted ones are
    still neighbours. Nodes that are given do not follow the index.

    Parameters
    ----------
    index
        The dense leg; its embedding model embeds the query.
    nodes
        The nodes that BM25 searches; ids are unique and those of the index. Where the index has
        others, as when documents have been split again, nodes whose embedded text (with their
        metadata) is equal are the same, or whose metadata under `id_key` are. None: those of the
        index, from its docstore, or from a vector store that keeps their text and lists them by
        ``get_nodes``, as those of Chroma, Qdrant and PostgreSQL do. In a docstore these include
        nodes that ``delete_nodes`` deleted without ``delete_from_docstore=True``, unless the vector
        store is LlamaIndex's.
    higher_is_better
        False if the scores of the store are distances, as those of FaissVectorStore with L2. None
        is enough for LlamaIndex's own store, FAISS, Chroma, Milvus, Qdrant and PGVectorStore.
    rescore
        Embed, at each query, the nodes of the pool that only BM25 found, and, unless the scores of
        the store are known to be cosines, as those of LlamaIndex's own and of Qdrant by cosine,
        all others.
    variant, tokenizer
        As in `PassageIndex`.
    id_key
        Key of the metadata by which `nodes` and those of the index are the same. None: by their
        ids, or else by their text.

    Raises
    ------
    ValueError
        If no node has `id_key`, `index` is no VectorStoreIndex, there are no nodes or they cannot
        be listed, `nodes` is one node instead of several, one is not a node, or two share an id; or
        if `higher_is_better` is not a bool, or None where the direction is not known.
    """

    store: VectorIndexStore

    def __init__(
        self,
        index: VectorStoreIndex,
        nodes: Iterable[BaseNode] | None = None,
        *,
        higher_is_better: bool | None = None,
        rescore: bool = False,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
        id_key: str | None = None,
    ) -> None:
        if not isinstance(index, VectorStoreIndex):
            raise ValueError(f"index must be a VectorStoreIndex, got {index!r:.80}")
        scores = score_kind(index.vector_store)
        sparse = PassageIndex(variant=variant, tokenizer=tokenizer)
        store = VectorIndexStore(index, sparse, nodes, rescores=check_bool(rescore, "rescore"))
        if higher_is_better is None and scores is None:
            raise ValueError(
                f"whether the scores of {store.name} are similarities or distances is not known: "
                "give higher_is_better=True or False"
            )
        if not sparse.count():
            raise ValueError("no nodes for the BM25 leg: fill the index first, or give nodes=")
        super().__init__(
            store,
            sparse,
            higher_is_better=scores != "distance" if higher_is_better is None else higher_is_better,
            cosines=rescore and scores == "cosine",
            listed=store.gets,
            id_key=id_key,
        )

    async def _stored(self, call: Call, ids: Sequence[str]) -> Sequence[Passage]:
        await self.store.follow(call)
        return await super()._stored(call, ids)

    def documents(
        self, key: str, names: Sequence[Any], *, where: Any = None
    ) -> tuple[list[Passage], None]:
        """Return the nodes whose metadata have one of `names` under `key`, as passages."""
        finished(self.store.follow(here))
        return super().documents(key, names, where=where)

    @property
    def nodes(self) -> list[BaseNode]:
        """Copies of the nodes that BM25 searches, whatever the filters."""
        return [isolated(passage.source) for passage in self.sparse.passages]


def score_kind(store: object) -> ScoreKind | None:
    """Return what the scores of a vector store are, or None if that is not known."""
    with suppress(Exception):  # as where there is no collection yet
        if (kind := known_of(SCORES, store)) is not None:
            return kind(store)
    return None


def qdrant_distance(store: Any) -> str:
    """Return by what a collection compares the dense vectors; the scores are what it says."""
    vectors: Any = store.client.get_collection(store.collection_name).config.params.vectors
    one = vectors[store.dense_vector_name] if isinstance(vectors, dict) else vectors
    return str(one.distance.value)


def held_nodes(index: VectorStoreIndex) -> Held:
    """Return the ids of the nodes of an index that keeps them in its docstore, and their marks.

    The docstore may hold others: of deleted documents, of other indices, parents of its nodes.
    """
    store, rows = index.vector_store, index.index_struct.nodes_dict
    if isinstance(store, SimpleVectorStore):  # which forgets at once what `delete_nodes` deletes
        vectors = store.data.embedding_dict
        rows = {row: id_ for row, id_ in [*rows.items()] if row in vectors}
        return [*rows.values()], [*map(vectors.get, rows)]
    return [*rows.values()], [*rows]


def listed_nodes(store: Any) -> list[BaseNode]:
    """Return the nodes of a vector store that keeps their text.

    Raises
    ------
    ValueError
        If it cannot list them.
    """
    try:
        listed = known_of(LISTED, store)
        return listed(store) if listed else store.get_nodes(None, MetadataFilters(filters=[]))
    except Exception as error:
        raise ValueError(
            f"{type(store).__name__} does not list its nodes for the BM25 leg: give nodes="
        ) from error


def qdrant_nodes(store: Any) -> list[BaseNode]:
    """Return the nodes of a collection, page by page: ``get_nodes`` stops after 9,999."""
    nodes: list[BaseNode] = []
    for points in qdrant_pages(store.client.scroll, store.collection_name, with_payload=False):
        nodes += store.get_nodes([point.id for point in points])
    return nodes


LISTED: dict[str, Callable[[Any], list[BaseNode]]] = {
    "llama_index.vector_stores.qdrant.base.QdrantVectorStore": qdrant_nodes,
}
"""How vector stores list their nodes if not by ``get_nodes``, by qualified class name."""
