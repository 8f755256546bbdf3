"""Collections that other programs filled, taken over without embedding anything again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import pytest

from shared_core import Passage
from shared_core.engines import adopting, connect
from shared_core.engines.adopting import (
    Rows,
    adopt,
    lancedb_rows,
    langchain_postgres_rows,
    llamaindex_postgres_rows,
    milvus_rows,
    qdrant_rows,
)
from shared_core.engines.collection import CollectionEngine
from shared_core.types import Query
from tests.adapters.drivers import LangChain
from tests.core.making import random_vectors

TEXTS = [f"passage {n} says {'relu' if n % 3 else 'pool'}" for n in range(12)]
IDS = [str(uuid5(NAMESPACE_URL, text)) for text in TEXTS]
PASSAGES = [
    Passage(id, text, {"n": n}) for n, (id, text) in enumerate(zip(IDS, TEXTS, strict=True))
]
VECTORS = random_vectors(len(TEXTS), dim=8, seed=3)


@pytest.fixture
def engine() -> Iterator[CollectionEngine]:
    pytest.importorskip("qdrant_client")
    with connect("qdrant://:memory:", "ours") as engine:
        yield engine


def check(engine: CollectionEngine, **more: Any) -> None:
    """Everything is there: ids, texts, metadata, both legs."""
    assert sorted(engine.ids()) == sorted(IDS)
    assert engine.get(IDS) == [
        replace(each, metadata={**each.metadata, **more}) for each in PASSAGES
    ]
    (pool,) = engine.pool([Query("pool", VECTORS[7])], 3)
    at = int(np.argmax(pool.dense))
    assert (pool.passages[at].id, round(float(pool.dense[at]), 5)) == (IDS[7], 1)
    assert {each.text for each in pool.passages if "pool" in each.text} <= {*TEXTS[::3]}


def node_of(passage: Passage) -> Mapping[str, Any]:
    """Return what LlamaIndex's integrations write of a node."""
    schema = pytest.importorskip("llama_index.core.schema")
    written = pytest.importorskip("llama_index.core.vector_stores.utils").node_to_metadata_dict
    node = schema.TextNode(id_=passage.id, text=passage.text, metadata=dict(passage.metadata))
    held: Mapping[str, Any] = written(node)
    return held


@pytest.fixture
def qdrant_client() -> Any:
    models = pytest.importorskip("qdrant_client.models")
    client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    size = models.VectorParams(size=8, distance=models.Distance.COSINE)
    client.create_collection("theirs", vectors_config=size)
    return client


def upsert(client: Any, collection: str, id: Any, vector: Any, payload: Mapping[str, Any]) -> None:
    models = pytest.importorskip("qdrant_client.models")
    client.upsert(collection, [models.PointStruct(id=id, vector=vector, payload=payload)])


@pytest.mark.parametrize("hybrid", [False, True])
def test_what_langchain_stored_in_qdrant(engine: CollectionEngine, hybrid: bool) -> None:
    """By its own class; what it changes and deletes is taken over by another call."""
    langchain = pytest.importorskip("langchain_qdrant")
    documents = pytest.importorskip("langchain_core.documents")
    models = pytest.importorskip("qdrant_client.models")

    class Embeddings(pytest.importorskip("langchain_core.embeddings").Embeddings):  # type: ignore[misc]
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [VECTORS[TEXTS.index(text) if text in TEXTS else 0].tolist() for text in texts]

        def embed_query(self, text: str) -> list[float]:
            raise AssertionError("nothing is embedded")

    class Words(langchain.SparseEmbeddings):  # type: ignore[misc, name-defined]
        def embed_documents(self, texts: list[str]) -> list[Any]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> Any:
            return langchain.sparse_embeddings.SparseVector(indices=[len(text)], values=[1.0])

    given = [documents.Document(p.text, id=p.id, metadata=p.metadata) for p in PASSAGES]
    modes: dict[str, Any] = {"location": ":memory:", "collection_name": "theirs"}
    if hybrid:
        mode = langchain.RetrievalMode.HYBRID
        modes |= {"retrieval_mode": mode, "sparse_embedding": Words()}
    store = langchain.QdrantVectorStore.from_documents(given, Embeddings(), **modes)
    rows = lambda: qdrant_rows(store.client, "theirs")  # noqa: E731
    adopt(engine, rows())
    check(engine)

    written = []
    former = engine.add
    engine.add = lambda passages, vectors: written.extend(passages) or former(passages, vectors)  # type: ignore
    adopt(engine, rows())
    assert written == []
    store.client.delete("theirs", models.PointIdsList(points=[IDS[0]]))
    store.add_documents([documents.Document("a new text", id=IDS[1], metadata={"n": 1})])
    adopt(engine, rows())
    assert [each.id for each in written] == [IDS[1]]
    assert sorted(engine.ids()) == sorted(IDS[1:])
    assert engine.get([IDS[1]])[0].text == "a new text"


