"""Start and end events around a postprocessor, on every path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

dispatcher = get_dispatcher(__name__)


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

    Yields an empty list for the resulting nodes; what it holds when the block ends, also by an
    error, is what the end event reports.
    """
    result: list[NodeWithScore] = []
    payload: dict[str, Any] = {
        EventPayload.NODES: nodes,
        EventPayload.MODEL_NAME: name,
        EventPayload.QUERY_STR: query.query_str if query else None,
        EventPayload.TOP_K: top_n,
    }
    dispatcher.event(ReRankStartEvent(query=query, nodes=nodes, top_n=top_n, model_name=name))
    try:
        with manager.event(CBEventType.RERANKING, payload=payload) as event:
            yield result
            event.on_end(payload={EventPayload.NODES: result})
    finally:
        dispatcher.event(ReRankEndEvent(nodes=result))
