"""Spans of nodes: by their relationships, and against what PrevNextNodePostprocessor does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    MarkdownNodeParser,
    SentenceSplitter,
    get_leaf_nodes,
)
from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from llamaindex_posrag import CAUSRetriever, NeighbourSpanPostprocessor, PlacementPostprocessor
from llamaindex_posrag.nodes import ExplainedNode, explanation
from shared_core import CAUS
from shared_core.index import ChunkKeys
from shared_core.neighbour_spans import Chunk, Neighbourhood, NeighbourSpans

from .doubles import WordEmbedding

WINDOW = NeighbourSpans(window=1, token_budget=None)
TEXT = " ".join(f"Sentence {number} tells of matter {number * 7} alone." for number in range(60))


def split(name: str = "manual", text: str = TEXT) -> list[BaseNode]:
    """Return overlapping chunks with relationships and offsets, as LlamaIndex makes them."""
    nodes = SentenceSplitter(chunk_size=64, chunk_overlap=12).get_nodes_from_documents(
        [Document(text=text, id_=name, metadata={"file": name})]
    )
    for number, node in enumerate(nodes):
        node.id_ = f"{name}{number}"
    return relinked(nodes)


def relinked(nodes: Sequence[BaseNode]) -> list[BaseNode]:
    """Link nodes in their order, the outer ones to nothing."""
    for number, node in enumerate(nodes):
        for step, relationship in ((-1, NodeRelationship.PREVIOUS), (1, NodeRelationship.NEXT)):
            node.relationships.pop(relationship, None)
            if 0 <= number + step < len(nodes):
                other = nodes[number + step].node_id
                node.relationships[relationship] = RelatedNodeInfo(node_id=other)
    return list(nodes)


def row(*texts: str) -> list[BaseNode]:
    """Return linked nodes without offsets."""
    return relinked([TextNode(id_=f"n{number}", text=text) for number, text in enumerate(texts)])


def stored(nodes: Sequence[BaseNode]) -> SimpleDocumentStore:
    docstore = SimpleDocumentStore()
    docstore.add_documents([*nodes])
    return docstore


def hits(nodes: Sequence[BaseNode], **scores: float | None) -> list[NodeWithScore]:
    """Return the nodes named, with their scores."""
    known = {node.node_id: node for node in nodes}
    return [NodeWithScore(node=known[name], score=score) for name, score in scores.items()]


def chunks(node: NodeWithScore) -> list[str]:
    assert isinstance(node, ExplainedNode)
    found: list[str] = node.posrag["chunks"]
    return found


def why(node: NodeWithScore) -> dict[str, Any]:
    assert isinstance(node, ExplainedNode)
    return node.posrag


def sources(nodes: Sequence[BaseNode]) -> list[NeighbourSpanPostprocessor]:
    return [
        NeighbourSpanPostprocessor(WINDOW, docstore=stored(nodes)),
        NeighbourSpanPostprocessor.from_nodes(nodes, WINDOW),
    ]


@pytest.mark.parametrize("at", [0, 1])
def test_neighbours_come_from_the_docstore_or_from_nodes(at: int) -> None:
    """With the seed's id, class and metadata, and offsets and links of the span."""
    nodes = split()
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


def test_the_docstore_is_asked_in_batches() -> None:
    """Once for the seeds and once for a step of the window, however many seeds there are."""

    class Counting(SimpleDocumentStore):
        batches = 0

        def get_nodes(self, node_ids: list[str], raise_error: bool = True) -> list[BaseNode]:
            self.batches += 1
            return super().get_nodes(node_ids, raise_error)

    nodes, docstore = split(), Counting()
    docstore.add_documents(nodes)
    postprocessor = NeighbourSpanPostprocessor(WINDOW, docstore=docstore)
    found = postprocessor.postprocess_nodes(hits(nodes, manual2=0.9, manual7=0.8, manual12=0.7))
    assert len(found) == 3
    assert docstore.batches == 1 + WINDOW.reach


