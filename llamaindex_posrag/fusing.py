"""An external dense leg: any LlamaIndex retriever, fused with BM25 over its nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import compress
from typing import Any, Self, Unpack, cast

import numpy as np
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, QueryType, TextNode
from llama_index.core.vector_stores.types import MetadataFilters
from llama_index_instrumentation import get_dispatcher

from llamaindex_posrag.caus_options import CAUSOptions, caus_of
from llamaindex_posrag.embedding import as_bundles, plain_text
from llamaindex_posrag.filters import filterable, predicate
from llamaindex_posrag.index_leg import IndexLeg, held_nodes
from llamaindex_posrag.index_objects import ObjectRetriever
from llamaindex_posrag.node_chunks import NodeChunks
from llamaindex_posrag.nodes import arranged, isolated, to_passage
from llamaindex_posrag.statistics import NodeStatistics
from shared_core import CAUS, Passage
from shared_core.checking import SHOWN, check_bool, check_each
from shared_core.foreign_leg import fuse_foreign
from shared_core.index.sparse.bm25 import Variant
from shared_core.neighbour_spans import PassageNeighbours
from shared_core.options import CAUSArguments
from shared_core.overriding import follows
from shared_core.types import Tokenizer
from shared_core.wording import shortened

dispatcher = get_dispatcher(__name__)


class FusingArguments(CAUSArguments, total=False):
    """Keyword arguments of `FusingRetriever.from_index` that have a default."""

    filters: MetadataFilters | None
    variant: Variant
    tokenizer: Tokenizer | None
    callback_manager: CallbackManager | None
    object_map: dict[str, Any] | None
    verbose: bool


class FusingRetriever(CAUSOptions, ObjectRetriever):
    """Fuse the nodes that a dense retriever finds with those of BM25, cut to k, and place.

    A retriever cannot be asked for the score of a given node, so a node that only BM25 found
    gets the lowest score of the dense leg (``missing="floor"``); a `CAUSRetriever` over its own
    index scores it exactly. Nodes are added and deleted where the dense leg keeps them; the nodes
    that BM25 searches are fixed, and neighbours for ``caus.expand`` are among them: build the
    retriever anew after that, or BM25 goes on to find deleted nodes. An `IndexNode`
    leads to its object after the fusion, as in `CAUSRetriever`. Every node comes back as an
    `ExplainedNode`.

    Parameters
    ----------
    dense
        Retriever of the dense leg; it decides how many candidates it returns.
    nodes
        The nodes that BM25 searches; ids are unique and those of the dense leg. A `TextNode`
        that the dense leg has under an id that is none of these, as when documents have been
        split again, is the one here that has its text and metadata.
    higher_is_better
        False if the scores of `dense` are distances, as those of FaissVectorStore with L2.
    caus
        Options of the search and the placement, see `shared_core.CAUS`; ``fetch_k`` is the depth
        of the BM25 leg, and of the dense one under `from_index`.
    filters
        Metadata that a node must have for BM25 to find it; give `dense` the same filters.
    variant, tokenizer
        As in `shared_core.BM25Index`.
    callback_manager
        By default that of `dense`.
    object_map, verbose
        As in LlamaIndex's `BaseRetriever`.
    **options
        Options of `caus`, in place of it.

    Attributes
    ----------
    caus
        As given.
    k, alpha, fetch_k, fusion, placement, psi, evidence, expand, chunk_keys
        Those of `caus`; one that is set, as by ``r.k = 3``, counts from the next query.

    Raises
    ------
    ValueError
        If `dense` is not a retriever, `nodes` is empty or one node instead of several, one is not
        a node, or two share an id; or if `higher_is_better` is not a bool, `caus` is not a
        `CAUS`, an option is out of range, or both `caus` and options are given.
    """

    def __init__(
        self,
        dense: BaseRetriever,
        nodes: Iterable[BaseNode],
        *,
        higher_is_better: bool,
        caus: CAUS | None = None,
        filters: MetadataFilters | None = None,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
        **options: Unpack[CAUSArguments],
    ) -> None:
        if not isinstance(dense, BaseRetriever):
            raise ValueError(
                f"dense must be a retriever, got {shortened(repr(dense), SHOWN)}; from_index "
                "takes a VectorStoreIndex"
            )
        nodes = check_each(nodes, "nodes", BaseNode)
        if not nodes:
            raise ValueError(
                "no nodes for the BM25 leg; a vector store that keeps the text itself leaves "
                "them out of the docstore: give nodes="
            )
        self._dense = dense
        self._higher_is_better = check_bool(higher_is_better, "higher_is_better")
        self._nodes = [isolated(node) for node in nodes]
        self._statistics = NodeStatistics(nodes, variant=variant, tokenizer=tokenizer)
        passes = predicate(filters)
        self._allowed = None
        if passes is not None:
            self._allowed = np.array([passes(filterable(node)) for node in nodes])
        self._neighbours: PassageNeighbours | None = None
        self._reader: NodeChunks | None = None
        self._alike: dict[str, BaseNode] | None = None
        self.caus = caus_of(options, caus)
        # With another manager here, that of the dense leg would keep every event.
        manager = callback_manager or getattr(dense, "callback_manager", None)
        super().__init__(manager, object_map, verbose=verbose)

    @classmethod
    def from_index(
        cls,
        index: VectorStoreIndex,
        nodes: Iterable[BaseNode] | None = None,
        *,
        higher_is_better: bool,
        filters: MetadataFilters | None = None,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
        **options: Unpack[CAUSArguments],
    ) -> Self:
        """Build a retriever whose dense leg is a vector index of LlamaIndex.

        Parameters
        ----------
        index
            Any vector index; its embedding model embeds the query.
        nodes
            The nodes that BM25 searches; by default those of the index, as its docstore has them
            now. Unless the store is LlamaIndex's, these include nodes that ``delete_nodes``
            deleted without ``delete_from_docstore=True``.
        higher_is_better
            False if the store returns distances, as FaissVectorStore with an L2 index does.
        filters, variant, tokenizer, callback_manager, verbose
            As in the constructor; the filters apply to both legs.
        object_map
            Objects of index nodes; by default those of the index.
        **options
            As in `shared_core.CAUS`; both legs are searched to the depth `fetch_k`.

        Raises
        ------
        ValueError
            If an option is out of range, or there are no nodes for BM25: an index over a vector
            store that keeps the text itself leaves them out of its docstore.
        """
        caus = caus_of(options)
        dense = cast(VectorIndexRetriever, index.as_retriever(filters=filters))
        return cls(
            IndexLeg(dense),
            held_nodes(index) if nodes is None else nodes,
            higher_is_better=higher_is_better,
            caus=caus,
            filters=filters,
            variant=variant,
            tokenizer=tokenizer,
            callback_manager=callback_manager,
            object_map=dense.object_map if object_map is None else object_map,
            verbose=verbose,
        )

    @property
    def nodes(self) -> list[BaseNode]:
        """Copies of the nodes that BM25 searches, whatever the filters."""
        return [isolated(node) for node in self._nodes]

    @dispatcher.span
    def retrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """Retrieve for many queries, one after another: the dense leg is asked for each.

        Raises
        ------
        ValueError
            If `queries` is one query instead of several.
        """
        return [self.retrieve(bundle) for bundle in as_bundles(queries)]

    @dispatcher.span
    async def aretrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """Async version of `retrieve_batch`, one query after another as well."""
        return [await self.aretrieve(bundle) for bundle in as_bundles(queries)]

    def _prepare(self, caus: CAUS) -> None:
        if caus.expand is not None:
            reader = NodeChunks(caus.chunk_keys)
            if self._neighbours is None or self._reader != reader:
                self._neighbours = PassageNeighbours.of(self._visible(), reader)
                self._reader = reader
        if isinstance(self._dense, IndexLeg):
            self._dense.search_to(caus.depth())

    def _visible(self) -> Iterable[Passage]:
        """Return the passages of the nodes that pass the filters."""
        nodes = self._nodes if self._allowed is None else compress(self._nodes, self._allowed)
        return map(to_passage, nodes)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._fuse(query_bundle, self._dense.retrieve(_own(query_bundle)))

    @dispatcher.span
    @follows("_retrieve")
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = await self._dense.aretrieve(_own(query_bundle))
        return await asyncio.to_thread(self._fuse, query_bundle, found)

    def _fuse(self, query: QueryBundle, found: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        text, caus = plain_text(query), self.caus
        rows = self._statistics.search(text, caus.depth(), self._allowed)
        hits = ((self._held(hit.node), hit.score) for hit in found)
        arrangement = fuse_foreign(
            caus,
            ((node.node_id, node, score) for node, score in hits),
            ((self._nodes[row].node_id, self._nodes[row]) for row in rows),
            partial(self._statistics.scores, text),
            higher_is_better=self._higher_is_better,
            passage_of=_carried if caus.expand is None else to_passage,
            source=self._neighbours,
            reader=NodeChunks(caus.chunk_keys),
        )
        return arranged(arrangement)

    def _held(self, node: BaseNode) -> BaseNode:
        """Return the node of equal text and metadata that BM25 searches if the id is unknown."""
        if node.node_id in self._statistics or type(node) is not TextNode:
            return node
        if self._alike is None:
            texts = [each for each in self._nodes if type(each) is TextNode]
            self._alike = {each.hash: each for each in reversed(texts)}  # the first one counts
        return self._alike.get(node.hash, node)


def _carried(node: BaseNode) -> Passage:
    """Return a passage that only carries its node, all that is read without neighbours."""
    return Passage(node.node_id, "", source=node)


def _own(query: QueryBundle) -> QueryBundle:
    """Copy a query, without the wrapping of a tool; retrievers write its embedding into it."""
    return QueryBundle(
        query_str=plain_text(query),
        image_path=query.image_path,
        custom_embedding_strs=query.custom_embedding_strs,
        embedding=query.embedding,
    )
