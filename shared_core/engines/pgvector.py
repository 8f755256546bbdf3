"""Passages in pgvector tables of other programs, taken over without embedding anything again.

They are copied into a collection of `PostgresEngine`, which has the words that their tables lack.
Their tables are only read.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from shared_core.engines.adopting import Progress
from shared_core.engines.postgres import PostgresEngine, sql
from shared_core.types import Passage

BATCH = 1_000
"""Passages that are written at once."""

LANGCHAIN = """
SELECT id, document AS content, coalesce(held.cmetadata, '{{}}') AS metadata, embedding
FROM {schema}.langchain_pg_embedding AS held
JOIN {schema}.langchain_pg_collection ON collection_id = uuid
WHERE name = {name} AND document IS NOT NULL AND embedding IS NOT NULL
"""

LLAMAINDEX = """
SELECT DISTINCT ON (node_id) node_id AS id, text AS content, embedding::vector AS embedding,
    coalesce(metadata_, '{{}}')::jsonb - '{{_node_content,_node_type}}'::text[] AS metadata
FROM {table} AS held WHERE embedding IS NOT NULL ORDER BY node_id, held.id DESC
"""

CHANGED = """
FROM ({rows}) AS theirs LEFT JOIN {passages} AS ours USING (id)
WHERE ours.id IS NULL OR ours.content <> theirs.content OR ours.metadata <> theirs.metadata
    OR {moved}
"""

MOVED = {
    "cosine": "(ours.embedding <=> theirs.embedding) > 1e-5",
    "inner_product": "ours.embedding <> theirs.embedding",
}
"""Whether a vector is another: for the cosine, ours have unit length."""

GONE = """
SELECT id FROM {passages} AS ours
WHERE NOT EXISTS (SELECT FROM ({rows}) AS theirs WHERE theirs.id = ours.id)
"""


def langchain_rows(collection: str, *, schema: str = "public") -> Any:
    """Return the rows of a collection of langchain-postgres's ``PGVector``, for `adopt`."""
    return sql.SQL(LANGCHAIN).format(schema=sql.Identifier(schema), name=sql.Literal(collection))


def llamaindex_rows(table_name: str, *, schema: str = "public") -> Any:
    """Return the rows of LlamaIndex's ``PGVectorStore`` of that `table_name`, for `adopt`.

    The text is the node's own, without metadata. Of a node that was added twice, the latest counts.
    """
    return sql.SQL(LLAMAINDEX).format(table=sql.Identifier(schema, f"data_{table_name.lower()}"))


def adopt(engine: PostgresEngine, rows: Any, *, progress: Progress | None = None) -> None:
    """Make a collection hold what another program's tables in its database hold.

    What is there and equal is skipped, what differs or is missing is copied in batches, and what
    is gone from their tables is deleted: also passages that somebody else added to the collection,
    so give it one of its own. An interrupted call is repeated; so is one after later writes.

    Parameters
    ----------
    engine
        The collection; made if it is not there. It needs two connections.
    rows
        `langchain_rows`, `llamaindex_rows`, or a SELECT of your own, made by ``psycopg.sql``, of
        the columns ``id`` and ``content`` (text), ``metadata`` (jsonb) and ``embedding`` (vector).
    progress
        Called after every batch with how many passages are done, and how many are to be copied.

    Raises
    ------
    ValueError
        If there are no such rows, or vectors do not fit the collection.
    EngineError
        If the database does not answer; the timeout of the engine must be long enough to compare
        all rows.
    """
    first = engine._rows("SELECT vector_dims(embedding) FROM ({rows}) AS r LIMIT 1", rows=rows)
    if not first:
        raise ValueError(f"there is nothing to adopt in {engine.shown}: is the name right?")
    engine._ensure(first[0][0])
    changed = engine._sql(CHANGED, rows=rows, moved=sql.SQL(MOVED[engine.metric]))
    with engine._connection() as connection, connection.transaction():
        (total,) = connection.execute(sql.SQL("SELECT count(*) ") + changed).fetchone()
        cursor = connection.cursor(name="posrag_adopt")
        columns = "SELECT id, theirs.content, theirs.metadata, theirs.embedding::text "
        cursor.execute(sql.SQL(columns) + changed)
        done = 0
        while batch := cursor.fetchmany(BATCH):
            vectors = np.array([json.loads(row[3]) for row in batch], np.float32)
            engine.add([Passage(*row[:3]) for row in batch], vectors)
            done += len(batch)
            if progress is not None:
                progress(done, total)
        gone = [id for (id,) in connection.execute(engine._sql(GONE, rows=rows))]
    for start in range(0, len(gone), BATCH):
        engine.delete(gone[start : start + BATCH])