@pytest.mark.parametrize("seed", ["n0", "n1", "n2"])
def test_loops_in_the_relationships_end_a_span(seed: str) -> None:
    """Each node once, however often the links come back to it; or to itself."""
    nodes = row("First.", "Second.", "Third.")
    nodes[2].relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="n0")
    nodes[0].relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id="n2")
    wide = NeighbourSpans(window=9, token_budget=None)
    for postprocessor in (
        NeighbourSpanPostprocessor(wide, docstore=stored(nodes)),
        NeighbourSpanPostprocessor.from_nodes(nodes, wide),
    ):
        (found,) = postprocessor.postprocess_nodes(hits(nodes, **{seed: 0.5}))
        assert sorted(chunks(found)) == ["n0", "n1", "n2"]
    narcissus = TextNode(id_="me", text="I.")
    narcissus.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="me")
    (found,) = NeighbourSpanPostprocessor(wide).postprocess_nodes(hits([narcissus], me=1.0))
    assert chunks(found) == ["me"]


def test_an_empty_docstore_says_what_to_do() -> None:
    """As vector stores that keep the text themselves leave it."""
    nodes = split()
    postprocessor = NeighbourSpanPostprocessor(WINDOW, docstore=SimpleDocumentStore())
    with pytest.warns(UserWarning, match=r"leaves the docstore empty: .*from_nodes"):
        (found,) = postprocessor.postprocess_nodes(hits(nodes, manual4=0.5))
    assert found.node.node_id == "manual4"


def test_without_a_docstore_retrieved_neighbours_become_one_node() -> None:
    """Nothing is fetched; what follows each other is merged."""
    nodes = split()
    given = hits(nodes, manual4=0.5, manual9=0.4, manual5=0.3)
    found = NeighbourSpanPostprocessor().postprocess_nodes(given)
    assert [chunks(node) for node in found] == [["manual4", "manual5"], ["manual9"]]
    assert found[1].node is given[1].node


def test_nodes_without_relationships_go_by_number_or_by_offset() -> None:
    """In this order; a number that is no integer is refused where nothing else tells."""
    nodes = split()
    for node in nodes:
        for relationship in (NodeRelationship.PREVIOUS, NodeRelationship.NEXT):
            node.relationships.pop(relationship, None)
    postprocessor = NeighbourSpanPostprocessor.from_nodes(nodes, WINDOW)
    (found,) = postprocessor.postprocess_nodes(hits(nodes, manual4=0.5))
    assert chunks(found) == ["manual3", "manual4", "manual5"]
    numbered = [
        TextNode(id_=f"n{n}", text=f"Part {n}.", metadata={"file": "f", "part": str(n)})
        for n in range(4)
    ]
    keys = ChunkKeys(document="file", number="part")
    postprocessor = NeighbourSpanPostprocessor.from_nodes(numbered, WINDOW, chunk_keys=keys)
    (found,) = postprocessor.postprocess_nodes(hits(numbered, n3=0.5))
    assert (chunks(found), why(found)["after"]) == (["n2", "n3"], "document")
    numbered[1].metadata["part"] = "one"
    with pytest.raises(ValueError, match=r"metadata\['part'\] of 'n1' must be an integer"):
        NeighbourSpanPostprocessor.from_nodes(numbered, WINDOW, chunk_keys=keys)


def numbered_steps(sections: int) -> str:
    """Return a text of sections of unlike length, in which no sentence occurs twice."""
    return "\n\n".join(
        " ".join(f"Step {i}.{j} mounts item {i * 40 + j} with tool {j * 31 + i}." for j in range(n))
        for i, n in enumerate([5 + 3 * (i % 4) for i in range(sections)])
    )


def parent(node: BaseNode) -> str:
    assert node.parent_node is not None
    return node.parent_node.node_id