def test_what_cannot_be_read_is_named(engine: CollectionEngine, qdrant_client: Any) -> None:
    upsert(qdrant_client, "theirs", 1, VECTORS[0].tolist(), {"body": "x", "lang": "en"})
    with pytest.raises(ValueError, match=r"no text under 'page_content'; it has body, lang: say"):
        adopt(engine, qdrant_rows(qdrant_client, "theirs"))
    adopt(engine, qdrant_rows(qdrant_client, "theirs", content="body"))
    assert engine.get(["1"]) == [Passage("1", "x")]


def test_an_interrupted_call_is_repeated(engine: CollectionEngine) -> None:
    """What was written stays; in the end words are weighed for the mean length of all."""
    longer = [replace(each, text=f"{each.text} " * 4) for each in PASSAGES[4:]]

    def batches(fails: bool) -> Iterator[Any]:
        yield PASSAGES[:4], VECTORS[:4]
        if fails:
            raise KeyboardInterrupt
        yield longer, VECTORS[4:]

    with pytest.raises(KeyboardInterrupt):
        adopt(engine, Rows(12, batches(True)))
    assert sorted(engine.ids()) == sorted(IDS[:4])
    adopt(engine, Rows(12, batches(False)))
    assert engine.get(IDS) == [*PASSAGES[:4], *longer]
    assert "amiss" not in (engine.describe() or {})


def test_what_llamaindex_stored_in_qdrant(engine: CollectionEngine, qdrant_client: Any) -> None:
    """As its integration writes nodes."""
    for passage, vector in zip(PASSAGES, VECTORS.tolist(), strict=True):
        upsert(qdrant_client, "theirs", passage.id, vector, node_of(passage))
    adopt(engine, qdrant_rows(qdrant_client, "theirs"))
    check(engine)


def as_json(passage: Passage) -> str:
    """Return metadata as langchain-lancedb keeps them."""
    return json.dumps(passage.metadata)


def as_struct(passage: Passage) -> Mapping[str, Any]:
    """Return metadata as LangChain's community package keeps them: rows share their keys."""
    return {**passage.metadata, "lang": "en" if passage.id == "extra" else None}


@pytest.mark.parametrize("held", [as_json, as_struct, node_of])
def test_what_others_stored_in_lancedb(engine: CollectionEngine, tmp_path: Path, held: Any) -> None:
    """Their columns."""
    lancedb = pytest.importorskip("lancedb")
    rows = [
        {"id": each.id, "vector": vector, "text": each.text, "metadata": held(each)}
        for each, vector in zip(
            [*PASSAGES, Passage("extra", "extra")], [*VECTORS.tolist(), [1.0] * 8], strict=True
        )
    ]
    adopt(engine, lancedb_rows(lancedb.connect(tmp_path).create_table("theirs", rows)))
    engine.delete(["extra"])
    check(engine)


def langchain_row(passage: Passage, vector: list[float]) -> Mapping[str, Any]:
    return {"pk": passage.id, "vector": vector, "text": passage.text, **passage.metadata}


def llamaindex_row(passage: Passage, vector: list[float]) -> Mapping[str, Any]:
    return {"id": passage.id, "embedding": vector, **node_of(passage)}


@pytest.mark.parametrize(
    ("id", "vector", "row"),
    [("pk", "vector", langchain_row), ("id", "embedding", llamaindex_row)],
    ids=["langchain", "llamaindex"],
)
def test_what_others_stored_in_milvus(
    engine: CollectionEngine, milvus: Any, id: str, vector: str, row: Any
) -> None:
    """Their fields, of which LangChain has metadata in all but three."""
    pymilvus = pytest.importorskip("pymilvus")
    client = pymilvus.MilvusClient(milvus[0].replace("milvus://", "http://"))
    name, fields = f"theirs_{id}", {"id_type": "string", "max_length": 64}
    client.create_collection(name, 8, primary_field_name=id, vector_field_name=vector, **fields)
    client.insert(name, [*map(row, PASSAGES, VECTORS.tolist())])
    adopt(engine, milvus_rows(client, name))
    check(engine)
    with pytest.raises(ValueError, match=rf"dense vectors \['{vector}'\] .* {id}, {vector}: say"):
        milvus_rows(client, name, vector="dense")
    client.close()


