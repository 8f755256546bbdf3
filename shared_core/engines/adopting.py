"""Collections that other programs filled, taken over without embedding anything again.

Passages and vectors are copied into a collection of an engine, which has the words that theirs
lacks. Theirs is only read, so that the program that fills it goes on as before; `adopt` again takes
over what it has changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from shared_core._extras import require
from shared_core.arrays import Vectors
from shared_core.engines.collection import CollectionEngine, rows_to_write
from shared_core.engines.store import qdrant_pages
from shared_core.neighbour_spans.places import SOURCE, WITHOUT_SOURCE
from shared_core.types import Passage

BATCH = 500
"""Passages that are read and written at once."""

Progress: TypeAlias = Callable[[int, int], None]

LANGCHAIN = """
SELECT id, document AS content, coalesce(held.cmetadata, '{{}}') AS metadata, embedding
FROM {schema}.langchain_pg_embedding AS held
JOIN {schema}.langchain_pg_collection ON collection_id = uuid
WHERE name = {name} AND document IS NOT NULL AND embedding IS NOT NULL
"""

LLAMAINDEX = """
SELECT DISTINCT ON (node_id) node_id AS id, text AS content, embedding::vector AS embedding,
    coalesce(metadata_, '{{}}')::jsonb
    - '{{_node_content,_node_type,doc_id,ref_doc_id,document_id}}'::text[]
    || jsonb_strip_nulls(jsonb_build_object({source}, metadata_ ->> 'ref_doc_id')) AS metadata