@pytest.mark.parametrize("links", [True, False])
def test_leaves_of_a_hierarchy_are_placed_within_their_parent(links: bool) -> None:
    """Their offsets count there, and the first leaf of each parent names no neighbour."""
    text = numbered_steps(8)
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[512, 128, 64], chunk_overlap=0)
    nodes = parser.get_nodes_from_documents([Document(text=text, id_="guide")])
    if not links:
        for node in nodes:
            node.relationships.pop(NodeRelationship.PREVIOUS, None)
            node.relationships.pop(NodeRelationship.NEXT, None)
    leaves = get_leaf_nodes(nodes)
    siblings: dict[str, list[str]] = {}
    for leaf in leaves:
        siblings.setdefault(parent(leaf), []).append(leaf.node_id)
    assert len(siblings) > 4
    docstore, *known = *sources(leaves), NeighbourSpanPostprocessor.from_nodes(nodes, WINDOW)
    for leaf in leaves:
        family = siblings[parent(leaf)]
        at = family.index(leaf.node_id)
        hit = [NodeWithScore(node=leaf, score=0.5)]
        for postprocessor in known:
            (found,) = postprocessor.postprocess_nodes(hit)
            assert chunks(found) == family[max(0, at - 1) : at + 2]
            assert (why(found)["before"] == "missing") == (at == 0)
            assert "document" not in (why(found)["before"], why(found)["after"])
        (found,) = docstore.postprocess_nodes(hit)
        assert chunks(found) == family[max(0, at - 1) if links else at : at + 1]
    together = docstore.postprocess_nodes([NodeWithScore(node=leaf, score=0.5) for leaf in leaves])
    families = [*siblings.values()] if links else [[leaf.node_id] for leaf in leaves]
    assert sorted(map(chunks, together)) == sorted(families)


def test_splitters_in_a_row_leave_links_of_one_direction() -> None:
    """The nodes themselves tell both; of a docstore it cannot be asked, and that is said."""
    text = "# Guide\n\n" + numbered_steps(6).replace("\n\n", "\n\n# Part\n\n")
    splitters = [MarkdownNodeParser(), SentenceSplitter(chunk_size=64, chunk_overlap=0)]
    nodes = [*IngestionPipeline(transformations=splitters).run(documents=[Document(text=text)])]
    assert not any(NodeRelationship.NEXT in node.relationships for node in nodes)
    stored_, known = sources(nodes)
    ids = [node.node_id for node in nodes]
    for at, node in enumerate(nodes):
        hit = [NodeWithScore(node=node, score=0.5)]
        (found,) = known.postprocess_nodes(hit)
        assert chunks(found) == ids[max(0, at - 1) : at + 2]
        (found,) = stored_.postprocess_nodes(hit)
        assert chunks(found) == ids[max(0, at - 1) : at + 1]
        assert why(found)["after"] == "missing"
        if at == 1:  # nodes name the one before, and the first names none
            assert why(found)["before"] == "document"


def test_the_docstore_tells_where_a_document_ends_if_links_do() -> None:
    """The last node is named by the one before it; of a node alone nobody knows."""
    nodes = split()
    last = nodes[-1].node_id
    (found,) = sources(nodes)[0].postprocess_nodes(hits(nodes, **{last: 0.5}))
    assert (why(found)["before"], why(found)["after"]) == ("window", "document")
    (found,) = sources(nodes)[0].postprocess_nodes(hits(nodes, manual0=0.5))
    assert (why(found)["before"], why(found)["after"]) == ("document", "window")
    again = hits(nodes, manual4=0.5) + hits(nodes, manual4=0.6)
    (found,) = sources(nodes)[0].postprocess_nodes(again)
    assert why(found)["seeds"] == {"manual4": 0.6}
    lone = TextNode(id_="lone", text="Alone.", start_char_idx=0, end_char_idx=6)
    (found,) = sources([lone])[0].postprocess_nodes(hits([lone], lone=0.5))
    assert (why(found)["before"], why(found)["after"]) == ("missing", "missing")