def test_sparse_vectors_in_milvus_are_no_metadata(engine: CollectionEngine, milvus: Any) -> None:
    """As langchain-milvus makes a collection with ``vector_field=["dense", "sparse"]``."""
    pymilvus = pytest.importorskip("pymilvus")
    client = pymilvus.MilvusClient(milvus[0].replace("milvus://", "http://"))
    schema, kinds = client.create_schema(enable_dynamic_field=True), pymilvus.DataType
    schema.add_field("pk", kinds.VARCHAR, is_primary=True, max_length=64)
    schema.add_field("text", kinds.VARCHAR, max_length=64)
    schema.add_field("dense", kinds.FLOAT_VECTOR, dim=8)
    schema.add_field("sparse", kinds.SPARSE_FLOAT_VECTOR)
    indexes = client.prepare_index_params()
    for name, kind in {"dense": "FLAT", "sparse": "SPARSE_INVERTED_INDEX"}.items():
        indexes.add_index(name, index_type=kind, metric_type="IP")
    client.create_collection("theirs_hybrid", schema=schema, index_params=indexes)
    rows = [
        {"pk": each.id, "text": each.text, "dense": vector, "sparse": {1: 0.5}, **each.metadata}
        for each, vector in zip(PASSAGES, VECTORS.tolist(), strict=True)
    ]
    client.insert("theirs_hybrid", rows)
    adopt(engine, milvus_rows(client, "theirs_hybrid"))
    check(engine)
    client.close()


def test_what_langchain_stored_in_postgres(
    engine: CollectionEngine, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In batches, and of one collection alone; theirs stays as it was."""
    psycopg = pytest.importorskip("psycopg")
    vector_store = pytest.importorskip("langchain_postgres").PGVector
    address = postgres.replace("postgresql://", "postgresql+psycopg://")
    made, another = (
        vector_store(LangChain.model(), connection=address, collection_name=name)
        for name in ("handbook", "another")
    )
    metadata = [dict(each.metadata) for each in PASSAGES]
    made.add_embeddings(TEXTS, VECTORS.tolist(), metadata, IDS)
    another.add_embeddings(["not this"], VECTORS[:1].tolist(), [{}], ["elsewhere"])
    monkeypatch.setattr(adopting, "BATCH", 5)
    told: list[tuple[int, int]] = []
    with psycopg.connect(postgres) as theirs:
        rows = langchain_postgres_rows(theirs, "handbook")
        adopt(engine, rows, progress=lambda *each: told.append(each))
        with pytest.raises(ValueError, match=r"nothing to adopt.* is the name"):
            adopt(engine, langchain_postgres_rows(theirs, "handbok"))
    assert told == [(5, 12), (10, 12), (12, 12)]
    check(engine)
    (document,) = made.similarity_search_by_vector(VECTORS[7].tolist(), 1)
    assert document.page_content == TEXTS[7]


LLAMAINDEX = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE public.data_books (
    id BIGSERIAL NOT NULL, text VARCHAR NOT NULL, metadata_ JSON, node_id VARCHAR,
    embedding VECTOR(8), PRIMARY KEY (id)
);
CREATE INDEX books_idx_1 ON public.data_books USING btree ((metadata_ ->> 'ref_doc_id'));
"""
"""What llama-index-vector-stores-postgres 0.9.0 makes; it does not go with SQLAlchemy 2.1."""


def test_what_llamaindex_stored_in_postgres(engine: CollectionEngine, postgres: str) -> None:
    """Without LlamaIndex's own entries; of a node that was added twice, the latest."""
    psycopg = pytest.importorskip("psycopg")
    own = dict.fromkeys(["_node_content", "_node_type", "doc_id", "ref_doc_id", "document_id"], "x")
    rows = [
        (text, json.dumps({**each.metadata, **own}), each.id, json.dumps(vector))
        for each, vector in zip(PASSAGES, VECTORS.tolist(), strict=True)
        for text in ("an older text", each.text)
    ]
    with psycopg.connect(postgres) as connection:
        connection.execute(LLAMAINDEX)
        connection.cursor().executemany(
            "INSERT INTO data_books (text, metadata_, node_id, embedding) VALUES (%s, %s, %s, %s)",
            rows,
        )
    with psycopg.connect(postgres) as theirs:
        adopt(engine, llamaindex_postgres_rows(theirs, "Books"))
    check(engine, llamaindex_ref_doc_id="x")
