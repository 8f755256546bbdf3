"""Events: made only where somebody takes them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.callbacks import (
    CallbackManager,
    CBEventType,
    EventPayload,
    LlamaDebugHandler,
)
from llama_index.core.instrumentation.events.retrieval import RetrievalStartEvent
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index_instrumentation import get_dispatcher, root_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.dispatcher import Dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler

from llamaindex_posrag.events import dispatch, reranking, retrieving

taken: list[BaseEvent] = []


class Taking(BaseEventHandler):
    def handle(self, event: BaseEvent, **kwargs: object) -> None:
        taken.append(event)


@pytest.fixture
def dispatchers() -> Iterator[dict[str, Dispatcher]]:
    """A dispatcher, its parent and the root, as they are afterwards."""
    names = ("posrag_test", "posrag_test.events")
    found = {name: get_dispatcher(name) for name in names} | {"root": root_dispatcher}
    before = {name: list(each.event_handlers) for name, each in found.items()}
    taken.clear()
    yield found
    for name, each in found.items():
        each.event_handlers = before[name]
        each.propagate = name != "root"


@pytest.mark.parametrize("listening", ["posrag_test.events", "posrag_test", "root"])
def test_a_handler_anywhere_on_the_way_takes_the_event(
    listening: str, dispatchers: dict[str, Dispatcher]
) -> None:
    """The same one that was made, once."""
    made = RetrievalStartEvent(str_or_query_bundle="What sorts?")
    dispatchers[listening].add_event_handler(Taking())
    dispatch(dispatchers["posrag_test.events"], lambda: made)
    assert taken == [made]


def test_no_event_is_made_where_nobody_takes_it(dispatchers: dict[str, Dispatcher]) -> None:
    """By default the root has a handler that drops everything; what does not propagate ends."""

    def make() -> BaseEvent:
        raise AssertionError("an event was made")

    inner = dispatchers["posrag_test.events"]
    dispatch(inner, make)
    root_dispatcher.add_event_handler(Taking())
    inner.propagate = False
    dispatch(inner, make)
    inner.propagate = True
    with pytest.raises(AssertionError, match="an event was made"):
        dispatch(inner, make)


@pytest.mark.parametrize("hears", [True, False])
def test_a_manager_is_told_of_a_retrieval_if_it_has_handlers(hears: bool) -> None:
    """Of its start and its end, once each; without handlers nothing is noted down."""
    handler = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([handler] if hears else [])
    with retrieving(manager, QueryBundle("What sorts?")):
        pass
    assert len(handler.get_events()) == (2 if hears else 0)
    assert sum(map(len, manager.trace_map.values())) == hears


@pytest.mark.parametrize("query", [QueryBundle("What sorts?"), None])
def test_a_manager_is_told_what_is_reranked_and_what_comes_of_it(query: QueryBundle | None) -> None:
    """Under the keys of LlamaIndex's own rerankers."""
    handler = LlamaDebugHandler(print_trace_on_end=False)
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in "abc"]
    with reranking(CallbackManager([handler]), nodes, query, top_n=2, name="caus") as result:
        result += nodes[1:]
    ((start, end),) = handler.get_event_pairs(CBEventType.RERANKING)
    assert start.payload == {
        EventPayload.NODES: nodes,
        EventPayload.MODEL_NAME: "caus",
        EventPayload.QUERY_STR: query and "What sorts?",
        EventPayload.TOP_K: 2,
    }
    assert end.payload == {EventPayload.NODES: nodes[1:]}
