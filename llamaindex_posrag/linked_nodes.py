"""Neighbours by the PREVIOUS and NEXT relationships of nodes in a document store."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.types import BaseDocumentStore

from llamaindex_posrag.node_chunks import NodeChunks, links_of
from llamaindex_posrag.nodes import to_passage
from shared_core.neighbour_spans import Chunk, End, Neighbourhood


@dataclass(frozen=True)
class LinkedNodes:
    """A `shared_core.neighbour_spans.ChunkSource` over a document store.

    The store is queried once for the seeds and once for each step of the window, for all seeds
    together. A node that it does not have is a missing neighbour. So is one that a node does not
    name, unless the document is known to end there: many pipelines write PREVIOUS alone, and a
    document store cannot find the nodes that name another. Numbers and offsets place no node:
    there may be others between two nodes that were fetched.

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
        """Return the neighbours of each seed; see `shared_core.neighbour_spans.ChunkSource`.

        Warns if the store has neither the seeds nor any node that they link to.
        """
        given: dict[str, BaseNode] = {seed.id: seed.source.source for seed in seeds}
        fetched = self._fetch(given)
        nodes = {**given, **fetched}
        sides = {step: [*nodes.values()] for step in (-1, 1)}
        for _ in range(window):
            ids = {
                step: [id for node in side if (id := links_of(node).id(step)) is not None]
                for step, side in sides.items()
            }
            wanted = dict.fromkeys(id for side in ids.values() for id in side)
            fetched |= self._fetch(id for id in wanted if id not in fetched)
            sides = {
                step: [fetched[id] for id in side if id in fetched] for step, side in ids.items()
            }
        if not fetched and any(links_of(node).any for node in given.values()):
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

    def _fetch(self, ids: Iterable[str]) -> dict[str, BaseNode]:
        wanted = [*ids]
        found = self.docstore.get_nodes(wanted, raise_error=False) if wanted else ()
        return {node.node_id: node for node in found}


def _walk(
    node: BaseNode, step: int, window: int, nodes: Mapping[str, BaseNode]
) -> tuple[list[BaseNode], End]:
    """Return the nodes after a node (`step` 1) or before it (-1), and what lies beyond.

    Where a node names none, the document ends only if links of that direction are written at all.
    """
    found: list[BaseNode] = []
    walked = {node.node_id}
    for _ in range(window):
        links = links_of(node)
        id = links.id(step)
        if id is None:
            written = bool(found) or _is_named(node, step, nodes)
            return found, links.edge if written else "missing"
        if id in walked or id not in nodes:
            return found, "missing"
        node = nodes[id]
        walked.add(id)
        found.append(node)
    return found, "more"


def _is_named(node: BaseNode, step: int, nodes: Mapping[str, BaseNode]) -> bool:
    """Return whether the node on the other side names this one, in the direction of `step`."""
    other = nodes.get(links_of(node).id(-step) or "")
    return other is not None and links_of(other).id(step) == node.node_id