def test_a_chunk_source_of_ones_own_will_do() -> None:
    """Anything that knows neighbours; its chunks carry no nodes."""

    class Sides:
        def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
            before, after = Chunk("n0", "First.", "d"), Chunk("n2", "Third.", "d")
            return [Neighbourhood(seed, (before,), (after,)) for seed in seeds]

    nodes = row("First.", "Second.", "Third.")
    postprocessor = NeighbourSpanPostprocessor(WINDOW, chunks=Sides())
    (found,) = postprocessor.postprocess_nodes(hits(nodes, n1=0.5))
    assert found.get_content() == "First.\nSecond.\nThird."
    assert found.node.prev_node is None


def test_scores_are_a_matter_of_policy() -> None:
    """Missing ones count as the least, all missing go by order, distances are negated."""
    nodes = [node for name in "abc" for node in split(name)[:1]]
    order = NeighbourSpans(order="score_descending")

    def similarities(postprocessor: NeighbourSpanPostprocessor, *scores: float | None) -> list[Any]:
        given = hits(nodes, **dict(zip(("a0", "b0", "c0"), scores, strict=True)))
        found = postprocessor.postprocess_nodes(given)
        return [(node.node.node_id, why(node)["similarity"]) for node in found]

    plain = NeighbourSpanPostprocessor(order)
    assert similarities(plain, 0.2, 0.9, None) == [("b0", 0.9), ("a0", 0.2), ("c0", 0.2)]
    assert [score for _, score in similarities(plain, None, None, None)] == [1, 2 / 3, 1 / 3]
    distances = NeighbourSpanPostprocessor(order, higher_is_better=False)
    assert [name for name, _ in similarities(distances, 0.2, 0.9, 0.5)] == ["a0", "c0", "b0"]
    with pytest.raises(ValueError, match="must be finite"):
        similarities(plain, 0.2, float("inf"), 0.1)


def test_hits_that_the_budget_leaves_out_are_named() -> None:
    """In each span: nothing else would tell that they were found."""
    nodes, expand = split(), NeighbourSpans(window=0, token_budget=2, count_tokens=lambda text: 1)
    given = hits(nodes, manual1=0.9, manual3=0.5, manual5=0.4, manual7=0.6)
    found = NeighbourSpanPostprocessor.from_nodes(nodes, expand).postprocess_nodes(given)
    assert [why(node)["dropped"] for node in found] == [["manual3", "manual5"]] * 2
    retriever = CAUSRetriever.from_nodes(nodes, WordEmbedding(), expand=expand, k=4)
    found = retriever.retrieve("matter 35")
    assert [len(json.loads(json.dumps(why(node)["dropped"]))) for node in found] == [2, 2]


def test_nothing_of_the_callers_is_changed() -> None:
    """Neither the hits nor the nodes that were taken in."""
    nodes = split()
    given = hits(nodes, manual4=0.5, manual5=0.4)
    before = [node.model_dump_json() for node in [*nodes, *given]]
    for postprocessor in sources(nodes):
        (found,) = postprocessor.postprocess_nodes(given)
        found.node.metadata["file"] = "changed"
        found.node.relationships.clear()
    assert [node.model_dump_json() for node in [*nodes, *given]] == before


def test_a_later_placement_moves_spans_whole() -> None:
    """And keeps what they say of themselves."""
    nodes = [node for name in "abc" for node in split(name)]
    spans = NeighbourSpanPostprocessor.from_nodes(nodes, WINDOW).postprocess_nodes(
        hits(nodes, a3=0.9, b3=0.8, c3=0.7)
    )
    placed = PlacementPostprocessor("inverse", psi="always").postprocess_nodes(spans)
    worst_first = sorted(spans, key=lambda span: -explanation(span)["rank"])
    assert [node.get_content() for node in placed] == [n.get_content() for n in worst_first]
    assert [chunks(node) for node in placed] == [chunks(node) for node in worst_first]


