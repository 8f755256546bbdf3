"""The one way of a query in both retrievers: embed, search an engine, place, return nodes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import fields, replace
from typing import Any, Generic, Self, TypeVar, Unpack, cast

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.vector_stores.types import MetadataFilters
from llama_index_instrumentation import get_dispatcher

from llamaindex_posrag.embedding import as_bundles
from llamaindex_posrag.filters import where
from llamaindex_posrag.nodes import ExplainedNode, NodeChunks, explanation, isolated, nodes_of
from shared_core import CAUS, ChunkKeys, NeighbourSpans, Placement
from shared_core.engines import Engine
from shared_core.engines.collection import CollectionEngine
from shared_core.options import CAUSArguments
from shared_core.placement.order_gate import Psi
from shared_core.scoring.fusion import Alpha
from shared_core.tuning import tune
from shared_core.types import Fusion, OrderRule, Query, Tuning

T = TypeVar("T")


class Option(Generic[T]):
    """An option of ``caus``; setting it puts a new `CAUS` there, which checks the value."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, retriever: Any, owner: type) -> T:
        value: Any = self if retriever is None else getattr(retriever.caus, self._name)
        return cast(T, value)

    def __set__(self, retriever: Any, value: T) -> None:
        changed: dict[str, Any] = {self._name: value}
        retriever.caus = replace(retriever.caus, **changed)


class CAUSOptions:
    """Base of retrievers with a `CAUS`; an option that is set counts from the next query.

    Attributes
    ----------
    caus
        The options of the search and the placement. They are immutable and may be shared: setting
        one of those below replaces them.
    k, alpha, fetch_k, fusion, placement, psi, rule, hit_rates, expand, chunk_keys,
    distinct, per_source, min_similarity, tuning
        As in `CAUS`.
    similarity_top_k
        The name of `k` in LlamaIndex's own retrievers.

    Raises
    ------
    ValueError
        If a value is out of range; the options then stay as they were.
    """

    k = Option[int]("k")
    alpha = Option[Alpha]("alpha")
    fetch_k = Option[int]("fetch_k")
    fusion = Option[Fusion]("fusion")
    placement = Option[str | Placement]("placement")
    psi = Option[Psi]("psi")
    rule = Option[OrderRule]("rule")
    hit_rates = Option[Sequence[float] | None]("hit_rates")
    expand = Option[NeighbourSpans | None]("expand")
    chunk_keys = Option[ChunkKeys]("chunk_keys")
    distinct = Option[float | None]("distinct")
    per_source = Option[int | None]("per_source")
    min_similarity = Option[float | None]("min_similarity")
    tuning = Option[Tuning | None]("tuning")
    similarity_top_k = Option[int]("k")
    _caus: CAUS

    @property
    def caus(self) -> CAUS:
        """The options of the search and the placement."""
        return self._caus

    @caus.setter
    def caus(self, caus: CAUS) -> None:
        if not isinstance(caus, CAUS):
            raise ValueError(f"caus must be a CAUS, as CAUS(k=3), got {caus!r:.80}")
        self._caus = caus


def caus_of(options: CAUSArguments, caus: CAUS | None = None) -> CAUS:
    """Return `caus`, or a `CAUS` with the options if it is None.

    Raises
    ------
    ValueError
        If both are given, or an option is out of range.
    TypeError
        If an option is unknown.
    """
    if caus is None:
        return CAUS(**options)
    if options:
        named = ", ".join(f"{name}=" for name in options)
        raise ValueError(f"give caus= or {named}, not both: caus= holds every option, as CAUS(k=3)")
    return caus


dispatcher = get_dispatcher(__name__)


class CallArguments(CAUSArguments, total=False):
    """Keyword arguments of `EngineRetriever.using`."""

    filters: MetadataFilters | Any | None


class RetrieverArguments(CallArguments, total=False):
    """Keyword arguments of every retriever that have a default."""

    callback_manager: CallbackManager | None
    object_map: dict[str, Any] | None
    verbose: bool


