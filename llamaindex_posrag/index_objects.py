"""The objects that index nodes lead to, and their scores and explanations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle
from llama_index.core.utils import print_text

from llamaindex_posrag.nodes import ExplainedNode, explanation, isolated


class ObjectRetriever(BaseRetriever):
    """A retriever that follows an `IndexNode` to its object.

    `BaseRetriever` takes a score of 0.0, the worst of a min-max fusion, for a missing one and
    replaces it by 1.0, and returns an object that is a node, with a score or without, itself.
    Here the score stays, and the node is copied, with the explanation of the index node.
    """

    def _handle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        found: list[NodeWithScore] = []
        for hit in nodes:
            led_to = self._object_of(hit)
            if led_to is None:
                found.append(hit)
            else:
                behind = self._retrieve_from_object(led_to, query_bundle, _score(hit))
                found += _as_found(behind, led_to, hit)
        return _once(found)

    async def _ahandle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        found: list[NodeWithScore] = []
        for hit in nodes:
            led_to = self._object_of(hit)
            if led_to is None:
                found.append(hit)
            else:
                behind = await self._aretrieve_from_object(led_to, query_bundle, _score(hit))
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


def _score(hit: NodeWithScore) -> float:
    return 1.0 if hit.score is None else hit.score


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
