"""A vector index of LlamaIndex as the dense leg."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import Any
from uuid import uuid4

import faiss
import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import (
    BaseNode,
    Document,
    NodeRelationship,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import (
    SimpleVectorStore,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from llama_index.vector_stores.faiss import FaissVectorStore

from llamaindex_posrag import CAUSRetriever, vector_index
from llamaindex_posrag.vector_index import IndexEngine, held_nodes, score_kind

from .checks import ids
from .doubles import QUERY, TEXTS, WordEmbedding, corpus


def indexed(
    nodes: list[BaseNode] | None = None, *, store_nodes_override: bool = False, **parts: Any
) -> VectorStoreIndex:
    """Return an index of nodes, over the given parts of a storage context."""
    return VectorStoreIndex(
        corpus() if nodes is None else nodes,
        embed_model=WordEmbedding(),
        storage_context=StorageContext.from_defaults(**parts),
        store_nodes_override=store_nodes_override,
    )


def engine_of(retriever: CAUSRetriever) -> IndexEngine:
    assert isinstance(retriever.index, IndexEngine)
    return retriever.index


async def test_a_blank_query_is_answered_by_the_dense_leg() -> None:
    """As over an index of ours; also among others."""
    own = CAUSRetriever.from_nodes(corpus(), WordEmbedding(), k=3).retrieve(" ")
    retriever = CAUSRetriever.from_index(indexed(), k=3)
    assert ids(retriever.retrieve(" ")) == ids(await retriever.aretrieve("")) == ids(own)
    assert ids(retriever.retrieve_batch([QUERY, "\n"])[1]) == ids(own)


def everything(index: VectorStoreIndex, query: str = QUERY) -> list[str]:
    """Return the ids of all that either leg finds."""
    retriever = CAUSRetriever.from_index(index, higher_is_better=True, k=1000)
    return sorted(ids(retriever.retrieve(query)))


def test_distances_are_turned_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the store is known to give them, without a word; else the user says so."""
    options: dict[str, Any] = {"k": 12, "alpha": 1.0, "fetch_k": 12}
    expected = ids(CAUSRetriever.from_nodes(corpus(), WordEmbedding(), **options).retrieve(QUERY))
    flat = [FaissVectorStore(kind(64)) for kind in (faiss.IndexFlatL2, faiss.IndexFlatIP)]
    for store in (*flat, SimpleVectorStore()):
        index = indexed(vector_store=store)
        assert ids(CAUSRetriever.from_index(index, **options).retrieve(QUERY)) == expected
        wrong = CAUSRetriever.from_index(index, higher_is_better=store is flat[0], **options)
        assert ids(wrong.retrieve(QUERY)) != expected
    monkeypatch.setattr(vector_index, "SCORES", {})
    with pytest.raises(ValueError, match="of SimpleVectorStore are similarities or dist"):
        CAUSRetriever.from_index(indexed())


def test_what_is_no_index_of_llamaindex_is_refused() -> None:
    """A retriever over one, too."""
    for given in (indexed().as_retriever(), corpus()):
        with pytest.raises(ValueError, match=r"must be a VectorStoreIndex, got .*(Retr|Node)"):
            CAUSRetriever.from_index(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["SimpleVectorStore", "ListingStore", "given"])
