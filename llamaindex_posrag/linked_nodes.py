"""Neighbours by the PREVIOUS and NEXT relationships of nodes, through a document store."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.types import BaseDocumentStore

from llamaindex_posrag.node_chunks import NodeChunks, links_of, parent_of
from llamaindex_posrag.nodes import to_passage
from shared_core.expansion import Chunk, End, Neighbourhood


@dataclass(frozen=True)
class LinkedNodes:
    """A `shared_core.expansion.ChunkSource` over a document store.

    The store is asked once for the seeds and once for each step of the window, for all seeds
    together. Whatever it does not have is a missing neighbour; so is what a node does not name,
    unless the document is known to end there: many pipelines write PREVIOUS alone, and a document
    store cannot be asked which node names another. Numbers and offsets are not read: nobody knows
    what stands between two nodes that happen to be fetched.

    Attributes
    ----------
    docstore
        Holds the nodes.
    reader
        Reads nodes as chunks.
    """

    docstore: BaseDocumentStore
    reader: NodeChunks

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        """Return the neighbours of each seed; see `shared_core.expansion.ChunkSource`.

        Warns if it has nothing at all of what the seeds are and link to.
        """
        given = {seed.id: seed.source.source for seed in seeds}
        fetched = self._fetched(given)
        sides = [[{**given, **fetched}[id] for id in given] for _ in (0, 1)]
        for _ in range(window):
            links = [[links_of(node)[at] for node in side] for at, side in enumerate(sides)]
            wanted = {id: None for side in links for id in side if id is not None}
            fetched |= self._fetched(id for id in wanted if id not in fetched)
            sides = [[fetched[id] for id in side if id in fetched] for side in links]
        if not fetched and any(any(links_of(node)) for node in given.values()):
            warnings.warn(
                "the docstore has neither the retrieved nodes nor those that they link to. A "
                "vector store that keeps the text itself leaves it empty: use "
                "NeighbourSpanPostprocessor.from_nodes(nodes)",
                stacklevel=2,
            )
        nodes = {**given, **fetched}
        return [self._around(nodes[seed.id], window, nodes) for seed in seeds]

    def _around(self, node: BaseNode, window: int, nodes: Mapping[str, BaseNode]) -> Neighbourhood:
        before, before_end = _walk(node, -1, window, nodes)
        after, after_end = _walk(node, 1, window, nodes)
        return Neighbourhood(
            self._chunk(node),
            tuple(map(self._chunk, before[::-1])),
            tuple(map(self._chunk, after)),
            before_end,
            after_end,
        )

    def _chunk(self, node: BaseNode) -> Chunk:
        return self.reader.chunk(to_passage(node))

    def _fetched(self, ids: Iterable[str]) -> dict[str, BaseNode]:
        wanted = [*ids]
        found = self.docstore.get_nodes(wanted, raise_error=False) if wanted else ()
        return {node.node_id: node for node in found}


def _walk(
    node: BaseNode, step: int, window: int, nodes: Mapping[str, BaseNode]
) -> tuple[list[BaseNode], End]:
    """Return the nodes after a node (`step` 1) or before it (-1), and what lies beyond.

    A node that names none there is at the edge of the document only if its pipeline writes links
    of that direction at all, and not if it is the edge of a parent.
    """
    found: list[BaseNode] = []
    walked = {node.node_id}
    for _ in range(window):
        id = _linked(node, step)
        if id is None:
            written = bool(found) or _is_named(node, step, nodes)
            return found, "document" if written and parent_of(node) is None else "missing"
        if id in walked or id not in nodes:
            return found, "missing"
        node = nodes[id]
        walked.add(id)
        found.append(node)
    return found, "more"


def _is_named(node: BaseNode, step: int, nodes: Mapping[str, BaseNode]) -> bool:
    """Whether the node on the other side names this one, in the direction of `step`."""
    other = nodes.get(_linked(node, -step) or "")
    return other is not None and _linked(other, step) == node.node_id


def _linked(node: BaseNode, step: int) -> str | None:
    return links_of(node)[step > 0]