def retriever_of(nodes: Sequence[BaseNode], **options: Any) -> CAUSRetriever:
    return CAUSRetriever.from_nodes(nodes, WordEmbedding(), alpha=0.0, expand=WINDOW, **options)


def test_a_retriever_gives_spans_in_every_way_to_call_it() -> None:
    """The text is the nodes' own, without what LlamaIndex embeds of the metadata."""
    retriever = retriever_of([*split(), *split("other", "Quite another text.")], k=1)
    (found,) = retriever.retrieve("matter 210")
    assert found.get_content(MetadataMode.NONE) in TEXT
    assert len(chunks(found)) == 3
    assert type(why(found)["continuity"]) is float
    assert found.score == why(found)["similarity"] <= 1 < why(found)["span_score"]
    assert asyncio.run(retriever.aretrieve("matter 210")) == [found]
    assert retriever.retrieve_batch(["matter 210"]) == [[found]]


def test_no_neighbour_comes_from_beyond_the_filters() -> None:
    """Links to nodes of another tenant lead nowhere."""
    nodes = split()
    for number, node in enumerate(nodes):
        node.metadata["tenant"] = "b" if number == 5 else "a"
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")])
    expand = NeighbourSpans(window=3, min_continuity=None)
    own = CAUSRetriever.from_nodes(
        nodes, WordEmbedding(), filters=filters, k=1, alpha=0.0, expand=expand
    )
    index = VectorStoreIndex(nodes, embed_model=WordEmbedding())
    fused = CAUSRetriever.from_index(
        index, higher_is_better=True, filters=filters, k=1, alpha=0.0, expand=expand
    )
    for retriever in (own, fused):
        (found,) = retriever.retrieve(nodes[4].get_content())
        assert chunks(found) == ["manual1", "manual2", "manual3", "manual4"]
        assert why(found)["after"] == "missing"


def test_the_options_are_saved(tmp_path: Path) -> None:
    """With the index, and as a component; a tokenizer has to be given again."""
    keys = ChunkKeys(number="part", heading=("title",))
    retriever = retriever_of(split(), chunk_keys=keys)
    retriever.save(tmp_path / "index")
    loaded = CAUSRetriever.load(tmp_path / "index", WordEmbedding())
    assert loaded.caus == retriever.caus
    assert loaded.retrieve("matter 210") == retriever.retrieve("matter 210")
    postprocessor = NeighbourSpanPostprocessor(WINDOW, chunk_keys=keys, higher_is_better=False)
    again = NeighbourSpanPostprocessor.from_dict(postprocessor.to_dict())
    assert again.to_dict() == postprocessor.to_dict()
    assert (again.expand, again.chunk_keys, again.higher_is_better) == (WINDOW, keys, False)
    spans = NeighbourSpans(count_tokens=len)
    counted = CAUS(k=3, expand=spans)
    CAUSRetriever(loaded.index, WordEmbedding(), caus=counted).save(tmp_path / "counted")
    with pytest.raises(ValueError, match="give expand= again"):
        CAUSRetriever.load(tmp_path / "counted", WordEmbedding())
    given = CAUSRetriever.load(tmp_path / "counted", WordEmbedding(), expand=spans)
    assert given.caus == counted


def test_options_that_are_none_are_refused() -> None:
    """By name."""
    for options in ({"expand": 3}, {"chunk_keys": "doc_id"}, {"chunks": 3}):
        with pytest.raises(ValueError, match=next(iter(options))):
            NeighbourSpanPostprocessor(**options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="docstore= or chunks="):
        NeighbourSpanPostprocessor(
            docstore=SimpleDocumentStore(),
            chunks=NeighbourSpanPostprocessor.from_nodes(split()).chunks,
        )