async def test_what_is_written_through_the_retriever_is_in_both_legs(kind: str) -> None:
    """In the index, too, also for those who read it later."""
    index = indexed(vector_store=ListingStore() if kind == "ListingStore" else SimpleVectorStore())
    given = corpus() if kind == "given" else None
    options: dict[str, Any] = {"k": 99, "higher_is_better": True, "alpha": 0.0}
    retriever = CAUSRetriever.from_index(index, given, **options)
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")}
    new = [TextNode(id_=id_, text=f"swish {id_}", relationships=source) for id_ in "abc"]
    assert retriever.add_nodes(new[:1]) == ["a"]
    assert await retriever.aadd_nodes(new[1:]) == ["b", "c"]
    for each in (retriever, CAUSRetriever.from_index(index, **options)):
        hits = each.retrieve("swish")
        assert {hit.node_id for hit in hits if hit.posrag["sparse"]} == {*"abc"}  # type: ignore[attr-defined]
        assert len(hits) == 15
    with pytest.raises(ValueError, match=r"cannot replace documents: delete \['a'\] first"):
        retriever.add_nodes(new[:1])
    assert await retriever.adelete_nodes(["c", "none"]) == ["c"]
    if kind != "given":
        index.insert_nodes(new[2:])
        assert retriever.delete_nodes(["c"]) == ["c"]
    index.insert_nodes([TextNode(id_="unseen", text="swish", relationships=source)])
    assert {"a", "b"} <= {*retriever.delete("d")} <= {"a", "b", "unseen"}
    assert "unseen" not in everything(index)
    assert everything(index) == sorted(ids(retriever.retrieve("swish")))
    assert engine_of(retriever).nodes == corpus()
    with pytest.raises(ValueError, match=r"IndexEngine keeps its own nodes: .* or from_index"):
        retriever.save("never")


def test_a_query_is_searched_as_a_copy_without_the_wrapping_of_a_tool() -> None:
    """LlamaIndex's retrievers write the embedding into the query that they get."""
    retriever = CAUSRetriever.from_index(indexed(), higher_is_better=True)
    asked = QueryBundle(f"\ninput is {QUERY}\n")
    assert retriever.retrieve(asked) == retriever.retrieve(QUERY)
    assert asked.embedding is None


class TextStore(SimpleVectorStore):
    """A store that keeps the text of its nodes, as most do."""

    stores_text: bool = True
    _nodes: dict[str, BaseNode] = PrivateAttr(default_factory=dict)

    def add(self, nodes: Sequence[BaseNode], **add_kwargs: Any) -> list[str]:
        self._nodes |= {node.node_id: node for node in nodes}
        return super().add(nodes, **add_kwargs)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        found = super().query(replace(query, node_ids=None), **kwargs)  # those without text
        found.nodes = [self._nodes[id_] for id_ in found.ids or []]
        return found


class ListingStore(TextStore):
    """One that returns its nodes, as those of Chroma, Qdrant and PostgreSQL do."""

    def get_nodes(self, node_ids: list[str] | None = None, filters: Any = None) -> list[BaseNode]:
        wanted = self._nodes if node_ids is None else node_ids
        return [self._nodes[id_] for id_ in wanted if id_ in self._nodes]

    def delete_nodes(  # type: ignore[override]
        self, node_ids: list[str] | None = None, filters: Any = None, **kwargs: Any
    ) -> None:
        super().delete_nodes(node_ids, **kwargs)
        for id_ in node_ids or ():
            del self._nodes[id_]


async def test_a_store_with_text_that_lists_its_nodes_needs_none() -> None:
    """And what it no longer has is found by neither leg, also before the first query."""
    index = indexed(vector_store=ListingStore())
    options: dict[str, Any] = {"higher_is_better": True, "k": 12, "fetch_k": 3}
    retriever, late = (CAUSRetriever.from_index(index, **options) for _ in range(2))
    found = retriever.retrieve(QUERY)
    assert found == CAUSRetriever.from_index(index, corpus(), **options).retrieve(QUERY)
    index.delete_nodes(ids(found)[:2])
    for again in (
        retriever.retrieve(QUERY),
        await retriever.aretrieve(QUERY),
        late.retrieve(QUERY),
    ):
        assert not {*ids(found)[:2]} & {*ids(again)}


def test_of_new_nodes_in_a_store_with_text_is_warned() -> None:
    index = indexed(vector_store=ListingStore())
    retriever = CAUSRetriever.from_index(index, higher_is_better=True)
    index.insert_nodes([TextNode(id_="new", text="swish")])
    with pytest.warns(
        UserWarning, match=r"BM25 does not have 'new' .* build the retriever anew, or wr"
    ):
        retriever.retrieve("swish")