FROM {table} AS held WHERE embedding IS NOT NULL ORDER BY node_id, held.id DESC
"""


class Rows(NamedTuple):
    """What is to be taken over: how many passages, and batches of them with their vectors."""

    total: int
    batches: Iterator[tuple[Sequence[Passage], Vectors]]


def adopt(engine: CollectionEngine, rows: Rows, *, progress: Progress | None = None) -> None:
    """Make a collection hold what another program's holds.

    What is there with the same text and metadata is skipped, the rest is written in batches, and
    what is gone from theirs is deleted: also passages that somebody else added, so give the
    collection to this alone. An interrupted call is repeated; so is one after later writes. A
    vector that alone has changed is not noticed: after embedding anew take another collection.

    Parameters
    ----------
    engine
        The collection; made if it is not there.
    rows
        `langchain_postgres_rows`, `qdrant_rows` or another of this module, or your own.
    progress
        Called after every batch with how many passages are done, and how many there are.

    Raises
    ------
    ValueError
        If there is nothing, or it has no texts or vectors where they are looked for.
    EngineError
        If the database of the engine does not answer.
    """
    seen: set[str] = set()
    for passages, vectors in rows.batches:
        changed = rows_to_write(engine, passages)
        if changed:
            engine.add([passages[at] for at in changed], np.asarray(vectors)[changed])
        seen |= {passage.id for passage in passages}
        if progress is not None:
            progress(len(seen), rows.total)
    if not seen:
        raise ValueError("there is nothing to adopt: is the name of the collection right?")
    engine.delete([id for id in engine.ids() if id not in seen])
    engine.take_up_mean()


def langchain_postgres_rows(connection: Any, collection: str, *, schema: str = "public") -> Rows:
    """Return what langchain-postgres's ``PGVector`` stored under the name `collection`.

    `connection` is a ``psycopg.Connection``, which the rows use alone while they are read.
    """
    sql: Any = require("psycopg", extra="postgres").sql
    names = {"schema": sql.Identifier(schema), "name": sql.Literal(collection)}
    return selected_rows(connection, sql.SQL(LANGCHAIN).format(**names))


def llamaindex_postgres_rows(connection: Any, table_name: str, *, schema: str = "public") -> Rows:
    """Return what LlamaIndex's ``PGVectorStore`` of that `table_name` stored.

    The text is the node's own, without metadata. Of a node that was added twice, the latest counts.
    """
    sql: Any = require("psycopg", extra="postgres").sql
    table = sql.Identifier(schema, f"data_{table_name.lower()}")
    select = sql.SQL(LLAMAINDEX).format(table=table, source=sql.Literal(SOURCE))
    return selected_rows(connection, select)


def selected_rows(connection: Any, select: Any) -> Rows:
    """Return what a SELECT of yours finds in PostgreSQL.

    Parameters
    ----------
    connection
        A ``psycopg.Connection``.
    select
        A statement made by ``psycopg.sql``, of the columns ``id`` and ``content`` (text),
        ``metadata`` (jsonb) and ``embedding`` (vector).
    """
    sql: Any = require("psycopg", extra="postgres").sql

    def batches() -> Iterator[tuple[Sequence[Passage], Vectors]]:
        columns = sql.SQL("SELECT id, content, metadata, embedding::text FROM ({}) AS held")
        with connection.transaction(), connection.cursor(name="posrag_adopt") as cursor:
            cursor.execute(columns.format(select))
            while rows := cursor.fetchmany(BATCH):
                vectors = np.array([json.loads(row[3]) for row in rows], np.float32)
                yield [Passage(*row[:3]) for row in rows], vectors

    total = sql.SQL("SELECT count(*) FROM ({}) AS held").format(select)
    return Rows(connection.execute(total).fetchone()[0], batches())


def qdrant_rows(
    client: Any,
    collection: str,
    *,
    vector: str | None = None,
    content: str = "page_content",
    metadata: str = "metadata",
) -> Rows:
    """Return what langchain-qdrant or LlamaIndex's ``QdrantVectorStore`` stored.

    Parameters
    ----------
    client
        A ``qdrant_client.QdrantClient``.
    collection
        Its name.
    vector
        Name of the dense vectors; by default the only ones.
    content, metadata
        Keys of the payload, unless LlamaIndex wrote it.

    Raises
    ------
    ValueError
        If there are several dense vectors, and none is named.
    """
    configured = client.get_collection(collection).config.params.vectors
    if vector is None and isinstance(configured, Mapping):
        if len(configured) != 1:
            raise ValueError(
                f"collection {collection!r} has vectors {sorted(configured)}: say which by vector="
            )
        vector = next(iter(configured))

    def batches() -> Iterator[tuple[Sequence[Passage], Vectors]]:
        wanted = [vector] if vector else True
        for points in qdrant_pages(client.scroll, collection, limit=BATCH, with_vectors=wanted):
            given = [point.vector for point in points]  # by name, if there are others
            held = [each[vector or ""] if isinstance(each, Mapping) else each for each in given]
            records = [(str(point.id), point.payload or {}) for point in points]
            passages = [_passage(id, each, content, each.get(metadata)) for id, each in records]
            yield passages, np.array(held, np.float32)

    return Rows(client.count(collection, exact=True).count, batches())


def lancedb_rows(
    table: Any,
    *,
    id: str = "id",
    vector: str = "vector",
    content: str = "text",
    metadata: str = "metadata",
) -> Rows:
    """Return what LangChain's ``LanceDB`` or LlamaIndex's ``LanceDBVectorStore`` stored.

    Parameters
    ----------
    table
        A ``lancedb.table.Table``.
    id, vector, content, metadata
        Its columns.
    """

    def batches() -> Iterator[tuple[Sequence[Passage], Vectors]]:
        for batch in table.search().select([id, vector, content, metadata]).to_batches(BATCH):
            rows = batch.to_pylist()
            if rows:
                held = [_lancedb_metadata(row[metadata]) for row in rows]
                passages = [
                    _passage(str(row[id]), row, content, each)
                    for row, each in zip(rows, held, strict=True)
                ]
                yield passages, np.array([row[vector] for row in rows], np.float32)

    return Rows(table.count_rows(), batches())


def _lancedb_metadata(held: Any) -> Mapping[str, Any]:
    """Return metadata out of JSON, or out of a struct, which has None where a row lacks a key."""
    if isinstance(held, str):
        return dict(json.loads(held))
    return {key: value for key, value in (held or {}).items() if value is not None}


def milvus_rows(
    client: Any,
    collection: str,
    *,
    id: str | None = None,
    vector: str | None = None,
    content: str = "text",
) -> Rows:
    """Return what langchain-milvus or LlamaIndex's ``MilvusVectorStore`` stored.

    All other fields are metadata, but vectors.

    Parameters
    ----------
    client
        A ``pymilvus.MilvusClient``.
    collection
        Its name.
    id, vector, content
        Its fields. None: the primary one, and the only one of dense vectors.

    Raises
    ------
    ValueError
        If the collection has no such fields, or several of dense vectors.
    """
    fields = client.describe_collection(collection)["fields"]
    kinds = {field["name"]: field["type"].name for field in fields}
    id = id or next(field["name"] for field in fields if field.get("is_primary"))
    dense = [name for name, kind in kinds.items() if kind == "FLOAT_VECTOR"]
    if vector is None and len(dense) == 1:
        (vector,) = dense
    if vector not in dense or id not in kinds:
        raise ValueError(
            f"collection {collection!r} has dense vectors {dense} and the fields "
            f"{', '.join(kinds)}: say which by vector= and id="
        )
    unread = {id, content, *(name for name, kind in kinds.items() if kind.endswith("VECTOR"))}

    def batches() -> Iterator[tuple[Sequence[Passage], Vectors]]:
        found = client.query_iterator(collection, batch_size=BATCH, output_fields=["*"])
        while rows := found.next():
            passages = []
            for row in rows:
                others = {key: row[key] for key in row.keys() - unread}
                passages.append(_passage(str(row[id]), row, content, others))
            yield passages, np.array([row[vector] for row in rows], np.float32)
        found.close()

    (counted,) = client.query(collection, output_fields=["count(*)"])
    return Rows(int(counted["count(*)"]), batches())


def _passage(
    id: str, record: Mapping[str, Any], content: str, metadata: Mapping[str, Any] | None
) -> Passage:
    """Return the passage of a record, as LangChain or LlamaIndex have it."""
    for held in (record, metadata or {}):
        if "_node_content" in held:
            node = json.loads(held["_node_content"])
            document = held.get("ref_doc_id", WITHOUT_SOURCE)
            metadata = node["metadata"] | ({} if document == WITHOUT_SOURCE else {SOURCE: document})
            return Passage(id, node.get("text") or record.get(content) or "", metadata)
    if record.get(content) is None:
        raise ValueError(
            f"record {id!r} has no text under {content!r}; it has {', '.join(sorted(record))}: say "
            "which by content="
        )
    return Passage(id, record[content], metadata or {})
