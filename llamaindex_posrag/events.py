"""Start and end events around a postprocessor, on every path, and around a retrieval."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.dispatcher import Dispatcher
from llama_index_instrumentation.event_handlers import NullEventHandler

dispatcher = get_dispatcher(__name__)


def dispatch(by: Dispatcher, make: Callable[[], BaseEvent]) -> None:
    """Dispatch an event, which is made only if a handler takes it: pydantic validates each."""
    reached: Dispatcher | None = by
    while reached is not None:
        if any(type(handler) is not NullEventHandler for handler in reached.event_handlers):
            by.event(make())
            return
        reached = reached.parent if reached.propagate else None


@contextmanager
def reranking(
    manager: CallbackManager,
    nodes: list[NodeWithScore],
    query: QueryBundle | None,
    *,
    top_n: int,
    name: str,
) -> Iterator[list[NodeWithScore]]:
    """Announce a postprocessing step to the dispatcher and the callback manager, and its end.

    Yields an empty list for the resulting nodes. The end event, also after an error, reports the
    nodes that it holds when the block ends.
    """
    result: list[NodeWithScore] = []
    payload: dict[str, Any] = {
        EventPayload.NODES: nodes,
        EventPayload.MODEL_NAME: name,
        EventPayload.QUERY_STR: query.query_str if query else None,
        EventPayload.TOP_K: top_n,
    }
    start = partial(ReRankStartEvent, query=query, nodes=nodes, top_n=top_n, model_name=name)
    dispatch(dispatcher, start)
    try:
        with manager.event(CBEventType.RERANKING, payload=payload) as event:
            yield result
            event.on_end(payload={EventPayload.NODES: result})
    finally:
        dispatch(dispatcher, partial(ReRankEndEvent, nodes=result))


@contextmanager
def retrieving(manager: CallbackManager, query: QueryBundle) -> Iterator[list[NodeWithScore]]:
    """Announce a retrieval to the callback manager, and its end to the dispatcher, too.

    Yields an empty list for the nodes; the end events report those that it holds when the block
    ends. After an error the dispatcher gets none, as in LlamaIndex's `BaseRetriever`. A manager
    without handlers is not told, as that takes time and nobody hears of it.
    """
    nodes: list[NodeWithScore] = []
    if manager.handlers:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query.query_str}
        with manager.event(CBEventType.RETRIEVE, payload=payload) as event:
            yield nodes
            event.on_end(payload={EventPayload.NODES: nodes})
    else:
        yield nodes
    dispatch(dispatcher, partial(RetrievalEndEvent, str_or_query_bundle=query, nodes=nodes))
