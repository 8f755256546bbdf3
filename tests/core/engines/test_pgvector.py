"""Collections that langchain-postgres or LlamaIndex made are taken over as they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest

from shared_core import HybridIndex, Passage
from shared_core.corpora.torch_api import torch_api_passages
from shared_core.types import Query
from tests.adapters.drivers import LangChain

from .test_databases import filled, scores, vectors_of

psycopg = pytest.importorskip("psycopg")
PGVector = pytest.importorskip("langchain_postgres").PGVector

from shared_core.engines.adopting import (  # noqa: E402
    BATCH,
    Progress,
    adopt,
    langchain_postgres_rows,
    llamaindex_postgres_rows,
    selected_rows,
)
from shared_core.engines.postgres import PostgresEngine, sql  # noqa: E402

PASSAGES = [
    Passage(each.id, each.text, {"n": n, "odd": n % 2 == 1})
    for n, each in enumerate(torch_api_passages())
]
QUERY = Query("sum of all elements", vectors_of(["sum of all elements"])[0])


def write(made: Any, passages: Sequence[Passage]) -> None:
    made.add_embeddings(
        [passage.text for passage in passages],
        vectors_of([passage.text for passage in passages]).tolist(),
        [dict(passage.metadata) for passage in passages],
        [passage.id for passage in passages],
    )


def assert_holds(engine: PostgresEngine, passages: Sequence[Passage]) -> None:
    """Its answers are those of an index in memory over the same."""
    assert engine.count() == len(passages)
    assert engine.get(passage.id for passage in passages) == [*passages]
    (mine,) = engine.pool([QUERY], 5000)
    (theirs,) = filled(HybridIndex(), passages).pool([QUERY], 5000)
    wanted = scores(theirs)
    assert scores(mine).keys() == wanted.keys()
    for id, each in scores(mine).items():
        assert each == pytest.approx(wanted[id], rel=1e-5, abs=1e-6)


def test_a_langchain_collection(postgres: str) -> None:
    """In batches, interrupted and resumed; a second time brings what changed since."""
    address = postgres.replace("postgresql://", "postgresql+psycopg://")
    made, another = (
        PGVector(LangChain.model(), connection=address, collection_name=name)
        for name in ("handbook", "another")
    )
    write(made, PASSAGES)
    write(another, [Passage("elsewhere", "not this")])
    told = list[tuple[int, int]]()

    def interrupted(done: int, total: int) -> None:
        told.append((done, total))
        raise InterruptedError

    with psycopg.connect(postgres) as theirs, PostgresEngine(postgres, "adopted") as engine:

        def taken_over(name: str, progress: Progress) -> None:
            adopt(engine, langchain_postgres_rows(theirs, name), progress=progress)

        with pytest.raises(InterruptedError):
            taken_over("handbook", interrupted)
        assert engine.count() == BATCH
        with patch.object(engine, "add", wraps=engine.add) as added:
            taken_over("handbook", lambda *each: told.append(each))
        assert told[-1] == (len(PASSAGES), len(PASSAGES))
        assert sum(len(call.args[0]) for call in added.call_args_list) == len(PASSAGES) - BATCH
        assert_holds(engine, PASSAGES)

        made.delete([passage.id for passage in PASSAGES[:5]])
        longer = [Passage(each.id, each.text + " anew", each.metadata) for each in PASSAGES[5:8]]
        marked = Passage(PASSAGES[8].id, PASSAGES[8].text, {"odd": True})
        changed = [*longer, marked, Passage("new", "a new one", {"odd": True})]
        write(made, changed)
        with patch.object(engine, "add", wraps=engine.add) as added:
            adopt(engine, langchain_postgres_rows(theirs, "handbook"))
        assert sum(len(call.args[0]) for call in added.call_args_list) == 5
        now = [*changed, *PASSAGES[9:]]
        assert_holds(engine, now)
        with pytest.raises(ValueError, match=r"nothing to adopt.* is the name"):
            adopt(engine, langchain_postgres_rows(theirs, "handbok"))
        assert engine.count() == len(now)
    text = PASSAGES[20].text
    (document,) = made.similarity_search_by_vector(vectors_of([text])[0].tolist(), 1)
    assert document.page_content == text  # theirs is as it was


LLAMAINDEX = """
CREATE TABLE public.data_books (
    id BIGSERIAL NOT NULL, text VARCHAR NOT NULL, metadata_ JSON, node_id VARCHAR,
    embedding VECTOR(64), PRIMARY KEY (id)
);
CREATE INDEX books_idx_1 ON public.data_books USING btree ((metadata_ ->> 'ref_doc_id'));
"""
"""What llama-index-vector-stores-postgres 0.9.0 makes; it does not go with SQLAlchemy 2.1."""


def test_a_llamaindex_table(postgres: str) -> None:
    """Without LlamaIndex's own entries; of a node that was added twice, the latest."""
    given = PASSAGES[:300]
    rows = [
        (
            text,
            json.dumps({**passage.metadata, "_node_content": "{}", "_node_type": "TextNode"}),
            passage.id,
            json.dumps(vectors_of([text])[0].tolist()),
        )
        for passage, text in [(given[0], "an older text"), *((each, each.text) for each in given)]
    ]
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(LLAMAINDEX)
        connection.cursor().executemany(
            "INSERT INTO data_books (text, metadata_, node_id, embedding) VALUES (%s, %s, %s, %s)",
            rows,
        )
    with PostgresEngine(postgres, "books", metric="cosine") as engine:
        with psycopg.connect(postgres) as theirs:
            adopt(engine, llamaindex_postgres_rows(theirs, "Books"))
        assert_holds(engine, given)


def test_any_other_table(postgres: str) -> None:
    """By a statement of one's own."""
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(
            "CREATE TABLE mine AS SELECT 'a' AS key, 'red fish' AS body, '[1, 2]'::vector AS place"
        )
    rows = sql.SQL(
        "SELECT key AS id, body AS content, '{{}}'::jsonb AS metadata, place AS embedding FROM mine"
    ).format()
    with PostgresEngine(postgres, "mine", metric="inner_product") as engine:
        with psycopg.connect(postgres) as theirs:
            adopt(engine, selected_rows(theirs, rows))
        (pool,) = engine.pool([Query("fish", [3.0, 1.0])], 5)
        assert (pool.dense.tolist(), pool.passages) == ([5.0], [Passage("a", "red fish")])