def test_the_distance_of_a_qdrant_collection_is_known() -> None:
    """Its integration is not installed here: one of its name, over a real collection."""
    models = pytest.importorskip("qdrant_client").models
    client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")

    class QdrantVectorStore:
        dense_vector_name = "text-dense"

        def __init__(self, name: str) -> None:
            self.collection_name, self.client = name, client

    QdrantVectorStore.__module__ = "llama_index.vector_stores.qdrant.base"
    QdrantVectorStore.__qualname__ = "QdrantVectorStore"
    for distance, known in (("Cosine", "cosine"), ("Dot", "similarity"), ("Euclid", "distance")):
        size = models.VectorParams(size=64, distance=distance)
        for name, vectors in ((f"{distance} alone", size), (distance, {"text-dense": size})):
            client.create_collection(name, vectors_config=vectors)
            assert score_kind(QdrantVectorStore(name)) == known


class MilvusVectorStore(ListingStore):
    """Known by its name; notes what else it is given with a query."""

    similarity_metric: str = "IP"
    _given: list[Any] = PrivateAttr(default_factory=list)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        self._given.append((query.filters, kwargs))
        return super().query(query)


MilvusVectorStore.__module__ = "llama_index.vector_stores.milvus.base"


async def test_a_filter_of_the_stores_own_holds_in_both_legs() -> None:
    """It goes to the store as it is, and what only BM25 finds is left out."""
    index = indexed(vector_store=(store := MilvusVectorStore()))
    retriever = CAUSRetriever.from_index(index, k=3, fetch_k=3, alpha=0.0, filters="page > 2")
    asked = QueryBundle(TEXTS[3], embedding=WordEmbedding().get_text_embedding(TEXTS[6]))
    found, plain = retriever.retrieve(asked), retriever.using(filters=None)
    assert await retriever.aretrieve(asked) == found
    assert sorted(ids(found)) == sorted(ids(plain.using(alpha=1.0).retrieve(asked)))
    assert "n3" in {*ids(plain.retrieve(asked))} - {*ids(found)}
    assert store._given[:2] == [(None, {"string_expr": "page > 2"})] * 2
    with pytest.raises(ValueError, match=r"got 'n4'; an index in Chroma, Qdrant, Mil"):
        CAUSRetriever.from_index(indexed(), filters="n4")
    with pytest.raises(ValueError, match=r"got \{'page': 4\}; an index in Chroma"):
        retriever.using(filters={"page": 4})


def test_a_store_without_a_docstore_needs_the_nodes() -> None:
    """The docstore next to a store with text is not empty, it has images; but may have them all."""
    index = indexed(vector_store=TextStore())
    with pytest.raises(ValueError, match=r"TextStore does not list its nodes.*nodes="):
        CAUSRetriever.from_index(index, higher_is_better=True)
    assert CAUSRetriever.from_index(index, corpus()[:3], higher_is_better=True).retrieve(QUERY)
    with pytest.raises(ValueError, match=r"no nodes.*: fill the index first, or give.*nodes="):
        CAUSRetriever.from_index(indexed([]))
    kept = indexed(store_nodes_override=True, vector_store=TextStore())
    assert everything(kept) == sorted(node.node_id for node in corpus())


# BM25 searches what the index holds, not all that lies in its docstore.


def test_what_was_deleted_from_the_index_is_not_found() -> None:
    """By either way to delete; both leave the nodes in the docstore."""
    index = indexed()
    index.delete_ref_doc("d0")
    assert everything(index) == [f"n{n}" for n in (1, 11, 3, 5, 7, 9)]
    index.delete_nodes(["n1", "n5"])
    assert everything(index) == ["n11", "n3", "n7", "n9"]
    assert set(index.docstore.docs) == {node.node_id for node in corpus()}


