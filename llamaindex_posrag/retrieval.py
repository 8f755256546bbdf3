"""The one way of a query in both retrievers: embed, search an engine, place, return nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self, Unpack

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation.events.retrieval import RetrievalStartEvent
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.utils import print_text
from llama_index.core.vector_stores.types import MetadataFilters
from llama_index_instrumentation import get_dispatcher

from llamaindex_posrag.embedding import as_bundles
from llamaindex_posrag.events import dispatch, retrieving
from llamaindex_posrag.filters import where
from llamaindex_posrag.node_chunks import NodeChunks
from llamaindex_posrag.nodes import ExplainedNode, explanation, isolated, nodes_of
from llamaindex_posrag.options import CAUSOptions, refuse_similarity_top_k
from shared_core.engines import Engine
from shared_core.options import CAUSArguments
from shared_core.types import Query

dispatcher = get_dispatcher(__name__)


class CallArguments(CAUSArguments, total=False):
    """Keyword arguments of `EngineRetriever.using`."""

    filters: MetadataFilters | None


class EngineRetriever(CAUSOptions, BaseRetriever):
    """A retriever over an engine; a subclass sets ``_engine`` and says what it is asked."""

    _engine: Engine

    @abstractmethod
    def _queries(self, bundles: Sequence[QueryBundle]) -> list[Query]:
        """Return what the engine is asked."""

    @abstractmethod
    async def _aqueries(self, bundles: Sequence[QueryBundle]) -> list[Query]: ...

    @property
    def filters(self) -> MetadataFilters | None:
        """Metadata that a node must have to be found; those that are set count from now on."""
        return self._filters

    @filters.setter
    def filters(self, filters: MetadataFilters | None) -> None:
        self._where = where(filters)
        self._filters = filters

    def using(self, **options: Unpack[CallArguments]) -> Self:
        """Return a retriever over the same nodes with other options, for one query, say.

        It takes microseconds: ``retriever.using(k=3, filters=...).retrieve(query)``.

        Parameters
        ----------
        **options
            As in `shared_core.CAUS`, and `filters`; what is not given stays. ``filters=None``
            searches without.

        Raises
        ------
        ValueError
            If a value is out of range.
        TypeError
            If an option is unknown.
        """
        refuse_similarity_top_k(options)
        other, changed = copy(self), dict[str, Any](options)
        other.filters = changed.pop("filters", self.filters)
        other.caus = replace(self.caus, **changed)
        return other

    @dispatcher.span
    def retrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """Retrieve for many queries at once; the results are those of `retrieve`.

        Each query is announced as one retrieval to the dispatcher and to the callback manager; to
        the latter once the common search is over.

        Raises
        ------
        ValueError
            If `queries` is one query instead of several.
        """
        bundles, results = as_bundles(queries), []
        _announce_starts(bundles)
        with self.callback_manager.as_trace("query"):
            for bundle, found in zip(bundles, self._search(bundles), strict=True):
                with retrieving(self.callback_manager, bundle) as nodes:
                    nodes += self._handle_recursive_retrieval(bundle, found)
                results.append(nodes)
        return results

    @dispatcher.span
    async def aretrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """Async version of `retrieve_batch`; the queries are embedded concurrently.

        At most as many at a time as the embedding model's ``num_workers``, if that is set.
        """
        bundles, results = as_bundles(queries), []
        _announce_starts(bundles)
        with self.callback_manager.as_trace("query"):
            for bundle, found in zip(bundles, await self._asearch(bundles), strict=True):
                with retrieving(self.callback_manager, bundle) as nodes:
                    nodes += await self._ahandle_recursive_retrieval(bundle, found)
                results.append(nodes)
        return results

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._search(as_bundles([query_bundle]))[0]

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return (await self._asearch(as_bundles([query_bundle])))[0]

    def _search(self, bundles: Sequence[QueryBundle]) -> list[list[NodeWithScore]]:
        if not self._engine.count():
            return [[] for _ in bundles]
        caus, queries = self.caus, self._queries(bundles)
        reader = NodeChunks(caus.chunk_keys)
        found = caus.search(self._engine, queries, where=self._where, reader=reader)
        return list(map(nodes_of, found, bundles))

    async def _asearch(self, bundles: Sequence[QueryBundle]) -> list[list[NodeWithScore]]:
        if not self._engine.count():
            return [[] for _ in bundles]
        caus, queries = self.caus, await self._aqueries(bundles)
        reader = NodeChunks(caus.chunk_keys)
        found = await caus.asearch(self._engine, queries, where=self._where, reader=reader)
        return list(map(nodes_of, found, bundles))

    # `BaseRetriever` takes a score of 0.0, the worst of a min-max fusion, for a missing one and
    # replaces it by 1.0, and hands out an object that is a node itself, for the caller to change.

    def _handle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        found: list[NodeWithScore] = []
        for hit in nodes:
            led_to = self._object_of(hit)
            behind = [hit]
            if led_to is not None:
                behind = self._retrieve_from_object(led_to, query_bundle, hit.score or 0.0)
            found += _as_found(behind, led_to, hit)
        return _once(found)

    async def _ahandle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        found: list[NodeWithScore] = []
        for hit in nodes:
            led_to = self._object_of(hit)
            behind = [hit]
            if led_to is not None:
                behind = await self._aretrieve_from_object(led_to, query_bundle, hit.score or 0.0)
            found += _as_found(behind, led_to, hit)
        return _once(found)

    def _object_of(self, hit: NodeWithScore) -> Any:
        """Return the object of a hit's node, and print its class if `verbose`; None without one."""
        node = hit.node
        if not isinstance(node, IndexNode):
            return None
        led_to = node.obj or self.object_map.get(node.index_id)
        if led_to is not None and self._verbose:
            name = type(led_to).__name__
            print_text(f"Retrieval entering {node.index_id}: {name}\n", color="llama_turquoise")
        return led_to


def _announce_starts(queries: Iterable[QueryBundle]) -> None:
    for query in queries:
        dispatch(dispatcher, partial(RetrievalStartEvent, str_or_query_bundle=query))


def _as_found(
    behind: Iterable[NodeWithScore], led_to: object, hit: NodeWithScore
) -> list[NodeWithScore]:
    """Return the hits behind an index node; if it leads to a node, as a copy with its explanation.

    A node has the score of the index node; a `NodeWithScore` keeps its score, even if it is None.
    """
    return [
        ExplainedNode(node=isolated(each.node), score=each.score, posrag=explanation(hit))
        if led_to is each or led_to is each.node
        else each
        for each in behind
    ]


def _once(found: Iterable[NodeWithScore]) -> list[NodeWithScore]:
    """Return the first hit of each node."""
    first: dict[str, NodeWithScore] = {}
    for hit in found:
        first.setdefault(hit.node.node_id, hit)
    return list(first.values())
