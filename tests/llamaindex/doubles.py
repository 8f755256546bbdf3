"""Stand-ins: nodes of several classes, an embedding that means something, a trace."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageNode,
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)

from tests.adapters.drivers import LlamaIndexModel

QUERY = "how does a pooling layer shrink a feature map"

TEXTS = (
    "A pooling layer shrinks a feature map by keeping one value of each window.",
    "Max pooling keeps the largest value, average pooling the mean.",
    "A convolution slides a kernel over the feature map.",
    "Dropout switches neurons off at random while training.",
    "Batch normalisation scales the activations of a layer.",
    "An embedding table maps token ids to vectors.",
    "Attention weighs every token against every other.",
    "The optimiser changes the weights against the gradient.",
    "A learning rate schedule lets the steps shrink over time.",
    "Gradient clipping limits the length of a step.",
    "A loss function says how wrong an answer is.",
    "Early stopping ends the training when nothing improves.",
)


def corpus() -> list[BaseNode]:
    """Return a dozen fresh nodes of several classes, with metadata and relationships."""
    classes = {3: ImageNode, 5: IndexNode, 7: Document}
    nodes: list[BaseNode] = []
    for number, text in enumerate(TEXTS):
        extra: dict[str, Any] = {"index_id": f"i{number}"} if number == 5 else {}
        node = classes.get(number, TextNode)(
            id_=f"n{number}",
            text=text,
            metadata={
                "page": number,
                "lang": "en" if number % 2 == 0 else "de",
                "tags": [f"t{number % 3}"],
                "secret": "not for the model",
            },
            excluded_llm_metadata_keys=["secret"],
            excluded_embed_metadata_keys=["secret", "tags"],
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"d{number % 2}")},
            **extra,
        )
        nodes.append(node)
    return nodes


def scored(scores: list[float | None] | None = None, count: int = 5) -> list[NodeWithScore]:
    """Return the first nodes of the corpus with `scores`, falling ones by default."""
    given = scores or [1.0 - 0.1 * rank for rank in range(count)]
    return [
        NodeWithScore(node=node, score=score) for node, score in zip(corpus(), given, strict=False)
    ]


class Given(BaseRetriever):
    """Return the same nodes whatever is asked, and note how."""

    def __init__(self, nodes: list[NodeWithScore]) -> None:
        super().__init__()
        self.nodes = nodes
        self.asked: list[str] = []

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append("sync")
        return self.nodes

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append("async")
        return self.nodes


def words(text: str) -> list[float]:
    """Each word a fixed random direction, a text their sum."""
    total = np.zeros(64)
    for word in text.lower().replace(".", " ").split():
        seed = hashlib.sha256(word.encode()).digest()[:8]
        total += np.random.default_rng(int.from_bytes(seed, "big")).standard_normal(64)
    norm = float(np.linalg.norm(total))
    return [float(value) for value in (total / norm if norm else total + 1 / 8)]


class WordEmbedding(LlamaIndexModel):
    """Deterministic bag of words."""

    documents: Any = Field(default=words, exclude=True)


class _Handler(BaseEventHandler):
    _events: list[BaseEvent] = PrivateAttr(default_factory=list)

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        self._events.append(event)


@dataclass
class Trace:
    """What the dispatcher saw: events in order, and spans that were opened but never closed."""

    events: list[BaseEvent]
    spans: SimpleSpanHandler = field(default_factory=SimpleSpanHandler)

    def of(self, kind: type[BaseEvent]) -> list[Any]:
        """Return the events of one class."""
        return [event for event in self.events if isinstance(event, kind)]


@contextmanager
def traced() -> Iterator[Trace]:
    """Record every event and span that LlamaIndex dispatches in the block."""
    root, handler = get_dispatcher("root"), _Handler()
    trace = Trace(handler._events)
    root.add_event_handler(handler)
    root.add_span_handler(trace.spans)
    try:
        yield trace
    finally:
        root.event_handlers.remove(handler)
        root.span_handlers.remove(trace.spans)
