"""The hybrid retriever: nodes in an engine, searched by both legs, fused and placed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, Self, Unpack

from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.settings import Settings
from llama_index.core.vector_stores.types import MetadataFilters
from llama_index_instrumentation import get_dispatcher

from llamaindex_posrag.embedding import (
    aembed,
    aembed_nodes,
    as_bundles,
    embed,
    embed_nodes,
    plain_text,
)
from llamaindex_posrag.filters import where
from llamaindex_posrag.nodes import NodeChunks, nodes_of, passages_of, to_passage
from llamaindex_posrag.options import CallArguments, CAUSOptions, RetrieverArguments, caus_of
from llamaindex_posrag.persistence import connect, decode_node, encode_node, node_of
from llamaindex_posrag.vector_index import BundleQuery, IndexEngine
from shared_core import CAUS, HybridIndex
from shared_core.checking import check_each
from shared_core.engines import Engine
from shared_core.engines.collection import CollectionEngine
from shared_core.engines.store import gathered, is_native
from shared_core.index.dense import Dense, Metric
from shared_core.index.sparse.bm25 import Variant
from shared_core.neighbour_spans.places import SOURCE, WITHOUT_SOURCE
from shared_core.options import CAUS_KEY, CAUSArguments, decode_options, encode_caus
from shared_core.tuning import tune
from shared_core.types import Query, Tokenizer

dispatcher = get_dispatcher(__name__)

_ADAPTER = "llamaindex_posrag"
"""Key of what LlamaIndex alone keeps in `HybridIndex.extra`."""


class CAUSRetriever(CAUSOptions, BaseRetriever):
    """Search densely and by BM25, fuse the scores, and place the best k if the gate opens.

    Every node comes back as a copy with its fused score in [0, 1], higher is better, and the
    explanation of its slot in ``posrag``. Each is an `ExplainedNode`; LlamaIndex's types say
    `NodeWithScore`, so type checkers want an ``isinstance`` before ``posrag`` is read.

    A query may be text or a `QueryBundle`, whose embedding or embedding strings are used. A
    blank query is answered by the dense leg; an empty index answers ``[]``.

    With ``caus.expand`` the k nodes that were found take in their neighbours, and adjacent ones
    become one node: at most k come back, each with the id and metadata of its best node and the
    text of the span. Neighbours pass the filters, too. `llamaindex_posrag.nodes.NodeChunks`
    determines which nodes are neighbours.

    An `IndexNode` leads to its object as in every retriever of LlamaIndex: what comes for it, with
    LlamaIndex's own score, has no explanation unless a retriever of this package found it.

    Once it is built, setting what is no attribute, as an option that is mistyped, is a ValueError;
    subclasses elsewhere may have attributes of their own.

    Parameters
    ----------
    index
        The passages: a `HybridIndex`, as `from_nodes` builds one, or another engine, as
        `from_index` and `from_url` do.
    embed_model
        Model of the vectors in `index`; None where it embeds texts itself, as `from_index` does.
    caus
        Options of the search and the placement; `CAUS` explains them.
    filters
        Metadata that a node must have to be found, in either leg. Whatever the metadata say,
        ``doc_id``, ``ref_doc_id`` and ``document_id`` are the id of the source document, as in
        LlamaIndex's stores, and ``"None"`` for a node without one. Over a database also a mapping,
        as in LangChain, or a condition of the database's own. Over an index in Chroma, Qdrant,
        Milvus or LanceDB also a filter of theirs, such as ``{"$or": [...]}``, ``models.Filter`` or
        a text: then only what they find is returned, as BM25 cannot apply it.
    callback_manager
        By default ``Settings.callback_manager``, or that of the index in `from_index`. The model
        reports to its own.
    object_map, verbose
        As in LlamaIndex's `BaseRetriever`.
    **options
        Options of `caus`, in place of it: ``CAUSRetriever(index, model, k=3)``.

    Attributes
    ----------
    index
        As given.
    embed_model
        As given.
    caus
        As given. A retriever with other options shares the index:
        ``retriever.using(alpha=0.5)``.
    k, alpha, fetch_k, fusion, placement, psi, rule, hit_rates, expand, chunk_keys,
    distinct, per_source, min_similarity, tuning
        As in `CAUS`; one that is set, as by ``r.k = 3``, counts from the next query.

    Raises
    ------
    ValueError
        If `index`, `embed_model`, `caus` or `filters` is of another type, an option is out of
        range, or both `caus` and options are given.

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
        index: Engine,
        embed_model: BaseEmbedding | None = None,
        *,
        caus: CAUS | None = None,
        filters: MetadataFilters | Any | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
        **options: Unpack[CAUSArguments],
    ) -> None:
        if not isinstance(index, Engine):
            raise ValueError(
                f"index must be a HybridIndex or another engine, got {index!r:.80}; from_nodes "
                "makes one of nodes, and from_index takes a VectorStoreIndex"
            )
        if not isinstance(embed_model, NoneType if index.embeds else BaseEmbedding):
            itself = "left out, as the index embeds texts itself"
            wanted = itself if index.embeds else "an embedding model of LlamaIndex"
            raise ValueError(f"embed_model must be {wanted}, got {embed_model!r:.80}")
        self._index = index
        self.embed_model = embed_model
        self.caus = caus_of(options, caus)
        self.filters = filters
        super().__init__(callback_manager or Settings.callback_manager, object_map, verbose=verbose)

    def __setattr__(self, name: str, value: Any) -> None:
        built = "_verbose" in vars(self)  # what LlamaIndex's constructor sets last
        closed = built and type(self).__module__.startswith(f"{__package__}.")
        if closed and not name.startswith("_") and not hasattr(self, name):
            known = ", ".join(each.name for each in fields(CAUS))
            raise ValueError(
                f"{type(self).__name__} has no option {name!r}: it has filters, {known}"
            )
        super().__setattr__(name, value)

    @property
    def index(self) -> Engine:
        """The passages, as they were given; other retrievers may share them."""
        return self._index

    @property
    def filters(self) -> MetadataFilters | None:
        """Metadata that a node must have to be found; those that are set count from now on."""
        return self._filters

    @filters.setter
    def filters(self, filters: MetadataFilters | Any | None) -> None:
        own = isinstance(self.index, CollectionEngine)
        if isinstance(self.index, IndexEngine):
            own = is_native(filters) and self.index.store.own_filter is not None
        self._where = where(filters, own=own)
        self._filters = filters

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
        show_progress: bool = False,
        **options: Unpack[RetrieverArguments],
    ) -> Self:
        """Embed and index nodes; an empty list makes an empty index to add to.

        Parameters
        ----------
        nodes, show_progress
            As in `add_nodes`.
        dense, metric, variant, tokenizer
            As in `HybridIndex`.
        embed_model
            As in the constructor.
        **options
            As in the constructor (`filters`, `callback_manager`, `object_map`, `verbose`) and in
            `CAUS` (`k`, `alpha`, `fetch_k`, `fusion`, `placement`, `psi`, `rule`, `hit_rates`,
            `expand`, `chunk_keys`, `distinct`, `per_source`, `min_similarity` and `tuning`).

        Raises
        ------
        ValueError
            If an option is out of range, and wherever `add_nodes` does.
        """
        index = HybridIndex(metric=metric, dense=dense, variant=variant, tokenizer=tokenizer)
        retriever = cls(index, embed_model, **options)
        retriever.add_nodes(nodes, show_progress=show_progress)
        return retriever

    @classmethod
    def from_index(
        cls,
        index: VectorStoreIndex,
        nodes: Iterable[BaseNode] | None = None,
        *,
        higher_is_better: bool | None = None,
        rescore: bool = False,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
        id_key: str | None = None,
        **options: Unpack[RetrieverArguments],
    ) -> Self:
        """Search a vector index of LlamaIndex, which is the dense leg, with BM25 over its nodes.

        Nodes stay in their index, so there is nothing to save here. `add_nodes`, `delete_nodes` and
        `delete` write to the index and to BM25; `IndexEngine` says when BM25 follows what is
        written to the index itself.

        Parameters
        ----------
        index, nodes, higher_is_better, rescore, variant, tokenizer, id_key
            As in `llamaindex_posrag.vector_index.IndexEngine`.
        **options
            As in `from_nodes`.

        Raises
        ------
        ValueError
            As `IndexEngine`, and if an option is out of range.
        """
        engine = IndexEngine(
            index,
            nodes,
            higher_is_better=higher_is_better,
            rescore=rescore,
            variant=variant,
            tokenizer=tokenizer,
            id_key=id_key,
        )
        # With another manager here, that of the index would keep every event.
        options.setdefault("callback_manager", index._callback_manager)
        options.setdefault("object_map", index._object_map)
        return cls(engine, **options)

    @classmethod
    def from_url(
        cls,
        url: str,
        embed_model: BaseEmbedding,
        *,
        collection: str = "posrag",
        api_key: str | None = None,
        timeout: float = 10.0,
        **options: Unpack[RetrieverArguments],
    ) -> Self:
        """Search a collection in a database, which holds and scores both legs itself.

        Parameters
        ----------
        url
            Its address, as `shared_core.connect` takes it: ``postgresql://``, ``qdrant://``,
            ``lancedb://`` or ``milvus://``.
        embed_model
            Embeds nodes and queries.
        collection
            Made when nodes are first added.
        api_key
            Of Qdrant or Milvus; it may also stand in the address, ``qdrant://:key@host``.
        timeout
            Seconds after which a request is given up.
        **options
            As in `from_nodes`. Others of the connection: `from_engine`.

        Raises
        ------
        ValueError
            If no engine has such an address, or an option is out of range.
        EngineError
            If the database does not answer.
        """
        key = {} if api_key is None else {"api_key": api_key}
        engine = connect(url, collection, timeout=timeout, **key)
        return cls.from_engine(engine, embed_model, **options)

    @classmethod
    def from_engine(
        cls, engine: Engine, embed_model: BaseEmbedding, **options: Unpack[RetrieverArguments]
    ) -> Self:
        """Search an engine: what `connect` returns, with options of the connection, or your own.

        `llamaindex_posrag.connect` has it keep nodes as they are. One that does not, or a passage
        that was added without LlamaIndex, gives a `TextNode` of its text, id and metadata, which
        are no part of the text that is embedded.

        Raises
        ------
        ValueError
            If an option is out of range, or the engine embeds texts itself.
        """
        return cls(engine, embed_model, **options)

    def add_nodes(self, nodes: Iterable[BaseNode], *, show_progress: bool = False) -> list[str]:
        """Add nodes, or replace those whose id is there, and return their ids.

        A node that has an embedding keeps it. The others are embedded before anything is added, so
        a model that raises leaves the index as it was.

        Raises
        ------
        ValueError
            If one is not a node, `nodes` is one node instead of several, two share an id, metadata
            cannot be copied, or an embedding is NaN, infinite or of another dimension.
        """
        nodes = check_each(nodes, "nodes", BaseNode)
        passages = passages_of(nodes)
        if self.embed_model is None:
            return self.index.add(passages)
        vectors = embed_nodes(self.embed_model, nodes, show_progress=show_progress)
        return self.index.add(passages, vectors)

    async def aadd_nodes(
        self, nodes: Iterable[BaseNode], *, show_progress: bool = False
    ) -> list[str]:
        """Async version of `add_nodes`; the embedding and the engine are awaited.

        If it is cancelled, either all nodes are added or none.
        """
        nodes = check_each(nodes, "nodes", BaseNode)
        passages = await asyncio.to_thread(passages_of, nodes)
        if self.embed_model is None:
            return await self.index.aadd(passages)
        vectors = await aembed_nodes(self.embed_model, nodes, show_progress=show_progress)
        return await self.index.aadd(passages, vectors)

    def delete_nodes(self, node_ids: Iterable[str]) -> list[str]:
        """Delete nodes and return the ids that were there; others are ignored.

        Raises
        ------
        ValueError
            If `node_ids` is one text instead of several.
        """
        return self.index.delete(node_ids)

    async def adelete_nodes(self, node_ids: Iterable[str]) -> list[str]:
        """Async version of `delete_nodes`."""
        return await self.index.adelete(node_ids)

    def delete(self, ref_doc_id: str) -> list[str]:
        """Delete every node of a source document, and return the ids of those that were known.

        Raises
        ------
        ValueError
            If it is not the id of one document; None, also as a text, would match every node
            without a source.
        """
        if not isinstance(ref_doc_id, str) or ref_doc_id == WITHOUT_SOURCE:
            raise ValueError(
                f"ref_doc_id must be the id of one source document, got {ref_doc_id!r}; "
                "delete_nodes deletes nodes by id"
            )
        passages, _ = self.index.documents(SOURCE, [ref_doc_id])
        gone = self.delete_nodes([passage.id for passage in passages])
        if isinstance(self.index, IndexEngine):
            gone += self.index.store.delete_unseen(ref_doc_id)
        return gone

    async def adelete(self, ref_doc_id: str) -> list[str]:
        """Async version of `delete`, in a thread."""
        return await asyncio.to_thread(self.delete, ref_doc_id)

    def save(self, path: str | Path) -> None:
        """Write nodes, vectors and options to a folder, at once or not at all; no pickle.

        LangChain's `CAUSRetriever` reads it, too, with the options but `filters`.

        Raises
        ------
        ValueError
            If the nodes are in a database, or a node's metadata would not come back from JSON as
            it is.
        """
        if not isinstance(self.index, HybridIndex):
            raise ValueError(
                f"{type(self.index).__name__} keeps its own nodes: open it anew by from_url "
                "or from_index"
            )
        filters = None if self.filters is None else self.filters.model_dump(mode="json")
        extra = {CAUS_KEY: encode_caus(self.caus), _ADAPTER: {"filters": filters}}
        self.index.save(path, encode_source=encode_node, extra=extra)

    @classmethod
    def load(
        cls,
        path: str | Path,
        embed_model: BaseEmbedding,
        *,
        tokenizer: Tokenizer | None = None,
        **options: Unpack[RetrieverArguments],
    ) -> Self:
        """Read a folder that `save` wrote, here or in LangChain, or `HybridIndex.save`.

        Nodes come back as the classes they were. A passage that was saved without its node becomes
        a `TextNode`, whose metadata are no part of the text that is embedded.

        Parameters
        ----------
        path
            The folder.
        embed_model
            Model the nodes were embedded with. One stored node is embedded again and compared,
            which catches another model of equal dimension.
        tokenizer
            The one the index was built with, if it was not the default.
        **options
            As in `from_nodes`, in place of those that were saved; the others stay. A custom
            placement is saved by name only and has to be given again, as ``placement=``, and so
            has ``expand=`` with a ``count_tokens``.

        Raises
        ------
        ValueError
            If an option is out of range, or has to be given again.
        TypeError
            If an option is unknown.
        IndexFormatError
            If the folder is not an index, or a node's class is not loaded.
        CorruptIndexError
            If a file is missing, truncated or altered.
        EmbeddingMismatchError
            If `embed_model` is not the one the nodes were embedded with.
        """
        index = HybridIndex.load(path, tokenizer=tokenizer, decode_source=decode_node)
        saved: dict[str, Any] = {**index.extra.get(CAUS_KEY, {})}
        filters = index.extra.get(_ADAPTER, {}).get("filters")
        if filters is not None:
            saved["filters"] = MetadataFilters.model_validate(filters)
        retriever = cls(index, embed_model, **decode_options({**saved, **options}))
        index.verify_embeddings(embed_model.get_text_embedding)
        if any(passage.source is None for passage in index.passages):
            passages, vectors = index.embedded()
            index.add([to_passage(node_of(passage)) for passage in passages], vectors)
        return retriever

    def using(self, **options: Unpack[CallArguments]) -> Self:
        """Return a retriever over the same nodes with other options, for one query, say.

        It takes microseconds: ``retriever.using(k=3, filters=...).retrieve(query)``.

        Parameters
        ----------
        **options
            As in `CAUS`, and `filters`; what is not given stays. ``filters=None`` searches without.

        Raises
        ------
        ValueError
            If a value is out of range.
        TypeError
            If an option is unknown.
        """
        other, changed = copy(self), dict[str, Any](options)
        other.filters = changed.pop("filters", self.filters)
        other.caus = replace(self.caus, **changed)
        return other

    def tune(self, questions: Sequence[QueryType], relevant: Sequence[Collection[str]]) -> Self:
        """Return a retriever over the same nodes, whose options labelled questions have chosen.

        ``tuned.tuning`` says what that gains, and how sure it is.

        Parameters
        ----------
        questions
            At least 5.
        relevant
            The ids of the nodes that answer each.

        Raises
        ------
        ValueError
            As `shared_core.tuning.tune`.
        """
        queries = self._queries(as_bundles(questions))
        other, reader = copy(self), NodeChunks(self.caus.chunk_keys)
        other.caus = tune(
            self.caus, self.index, queries, relevant, where=self._where, reader=reader
        )
        return other

    @dispatcher.span
    def retrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """Retrieve for many queries at once; the results are those of `retrieve`.

        To a trace they are one span, without the events of single queries.

        Raises
        ------
        ValueError
            If `queries` is one query instead of several.
        """
        bundles = as_bundles(queries)
        with self.callback_manager.as_trace("query"):
            found = self._search(bundles)
            return [*map(self._handle_recursive_retrieval, bundles, found)]

    @dispatcher.span
    async def aretrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """Async version of `retrieve_batch`; the queries are embedded concurrently.

        At most as many at a time as the embedding model's ``num_workers``, if that is set.
        """
        bundles = as_bundles(queries)
        with self.callback_manager.as_trace("query"):
            found = zip(bundles, await self._asearch(bundles), strict=True)
            return [await self._ahandle_recursive_retrieval(*each) for each in found]

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._search(as_bundles([query_bundle]))[0]

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return (await self._asearch(as_bundles([query_bundle])))[0]

    def _search(self, bundles: Sequence[QueryBundle]) -> list[list[NodeWithScore]]:
        caus, queries = self.caus, self._queries(bundles)
        reader = NodeChunks(caus.chunk_keys)
        found = caus.search(self.index, queries, where=self._where, reader=reader)
        return list(map(nodes_of, found, bundles))

    async def _asearch(self, bundles: Sequence[QueryBundle]) -> list[list[NodeWithScore]]:
        caus, queries = self.caus, await self._aqueries(bundles)
        reader = NodeChunks(caus.chunk_keys)
        found = await caus.asearch(self.index, queries, where=self._where, reader=reader)
        return list(map(nodes_of, found, bundles))

    def _queries(self, bundles: Sequence[QueryBundle]) -> list[Query]:
        """Return what the engine is asked."""
        texts, model = [*map(plain_text, bundles)], self.embed_model
        if model is not None:
            return [*map(Query, texts, (embed(model, bundle) for bundle in bundles))]
        # Copies, without the wrapping of a tool; LlamaIndex writes the embedding into these.
        asked = [replace(each, query_str=text) for each, text in zip(bundles, texts, strict=True)]
        return [BundleQuery(each.query_str, bundle=each, filters=self.filters) for each in asked]

    async def _aqueries(self, bundles: Sequence[QueryBundle]) -> list[Query]:
        if self.embed_model is None:
            return self._queries(bundles)
        model = self.embed_model
        vectors = await gathered(partial(aembed, model), bundles, model.num_workers)
        return [*map(Query, map(plain_text, bundles), vectors)]