def test_what_is_deleted_while_others_search_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the index later knows what the others have read."""
    index, nodes = indexed(), [TextNode(id_=id_, text="sentence") for id_ in ("gone", "new")]
    retriever = CAUSRetriever.from_index(index, k=99)
    other = threading.Thread(target=retriever.retrieve, args=[QUERY])
    held_nodes, first = vector_index.held_nodes, chain([True], repeat(False))

    def held(given: VectorStoreIndex) -> vector_index.Held:
        if next(first):
            index.insert_nodes(nodes)
            other.start()
            other.join(1)
            index.delete_nodes(["gone"])
        return held_nodes(given)

    monkeypatch.setattr(vector_index, "held_nodes", held)
    retriever.retrieve(QUERY)
    other.join()
    assert everything(index) == sorted(ids(retriever.retrieve("sentence")))


def test_an_index_finds_nothing_of_another_in_the_same_docstore() -> None:
    docstore = SimpleDocumentStore()
    mine = indexed([TextNode(id_="mine", text=QUERY)], docstore=docstore)
    indexed([TextNode(id_="other", text=QUERY)], docstore=docstore)
    docstore.add_documents([TextNode(id_="in no index", text=QUERY)])
    assert everything(mine) == ["mine"]


def test_a_node_that_was_inserted_twice_is_one_candidate() -> None:
    """FAISS keeps both vectors, under rows of their own; the better of the two counts."""
    index = indexed(vector_store=FaissVectorStore(faiss.IndexFlatIP(64)))
    again = corpus()[:1]
    again[0].embedding = [0.0] * 64
    index.insert_nodes(again)
    retriever = CAUSRetriever.from_index(index, higher_is_better=True, k=12, alpha=1.0)
    plain = CAUSRetriever.from_index(indexed(), higher_is_better=True, k=12, alpha=1.0)
    assert ids(retriever.retrieve(QUERY)) == ids(plain.retrieve(QUERY))


def of_document(text: str, id_: str = "a") -> Document:
    return Document(text=text, id_=id_)


@pytest.mark.parametrize("named", [False, True], ids=["new_ids", "same_ids"])
async def test_what_refresh_ref_docs_changes_changes_in_both_legs(named: bool) -> None:
    """Also where nodes get the ids of those that they replace."""

    def id_of(number: int, document: BaseNode) -> str:
        return f"{document.node_id}{number}" if named else str(uuid4())

    index = VectorStoreIndex.from_documents(
        [of_document("gru cell"), of_document("relu layer", "b")],
        embed_model=WordEmbedding(),
        transformations=[SentenceSplitter(id_func=id_of)],
    )
    retriever = CAUSRetriever.from_index(index, k=9, alpha=0.0)
    other = retriever.using(k=8)

    index.refresh_ref_docs([of_document("lstm cell"), of_document("swish layer", "c")])

    for hits in (retriever.retrieve("lstm swish"), await other.aretrieve("lstm swish")):
        assert {hit.text for hit in hits} == {"lstm cell", "relu layer", "swish layer"}
        assert {hit.text for hit in hits if hit.posrag["sparse"]} == {"lstm cell", "swish layer"}
    index.refresh_ref_docs([of_document("pool layer", "c")])
    assert [hit.text for hit in retriever.retrieve("pool") if hit.posrag["sparse"]] == [
        "pool layer"
    ]
    assert engine_of(retriever).nodes == index.docstore.get_nodes(held_nodes(index)[0])


def test_a_node_whose_metadata_alone_change_is_read_anew() -> None:
    """Its embedding is equal, as these are no part of the text."""

    def made(year: int) -> TextNode:
        hidden = ["year"]
        return TextNode(
            id_="a", text=QUERY, metadata={"year": year}, excluded_embed_metadata_keys=hidden
        )

    index = indexed([made(2020)])
    retriever = CAUSRetriever.from_index(index)
    index.insert_nodes([made(2021)])
    assert [hit.node.metadata["year"] for hit in retriever.retrieve(QUERY)] == [2021]