class EngineRetriever(CAUSOptions, BaseRetriever):
    """A retriever over an engine; a subclass sets ``_engine`` and says what it is asked.

    Once it is built, setting what is no attribute, as an option that is mistyped, is a ValueError;
    subclasses elsewhere may have attributes of their own.
    """

    _engine: Engine
    _found: list[NodeWithScore] | None = None
    """What was found in a batch for the one query that a copy is asked."""

    def __setattr__(self, name: str, value: Any) -> None:
        built = "_verbose" in vars(self)  # what LlamaIndex's constructor sets last
        closed = built and type(self).__module__.startswith(f"{__package__}.")
        if closed and not name.startswith("_") and not hasattr(self, name):
            known = ", ".join(each.name for each in fields(CAUS))
            raise ValueError(
                f"{type(self).__name__} has no option {name!r}: it has filters, {known}"
            )
        super().__setattr__(name, value)

    def _queries(self, bundles: Sequence[QueryBundle]) -> list[Query]:
        """Return what the engine is asked."""
        raise NotImplementedError  # not abstract: LlamaIndex would trace it as a span of its own

    async def _aqueries(self, bundles: Sequence[QueryBundle]) -> list[Query]:
        return self._queries(bundles)

    @property
    def filters(self) -> MetadataFilters | None:
        """Metadata that a node must have to be found; those that are set count from now on."""
        return self._filters

    @filters.setter
    def filters(self, filters: MetadataFilters | Any | None) -> None:
        self._where = where(filters, own=isinstance(self._engine, CollectionEngine))
        self._filters = filters

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
        engine, caus = self._engine, self.caus
        other.caus = tune(caus, engine, queries, relevant, where=self._where, reader=reader)
        return other

    @dispatcher.span
    def retrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """Retrieve for many queries at once; the results are those of `retrieve`.

        Once the common search is over, each query is announced as a retrieval of its own.

        Raises
        ------
        ValueError
            If `queries` is one query instead of several.
        """
        bundles = as_bundles(queries)
        with self.callback_manager.as_trace("query"):
            found = zip(bundles, self._search(bundles), strict=True)
            return [self._knowing(hits).retrieve(query) for query, hits in found]

    @dispatcher.span
    async def aretrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """Async version of `retrieve_batch`; the queries are embedded concurrently.

        At most as many at a time as the embedding model's ``num_workers``, if that is set.
        """
        bundles = as_bundles(queries)
        with self.callback_manager.as_trace("query"):
            found = zip(bundles, await self._asearch(bundles), strict=True)
            return [await self._knowing(hits).aretrieve(query) for query, hits in found]

    def _knowing(self, found: list[NodeWithScore]) -> Self:
        other = copy(self)
        other._found = found
        return other

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._found is not None:
            return self._found
        return self._search(as_bundles([query_bundle]))[0]

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._found is not None:
            return self._found
        return (await self._asearch(as_bundles([query_bundle])))[0]

    def _search(self, bundles: Sequence[QueryBundle]) -> list[list[NodeWithScore]]:
        caus, queries = self.caus, self._queries(bundles)
        reader = NodeChunks(caus.chunk_keys)
        found = caus.search(self._engine, queries, where=self._where, reader=reader)
        return list(map(nodes_of, found, bundles))

    async def _asearch(self, bundles: Sequence[QueryBundle]) -> list[list[NodeWithScore]]:
        caus, queries = self.caus, await self._aqueries(bundles)
        reader = NodeChunks(caus.chunk_keys)
        found = await caus.asearch(self._engine, queries, where=self._where, reader=reader)
        return list(map(nodes_of, found, bundles))

    # `BaseRetriever` takes a score of 0.0, the worst of a min-max fusion, for a missing one and
    # makes it 1.0; it leaves NaN alone. And it hands out the very object that a node leads to.

    def _handle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        if not any(map(_leads, nodes)):
            return nodes
        follow = super()._handle_recursive_retrieval
        return _once([_led(hit, follow(query_bundle, [_sign(hit)])) for hit in nodes])

    async def _ahandle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        if not any(map(_leads, nodes)):
            return nodes
        follow = super()._ahandle_recursive_retrieval
        return _once([_led(hit, await follow(query_bundle, [_sign(hit)])) for hit in nodes])


def _leads(hit: NodeWithScore) -> bool:
    return isinstance(hit.node, IndexNode)


def _sign(hit: NodeWithScore) -> NodeWithScore:
    return NodeWithScore(node=hit.node, score=math.nan)


def _led(hit: NodeWithScore, behind: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Return copies of what a hit leads to; what has no score or explanation gets the hit's."""
    if behind and behind[0].node is hit.node:
        return [hit]
    found: list[NodeWithScore] = []
    for each in behind:
        given = each.score is None or not math.isnan(each.score)
        score = each.score if given else hit.score
        posrag = {**(explanation(each) or explanation(hit))}
        found.append(ExplainedNode(node=isolated(each.node), score=score, posrag=posrag))
    return found


def _once(found: Iterable[Iterable[NodeWithScore]]) -> list[NodeWithScore]:
    """Return the first hit of each node."""
    first: dict[str, NodeWithScore] = {}
    for hits in found:
        for hit in hits:
            first.setdefault(hit.node.node_id, hit)
    return list(first.values())
