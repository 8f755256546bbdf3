"""Nodes in a database: what LlamaIndex alone has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter
from llama_index.core.schema import BaseNode, Document, IndexNode, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from llamaindex_posrag import CAUSRetriever, NeighbourSpans, connect

from .doubles import WordEmbedding

psycopg = pytest.importorskip("psycopg")

TEXT = " ".join(f"Sentence {number} tells of matter {number * 7} alone." for number in range(60))
QUERY = "matter 70 in sentence 10"


def split(*names: str) -> list[BaseNode]:
    """Return chunks with relationships and offsets, as LlamaIndex makes them."""
    documents = [Document(text=TEXT, id_=name, metadata={"file": name}) for name in names]
    splitter = SentenceSplitter(
        chunk_size=64, chunk_overlap=12, id_func=lambda number, of: f"{of.node_id}{number}"
    )
    nodes = splitter.get_nodes_from_documents(documents)
    for number, node in enumerate(nodes):
        node.excluded_embed_metadata_keys.append(f"k{number}")
    return nodes


@pytest.fixture
def stored(postgres: str, request: pytest.FixtureRequest) -> Iterator[CAUSRetriever]:
    """Return a retriever over an empty collection of the test's own."""
    name = request.node.name
    retriever = CAUSRetriever.from_url(postgres, WordEmbedding(), collection=name, k=3)
    yield retriever
    retriever.index.close()


def filters(*parts: Any, condition: FilterCondition = FilterCondition.AND) -> MetadataFilters:
    return MetadataFilters(filters=[*parts], condition=condition)


def test_nodes_come_back_whole(stored: CAUSRetriever, postgres: str) -> None:
    """Of their class, with their relationships and the order of their metadata, as of the hash.

    Also over the connection that `connect` makes.
    """
    sign = IndexNode(text="matter 70", id_="i", index_id="of a table")
    ordered = TextNode(text="matter 70", metadata={"zeta": 1, "a": 2, "file_name": 1e300})
    nodes = [*split("a"), sign, ordered]
    assert stored.add_nodes(nodes) == [node.node_id for node in nodes]
    engine = connect(postgres, "test_nodes_come_back_whole", pool_size=1)
    again = CAUSRetriever.from_engine(engine, WordEmbedding(), k=30)
    found = {hit.node_id: hit.node for hit in again.retrieve(QUERY)}
    for node in nodes:
        node.embedding = None
        assert found[node.node_id] == node
        assert found[node.node_id].hash == node.hash
        assert type(found[node.node_id]) is type(node)
    engine.close()


def test_an_index_in_memory_moves_with_its_nodes(stored: CAUSRetriever, tmp_path: Path) -> None:
    """Read as the documentation says."""
    nodes = split("a")
    CAUSRetriever.from_nodes(nodes, WordEmbedding()).save(tmp_path)
    index: Any = CAUSRetriever.load(tmp_path, WordEmbedding()).index
    stored.index.add(*index.embedded())
    found = {hit.node_id: hit.node for hit in stored.using(k=30).retrieve(QUERY)}
    for node in nodes:
        node.embedding = None
        assert found[node.node_id] == node


@pytest.mark.parametrize("parser", [SentenceSplitter, HierarchicalNodeParser])
def test_spans_are_those_of_memory(parser: Any, stored: CAUSRetriever) -> None:
    """Of nodes that name their neighbours, or have parents, and no number in their metadata."""
    nodes: Sequence[BaseNode] = split("manual", "other")
    if parser is HierarchicalNodeParser:
        document = Document(text=TEXT, id_="manual", metadata={"file": "manual"})
        nodes = parser.from_defaults(chunk_sizes=[256, 64]).get_nodes_from_documents([document])
    stored.expand = NeighbourSpans(window=2, token_budget=None)
    memory = CAUSRetriever.from_nodes(nodes, WordEmbedding(), caus=stored.caus)
    stored.add_nodes(nodes)
    mine, theirs = stored.retrieve(QUERY), memory.retrieve(QUERY)
    assert [hit.node for hit in mine] == [hit.node for hit in theirs]
    assert max(len(hit.posrag["chunks"]) for hit in mine) > 1


async def test_a_source_document_is_deleted(stored: CAUSRetriever) -> None:
    """With all of its nodes and no other, however they were found."""
    nodes = split("a", "b")
    of_a, of_b = ([n.node_id for n in nodes if n.ref_doc_id == name] for name in "ab")
    assert stored.delete("a") == []
    await stored.aadd_nodes([*nodes, TextNode(text="without a source")])
    assert await stored.adelete("a") == of_a
    assert stored.delete("b") == of_b
    assert stored.index.count() == 1
    with pytest.raises(ValueError, match=r"id of one source document, got 'None"):
        stored.delete("None")


def test_filters_that_a_database_applies_and_others(stored: CAUSRetriever) -> None:
    """The message says which are which."""
    stored.add_nodes(split("a", "b", "c"))
    wanted = MetadataFilter(key="file", value=["a", "b"], operator=FilterOperator.IN)
    source = MetadataFilter(key="ref_doc_id", value="b")
    for each, expected in ((filters(wanted, source), {"b"}), (filters(wanted), {"a", "b"})):
        found = stored.using(filters=each, k=40).retrieve(QUERY)
        assert {hit.node.ref_doc_id for hit in found} == expected
    above = MetadataFilter(key="file", value="a", operator=FilterOperator.GT)
    either = filters(wanted, source, condition=FilterCondition.OR)
    for each in (filters(above), either):
        told = r"no mapping \(== a value, IN a list, .* or a condition made by psycopg\.sql"
        with pytest.raises(ValueError, match=told):
            stored.using(filters=each).retrieve(QUERY)
    own = psycopg.sql.SQL("metadata ->> 'file' > 'a'")
    found = stored.using(filters=own, k=40).retrieve(QUERY)
    assert {hit.node.ref_doc_id for hit in found} == {"b", "c"}
