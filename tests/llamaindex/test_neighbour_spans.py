"""Spans of nodes: by their relationships, and against what PrevNextNodePostprocessor does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from llamaindex_posrag import CAUSRetriever, NeighbourSpanPostprocessor
from shared_core.neighbour_spans import NeighbourSpans

from .checks import why
from .doubles import WordEmbedding
from .test_engines import TEXT, split

WINDOW = NeighbourSpans(window=1, token_budget=None)


def stored(nodes: Sequence[BaseNode]) -> SimpleDocumentStore:
    docstore = SimpleDocumentStore()
    docstore.add_documents([*nodes])
    return docstore


def hits(nodes: Sequence[BaseNode], **scores: float | None) -> list[NodeWithScore]:
    """Return the nodes named, with their scores."""
    known = {node.node_id: node for node in nodes}
    return [NodeWithScore(node=known[name], score=score) for name, score in scores.items()]


def chunks(node: NodeWithScore) -> list[str]:
    found: list[str] = why(node)["chunks"]
    return found


def sources(nodes: Sequence[BaseNode]) -> list[NeighbourSpanPostprocessor]:
    return [
        NeighbourSpanPostprocessor(WINDOW, docstore=stored(nodes)),
        NeighbourSpanPostprocessor.from_nodes(nodes, WINDOW),
    ]


@pytest.mark.parametrize("at", [0, 1])
def test_neighbours_come_from_the_docstore_or_from_nodes(at: int) -> None:
    """With the seed's id, class and metadata, and offsets and links of the span."""
    nodes = split("manual")
    (found,) = sources(nodes)[at].postprocess_nodes(hits(nodes, manual4=0.5))
    assert chunks(found) == ["manual3", "manual4", "manual5"]
    node = found.node
    assert isinstance(node, TextNode)
    assert (node.node_id, node.metadata) == ("manual4", nodes[4].metadata)
    assert node.text == TEXT[node.start_char_idx : node.end_char_idx]
    assert node.prev_node is not None
    assert node.next_node is not None
    assert (node.prev_node.node_id, node.next_node.node_id) == ("manual2", "manual6")
    assert node.get_content(MetadataMode.LLM) == f"file: manual\n\n{node.text}"
    assert found.score == why(found)["score"] == 0.5 < why(found)["span_score"]


def test_an_empty_docstore_says_what_to_do() -> None:
    """As vector stores that keep the text themselves leave it."""
    nodes = split("manual")
    postprocessor = NeighbourSpanPostprocessor(WINDOW, docstore=SimpleDocumentStore())
    with pytest.warns(UserWarning, match=r"leaves the docstore empty: .*from_nodes"):
        (found,) = postprocessor.postprocess_nodes(hits(nodes, manual4=0.5))
    assert found.node.node_id == "manual4"


@pytest.mark.parametrize("links", [True, False])
def test_leaves_of_a_hierarchy_are_placed_within_their_parent(links: bool) -> None:
    """Their offsets count there, and the first leaf of each parent names no neighbour."""
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[512, 128, 64], chunk_overlap=0)
    nodes = parser.get_nodes_from_documents([Document(text=TEXT, id_="guide")])
    for node in nodes if not links else ():
        node.relationships.pop(NodeRelationship.PREVIOUS, None)
        node.relationships.pop(NodeRelationship.NEXT, None)
    leaves = get_leaf_nodes(nodes)
    siblings: dict[Any, list[str]] = {}
    for leaf in leaves:
        siblings.setdefault(leaf.parent_node.node_id, []).append(leaf.node_id)  # type: ignore[union-attr]
    assert len(siblings) > 4
    for leaf in leaves:
        (family,) = [each for each in siblings.values() if leaf.node_id in each]
        at = family.index(leaf.node_id)
        for postprocessor in (*sources(leaves), *sources(nodes)):
            (found,) = postprocessor.postprocess_nodes([NodeWithScore(node=leaf, score=0.5)])
            assert chunks(found) == family[max(0, at - 1) : at + 2]


def test_a_retriever_follows_links_where_there_are_any() -> None:
    """Also to where filters lead nowhere; the caller's nodes stay as they are."""
    nodes = split("manual")
    for number, node in enumerate(nodes):
        node.metadata["tenant"] = "b" if number == 5 else "a"
    before = [node.model_dump_json() for node in nodes]
    retriever = CAUSRetriever.from_nodes(
        nodes, WordEmbedding(), k=1, alpha=0.0, expand=NeighbourSpans(window=2, min_continuity=None)
    )
    (found,) = retriever.retrieve(nodes[4].get_content())
    assert chunks(found) == [f"manual{number}" for number in range(2, 7)]
    assert found.get_content(MetadataMode.NONE) in TEXT
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")])
    (found,) = retriever.using(filters=filters).retrieve(nodes[4].get_content())
    assert chunks(found) == ["manual2", "manual3", "manual4"]
    found.node.relationships.clear()
    assert [node.model_dump_json() for node in nodes] == before
