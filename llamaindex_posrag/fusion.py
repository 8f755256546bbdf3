"""Retrievers and indexes of LlamaIndex as the dense leg, fused with BM25 over their nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeAlias, Unpack

from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import BaseNode, QueryBundle
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilters

from llamaindex_posrag.embedding import aembed, embed, plain_text
from llamaindex_posrag.nodes import isolated, passages_of, to_passage
from llamaindex_posrag.retrieval import EngineRetriever, RetrieverArguments, caus_of
from shared_core import CAUS
from shared_core.checking import check_bool, check_each
from shared_core.engines.store import (
    QDRANT_SCORES,
    Call,
    Hits,
    ScoreKind,
    Store,
    StoreEngine,
    known_of,
    qdrant_pages,
)
from shared_core.index import PassageIndex, Variant, Where
from shared_core.index.metadata import predicate
from shared_core.options import CAUSArguments
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

Held: TypeAlias = tuple[list[str], list[Any]]
"""Ids of nodes, and for each an object that is another one if the node is inserted again."""


class FusingArguments(RetrieverArguments, total=False):
    """Keyword arguments of `FusingRetriever` that have a default."""

    higher_is_better: bool | None
    rescore: bool
    variant: Variant
    tokenizer: Tokenizer | None


@dataclass(frozen=True, slots=True)
class _BundleQuery(Query):
    """A query that brings what the dense leg is asked."""

    bundle: QueryBundle | None = None
    filters: MetadataFilters | None = None


class FusingRetriever(EngineRetriever):
    """Fuse the nodes that a dense leg of LlamaIndex finds with those of BM25, cut to k, and place.

    A dense leg cannot be asked for the score of a given node, so a node that only BM25 found gets
    the lowest score of the dense leg, unless `rescore` embeds it; a `CAUSRetriever` over its own
    index scores it exactly.
    `shared_core.engines.store.StoreEngine` says how both legs are matched. An `IndexNode` leads to
    its object after the fusion, as in `CAUSRetriever`. Every node comes back as an `ExplainedNode`.

    Nodes are added and deleted where the dense leg keeps them, as by ``index.refresh_ref_docs``.
    BM25, and neighbours for ``caus.expand``, follow by the next query where the index keeps its
    nodes in a docstore, and `nodes` is left out. Where a vector store keeps the text, BM25 finds
    deleted nodes no longer, but new ones only once the retriever is built anew. Nodes that are
    given are fixed.

    Parameters
    ----------
    dense
        The dense leg: a `VectorStoreIndex`, which is searched to the depth `fetch_k` under the
        filters, or a retriever, which decides how many candidates it returns.
    nodes
        The nodes that BM25 searches; ids are unique and those of the dense leg. Where the dense leg
        has others, as when documents have been split again, nodes whose embedded text (with their
        metadata) is equal are the same. None: those of the index, from its docstore, or from a
        vector store that keeps their text and lists them by ``get_nodes``, as those of Chroma,
        Qdrant and PostgreSQL do.
    higher_is_better
        False if the scores of `dense` are distances, as those of FaissVectorStore with L2. None is
        enough for an index over LlamaIndex's own store, FAISS, Chroma, Milvus, Qdrant or
        PGVectorStore.
    rescore
        Embed, at each query, the nodes of the pool that only BM25 found, and, unless the scores of
        the store are known to be cosines, as those of LlamaIndex's own and of Qdrant by cosine,
        all others. It takes a `VectorStoreIndex`.
    caus
        Options of the search and the placement, see `CAUS`; ``fetch_k`` is the depth
        of the BM25 leg, and of an index.
    filters
        Metadata that a node must have to be found, in either leg.
    variant, tokenizer
        As in `PassageIndex`.
    callback_manager
        By default that of `dense`.
    object_map
        Objects of index nodes; by default those of an index.
    verbose
        As in LlamaIndex's `BaseRetriever`.
    **options
        Options of `caus`, in place of it.

    Attributes
    ----------
    caus
        As given.
    k, alpha, fetch_k, fusion, placement, psi, rule, hit_rates, expand, chunk_keys
        Those of `caus`; one that is set, as by ``r.k = 3``, counts from the next query.

    Raises
    ------
    ValueError
        If `dense` is neither, there are no nodes or they cannot be listed, `nodes` is one node
        instead of several, one is not a node, or two share an id; or if `higher_is_better` is not a
        bool, or None where the direction is not known, `caus` is not a `CAUS`, an option is out of
        range, or both `caus` and options are given.
    """

    def __init__(
        self,
        dense: BaseRetriever | VectorStoreIndex,
        nodes: Iterable[BaseNode] | None = None,
        *,
        higher_is_better: bool | None = None,
        rescore: bool = False,
        caus: CAUS | None = None,
        filters: MetadataFilters | None = None,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
        **options: Unpack[CAUSArguments],
    ) -> None:
        if not isinstance(dense, BaseRetriever | VectorStoreIndex):
            raise ValueError(f"dense must be a retriever or a VectorStoreIndex, got {dense!r:.80}")
        scores = score_kind(dense)
        if higher_is_better is None:
            if scores is None:
                raise ValueError(
                    f"whether the scores of {type(_store_of(dense)).__name__} are similarities or "
                    "distances is not known: give higher_is_better=True or False"
                )
            higher_is_better = scores != "distance"
        self.caus = caus_of(options, caus)
        self._sparse = PassageIndex(variant=variant, tokenizer=tokenizer)
        if check_bool(rescore, "rescore") and not isinstance(dense, VectorStoreIndex):
            raise ValueError("rescore=True takes a VectorStoreIndex, whose model embeds the nodes")
        store = _DenseLeg(dense, self._sparse, nodes)
        store.rescores = rescore
        if not self._sparse.count():
            raise ValueError("no nodes for the BM25 leg: fill the index first, or give nodes=")
        self._engine = StoreEngine(
            store,
            self._sparse,
            higher_is_better=higher_is_better,
            cosines=rescore and scores == "cosine",
            listed=store.gets,
        )
        self.filters = filters
        leg: Any = dense.as_retriever() if isinstance(dense, VectorStoreIndex) else dense
        # With another manager here, that of the dense leg would keep every event.
        manager = callback_manager or getattr(leg, "callback_manager", None)
        objects = leg.object_map if object_map is None and leg is not dense else object_map
        super().__init__(manager, objects, verbose=verbose)

    @classmethod
    def from_index(
        cls,
        index: VectorStoreIndex,
        nodes: Iterable[BaseNode] | None = None,
        **options: Unpack[FusingArguments],
    ) -> Self:
        """Build a retriever over a vector index of LlamaIndex.

        Parameters
        ----------
        index
            Any vector index; its embedding model embeds the query.
        nodes
            The nodes that BM25 searches; by default those of the index, with which it stays in step
            as the class says. In a docstore these include nodes that ``delete_nodes`` deleted
            without ``delete_from_docstore=True``, unless the vector store is LlamaIndex's.
        **options
            As in the constructor, `higher_is_better` among them.

        Raises
        ------
        ValueError
            As the constructor.
        """
        return cls(index, nodes, **options)

    @property
    def nodes(self) -> list[BaseNode]:
        """Copies of the nodes that BM25 searches, whatever the filters."""
        return [isolated(passage.source) for passage in self._sparse.passages]

    def _queries(self, bundles: Sequence[QueryBundle]) -> list[Query]:
        # Copies, without the wrapping of a tool; retrievers write their embedding into these.
        plain = [replace(bundle, query_str=plain_text(bundle)) for bundle in bundles]
        return [_BundleQuery(each.query_str, bundle=each, filters=self.filters) for each in plain]


class _DenseLeg(Store):
    """A vector index, searched under the filters of the query, or a retriever as it is.

    It fills BM25, with the given nodes or those of the index, and keeps it in step with these.
    """

    def __init__(
        self,
        dense: BaseRetriever | VectorStoreIndex,
        sparse: PassageIndex,
        nodes: Iterable[BaseNode] | None,
    ) -> None:
        self.dense, self.sparse = dense, sparse
        self._held: Held | None = None
        """What the index had in its docstore; None: BM25 does not follow."""
        if nodes is None and isinstance(dense, VectorStoreIndex):
            if dense.vector_store.stores_text and not dense._store_nodes_override:
                nodes, self.gets = listed_nodes(dense.vector_store), True
            else:
                self._follow(([], []))
        sparse.add(passages_of(check_each(nodes or (), "nodes", BaseNode)))

    def _follow(self, former: Held) -> None:
        """Read the nodes that the index has taken in, and forget those that it has lost."""
        index: Any = self.dense
        held = held_nodes(index)
        if held == former:
            return
        before = dict(zip(*former, strict=True))
        new = [id_ for id_, mark in zip(*held, strict=True) if before.get(id_) is not mark]
        nodes = index.docstore.get_nodes([*dict.fromkeys(new)], raise_error=False)
        self.sparse.add(passages_of(nodes))
        self.sparse.delete(before.keys() - {*held[0]})
        self._held = held

    async def search(self, call: Call, query: Any, depth: int, where: Where) -> Hits:
        leg: Any = self.dense
        if self._held is not None:
            await call(self._follow, None, self._held)
        if isinstance(leg, VectorStoreIndex):
            where, bundle, model = None, query.bundle, leg._embed_model
            if bundle.embedding is None and not bundle.embedding_strs:  # a blank query
                bundle.embedding = await call(partial(embed, model), partial(aembed, model), bundle)
            leg = leg.as_retriever(similarity_top_k=depth, filters=query.filters)
            # `retrieve` would follow index nodes to their objects, which has time until the end.
            found = await call(leg._retrieve, leg._aretrieve, bundle)
        else:
            found = await call(leg.retrieve, leg.aretrieve, query.bundle)
        passes = predicate(where)
        hits = [(to_passage(hit.node), hit.score) for hit in found]
        return [hit for hit in hits if passes(hit[0].metadata)]

    async def rescore(self, call: Call, query: Any, found: Sequence[Passage]) -> list[float]:
        model = self.dense._embed_model  # type: ignore[union-attr]
        texts = [passage.text for passage in found]
        asked = await call(partial(embed, model), partial(aembed, model), query.bundle)
        batch, abatch = model.get_text_embedding_batch, model.aget_text_embedding_batch
        return query_similarities(asked, await call(batch, abatch, texts), len(found))

    async def get(self, call: Call, ids: Sequence[str]) -> list[Passage]:
        """Return nodes of a vector store that lists them."""
        store: Any = self.dense.vector_store  # type: ignore[union-attr]
        return [*map(to_passage, await call(store.get_nodes, store.aget_nodes, [*ids]))]


def score_kind(dense: object) -> ScoreKind | None:
    """Return what the scores of an index are, or None if that is not known."""
    store = _store_of(dense)
    with suppress(Exception):  # as where there is no collection yet
        if (kind := known_of(SCORES, store)) is not None:
            return kind(store)
    return None


def _store_of(dense: object) -> object:
    return dense.vector_store if isinstance(dense, VectorStoreIndex) else dense


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
