"""PostgreSQL with pgvector: both legs in the database, one statement and one round trip a query.

A collection is four tables: passages with their vectors; words; postings, which say how often a
passage holds a word, and how long it is; and one row of statistics. Writers lock that row, so that
what a reader sees has the statistics that belong to it, and two writers wait for each other.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from shared_core._extras import require
from shared_core.arrays import Vectors
from shared_core.checking import check_choice, check_count
from shared_core.errors import EngineError
from shared_core.index.dense import Buffer, DenseSnapshot, Metric
from shared_core.index.engine import InThreads, Leg
from shared_core.index.metadata import Where, wanted_values
from shared_core.index.passages import check_passages
from shared_core.index.sparse.bm25 import BM25Options
from shared_core.index.tokenize import tokenize
from shared_core.neighbour_spans import (
    Chunk,
    ChunkKeys,
    ChunkReader,
    Neighbourhood,
    PassageNeighbours,
)
from shared_core.types import Passage, Pool, Query, Tokenizer

psycopg = require("psycopg", extra="postgres")
psycopg_pool = require("psycopg_pool", extra="postgres")
sql = psycopg.sql

FORMAT = 1
SAMPLE = "The torch.nn.Linear layer's 2-D weights: naïve, 東京 and x_1!"
"""A tokenizer is known by what it makes of this."""

IDLE = 1.0
"""Seconds without an answer after which a connection is checked before it is used."""

BATCH = 500
"""Passages that one statement writes, so that none takes too long."""

OPERATORS = {
    "cosine": ("<=>", "1 - ", "vector_cosine_ops"),
    "inner_product": ("<#>", "-", "vector_ip_ops"),
}
"""Of pgvector: how rows are ordered, what makes a score of it, and the operators of a graph."""

Dense = Literal["flat", "hnsw"]

HNSW = """
CREATE INDEX ON {passages} USING hnsw (embedding {operators});
"""

TABLES = """
CREATE TABLE {passages} (
    row bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE, content text NOT NULL, metadata jsonb NOT NULL, source jsonb,
    length integer NOT NULL, embedding vector({dim}) NOT NULL
);
CREATE TABLE {words} (
    term integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, word text NOT NULL UNIQUE
);
CREATE TABLE {postings} (
    term integer NOT NULL, row bigint NOT NULL, count integer NOT NULL, length integer NOT NULL,
    PRIMARY KEY (term, row) INCLUDE (count, length)
);
CREATE INDEX ON {postings} (row);
CREATE TABLE {statistics} (n bigint NOT NULL, tokens bigint NOT NULL, options jsonb NOT NULL);
INSERT INTO {statistics} VALUES (0, 0, {options});
"""

POOL = """
WITH asked AS (
    SELECT array_agg(term) AS terms, array_agg(count) AS counts
    FROM unnest(%(words)s::text[], %(counts)s::float8[]) AS given (word, count)
    JOIN {words} USING (word)
), matching AS MATERIALIZED (
    SELECT term, row, count, length FROM {postings}
    WHERE term = ANY ((SELECT terms FROM asked)::integer[])
), weighed AS MATERIALIZED (
    SELECT term, (SELECT counts[array_position(terms, term)] FROM asked)
        * ln(1 + ((SELECT n FROM {statistics}) - count(*) + 0.5) / (count(*) + 0.5)) AS weight
    FROM matching GROUP BY term
), scored AS MATERIALIZED (
    SELECT row, sum(weight * count / (
        count + %(base)s + %(slope)s * length / (SELECT tokens::float8 / n FROM {statistics})
    )) AS score
    FROM matching JOIN weighed USING (term) GROUP BY row
), best AS (
    SELECT row FROM scored JOIN {passages} USING (row) WHERE {passing}
    ORDER BY score DESC, row LIMIT %(depth)s
), nearest AS (
    SELECT row FROM {passages} WHERE {passing}
    ORDER BY embedding {order} %(vector)s::vector LIMIT %(depth)s
), pool AS MATERIALIZED (
    SELECT row FROM best UNION SELECT row FROM nearest
), known AS MATERIALIZED (SELECT row, score FROM scored WHERE row IN (SELECT row FROM pool))
SELECT id, content, metadata, source,
    {sign} (embedding {order} %(vector)s::vector), coalesce(score, 0)
FROM {passages} LEFT JOIN known USING (row)
WHERE row = ANY (ARRAY (SELECT row FROM pool)) ORDER BY row
"""


class _Impatient(psycopg.Connection):  # type: ignore[misc, name-defined]
    """A connection on which nothing takes longer than `patience` seconds to be answered.

    The server gives a statement up by itself; what vanishes on the way is given up here.
    """

    patience = 10.0
    answered = -math.inf
    """When the server did last, by `time.monotonic`."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        answer = super().wait(gen, interval, self.patience if timeout is None else timeout)
        self.answered = time.monotonic()
        return answer


def _check_idle(connection: Any) -> None:
    """Have a pool replace a connection that broke while nobody used it.

    One that has just been used is not asked: that would be a round trip more for every query.
    """
    if time.monotonic() - connection.answered > IDLE:
        psycopg_pool.ConnectionPool.check_connection(connection)


class PostgresEngine(InThreads):
    """Passages in a PostgreSQL database, which searches and scores both legs itself.

    Every passage of a pool is scored exactly by both legs, from one snapshot, with the statistics
    of that moment. Writes are transactions: all or nothing, one after the other.

    Parameters
    ----------
    address
        ``postgresql://user:password@host:port/database``, or what else libpq understands.
    collection
        First part of the names of its tables, which are made when passages are first added.
    schema
        Where the tables are.
    metric, k1, b, tokenizer
        As in `HybridIndex`, of a collection that is new; of another they must be its own.
    dense
        ``"flat"``: every vector is compared. ``"hnsw"``: pgvector's graph proposes passages, and
        may miss some, so that pools are not complete; scores are exact all the same.
    ef
        Candidates that the graph keeps in view (``hnsw.ef_search``), 1 to 1,000: at least the depth
        of a search, and the more, the fewer it misses.
    pool_size
        Most connections.
    timeout
        Seconds after which connecting, or a statement, is given up.
    encode_source, decode_source
        Make a passage's `source` JSON-able, and back. Without them, sources are not kept.

    Raises
    ------
    EngineError
        If the database cannot be reached.
    ValueError
        If an option is out of range, or not that of the collection.
    MissingExtraError
        If psycopg is not installed.
    """

    def __init__(
        self,
        address: str,
        collection: str = "posrag",
        *,
        schema: str = "public",
        metric: Metric = "cosine",
        dense: Dense = "flat",
        ef: int = 100,
        k1: float | None = None,
        b: float = 0.75,
        tokenizer: Tokenizer | None = None,
        pool_size: int = 4,
        timeout: float = 10.0,
        encode_source: Callable[[Any], Any] | None = None,
        decode_source: Callable[[Any], Any] | None = None,
    ) -> None:
        check_choice(metric, "metric", Metric)
        check_choice(dense, "dense", Dense)
        self.collection, self.metric, self.dense = collection, metric, dense
        self.bm25 = BM25Options(k1=k1, b=b)
        self.tokenizer = tokenize if tokenizer is None else tokenizer
        self._encode, self._decode = encode_source, decode_source
        self._names = {
            each: sql.Identifier(schema, f"{collection}_{each}")
            for each in ("passages", "words", "postings", "statistics")
        }
        self._checker: DenseSnapshot | None = None
        shown = psycopg.conninfo.conninfo_to_dict(address)
        self._shown = "postgresql://{}:{}/{}".format(
            shown.get("host", "localhost"), shown.get("port", 5432), shown.get("dbname", "")
        )
        self._timeout = timeout
        milliseconds = int(timeout * 1000)
        self._pool = psycopg_pool.ConnectionPool(
            address,
            min_size=0,
            max_size=check_count(pool_size, "pool_size"),
            timeout=timeout,
            reconnect_timeout=timeout,
            open=True,
            check=_check_idle,
            connection_class=type("Connection", (_Impatient,), {"patience": timeout + 1}),
            kwargs={
                "autocommit": True,
                "connect_timeout": max(2, int(timeout)),
                "tcp_user_timeout": milliseconds,
                "keepalives_idle": max(1, int(timeout / 3)),
                "keepalives_interval": max(1, int(timeout / 3)),
                "keepalives_count": 2,
                "options": f"-c statement_timeout={milliseconds} -c jit=off "
                f"-c hnsw.ef_search={check_count(ef, 'ef')} "
                "-c hnsw.iterative_scan=strict_order",
            },
        )
        self._known()

    def __repr__(self) -> str:
        return f"PostgresEngine({self._shown!r}, {self.collection!r})"

    @property
    def embeds(self) -> bool:
        """False: `add` and `pool` take vectors."""
        return False

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        try:
            with self._pool.connection() as connection:
                yield connection
        except (psycopg.OperationalError, psycopg_pool.PoolTimeout) as error:
            raise EngineError(
                f"{self._shown} does not answer within {self._timeout:g} s ({error}): is the "
                "server up and reachable? timeout= gives it longer"
            ) from error

    def _known(self) -> bool:
        """Return whether the collection is there, and check the options against its own."""
        if self._checker is not None:
            return True
        with self._connection() as connection:
            if not self._is_there(connection):
                return False
            (saved,) = connection.execute(self._sql("SELECT options FROM {statistics}")).fetchone()
        if saved["format"] != FORMAT:
            raise ValueError(
                f"{self!r} has format {saved['format']}, this version reads format {FORMAT}: "
                "index its documents anew, under another name"
            )
        own = self._options(saved["dim"])
        for name, value in own.items():
            if saved[name] != value:
                raise ValueError(
                    f"{self!r} was made with {name}={saved[name]!r}, not {value!r}: give that, or "
                    "another collection"
                )
        self._checker = _checker(self.metric, saved["dim"])
        return True

    def _is_there(self, connection: Any) -> bool:
        table = self._names["statistics"].as_string()
        (there,) = connection.execute("SELECT to_regclass(%s)", (table,)).fetchone()
        return there is not None

    def _options(self, dim: int) -> dict[str, Any]:
        tokens = json.dumps(self.tokenizer(SAMPLE))
        return {
            "format": FORMAT,
            "dim": dim,
            "metric": self.metric,
            "dense": self.dense,
            "k1": self.bm25.k1,
            "b": self.bm25.b,
            "tokenizer": sha256(tokens.encode()).hexdigest()[:16],
        }

    def _sql(self, text: str, **parts: Any) -> Any:
        return sql.SQL(text).format(**self._names, **parts)

    def pool(self, queries: Sequence[Query], depth: int, *, where: Where = None) -> list[Pool]:
        """Return, for each query, the best `depth` passages of either leg, scored by both.

        Raises
        ------
        ValueError
            If `depth` is below 1, the filter cannot be applied here, or a vector is missing or does
            not fit.
        EngineError
            If the database does not answer.
        """
        check_count(depth, "depth")
        if not self._known():
            return [Pool((), np.zeros(0), np.zeros(0), query=each.text.strip()) for each in queries]
        passing, values = _condition(where)
        order, sign, _ = OPERATORS[self.metric]
        statement = self._sql(POOL, passing=passing, order=sql.SQL(order), sign=sql.SQL(sign))
        asked = [values | self._asked(query, depth) for query in queries]
        with self._connection() as connection:
            if len(asked) == 1:
                found = [connection.execute(statement, asked[0]).fetchall()]
            else:
                with connection.transaction(), connection.pipeline():
                    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    cursors = [connection.execute(statement, each) for each in asked]
                found = [cursor.fetchall() for cursor in cursors]
        return [*map(self._pool_of, queries, found)]

    def _asked(self, query: Query, depth: int) -> dict[str, Any]:
        assert self._checker is not None
        words = Counter(self.tokenizer(query.text))
        slope, base = self.bm25.length_norm(1.0)
        return {
            "words": [*words],
            "counts": [*map(float, words.values())],
            "slope": slope,
            "base": base,
            "depth": depth,
            "vector": _literal(self._checker.unit(query.vector)),
        }

    def _pool_of(self, query: Query, rows: Sequence[Sequence[Any]]) -> Pool:
        dense = np.array([row[4] for row in rows], np.float64)
        cosines = self.metric == "cosine" and len(rows)
        return Pool(
            [self._passage(*row[:4]) for row in rows],
            dense,
            np.array([row[5] for row in rows], np.float64),
            complete=self.dense == "flat",
            nearest=float(dense.max()) if cosines else None,
            query=query.text.strip(),
        )

    def _passage(self, id: str, text: str, metadata: dict[str, Any], source: Any) -> Passage:
        decoded = self._decode(source) if self._decode and source is not None else None
        return Passage(id, text, metadata, decoded)

    def search_leg(
        self, leg: Leg, query: Query, k: int, *, where: Where = None
    ) -> list[tuple[Passage, float]]:
        """Return the best `k` passages of one leg with its scores, best first.

        Raises
        ------
        ValueError, EngineError
            As `pool`, and if there is no such leg.
        """
        check_choice(leg, "leg", Leg)
        (pool,) = self.pool([query], k, where=where)
        scores = pool.dense if leg == "dense" else pool.sparse
        best = np.argsort(-scores, kind="stable")[:k]
        return [
            (pool.passages[at], float(scores[at]))
            for at in best
            if leg == "dense" or scores[at] > 0
        ]

    def neighbours(
        self, reader: ChunkReader | None = None, *, where: Where = None
    ) -> _StoredNeighbours:
        """Return the passages as a source of neighbours: it reads the documents of what is found.

        Raises
        ------
        ValueError
            If the filter cannot be applied in the database.
        """
        return _StoredNeighbours(self, reader or ChunkKeys(), where)

    def documents(
        self, key: str, names: Sequence[str], where: Where
    ) -> tuple[list[Passage], Vectors]:
        """Return the passages whose metadata have one of `names` under `key`, and their vectors."""
        passing, values = _condition(where)
        statement = self._sql(
            "SELECT id, content, metadata, source, embedding::text FROM {passages} "
            "WHERE metadata ->> %(key)s = ANY (%(names)s) AND {passing} ORDER BY row",
            passing=passing,
        )
        with self._connection() as connection:
            rows = connection.execute(
                statement, values | {"key": key, "names": [*names]}
            ).fetchall()
        vectors = np.array([json.loads(row[4]) for row in rows], np.float32)
        return [self._passage(*row[:4]) for row in rows], vectors

    def add(self, passages: Sequence[Passage], vectors: npt.ArrayLike | None = None) -> list[str]:
        """Add passages, or replace those whose id is there; all of them or none.

        Raises
        ------
        ValueError
            As `HybridIndex.add`, and if metadata are not JSON.
        EngineError
            If the database does not answer; nothing was written then.
        """
        passages = [*passages]
        check_passages(passages)
        if not passages:
            return []
        if vectors is None:
            raise ValueError("the database does not embed texts: give the vectors of the passages")
        checker = self._checker or DenseSnapshot(self.metric, "flat")
        matrix = checker.checked(vectors, [f"passage {each.id!r}" for each in passages])
        counted = [Counter(self.tokenizer(each.text)) for each in passages]
        ids = [passage.id for passage in passages]
        with self._connection() as connection:
            self._create(connection, matrix.shape[1])
            with connection.transaction():
                self._lock(connection)
                self._delete(connection, ids)
                self._insert(connection, passages, matrix, counted)
        return ids

    def _create(self, connection: Any, dim: int) -> None:
        if self._known():
            return
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (self.collection,))
            if not self._is_there(connection):
                self._create_extension(connection)
                options = sql.Literal(json.dumps(self._options(dim)))
                connection.execute(self._sql(TABLES, dim=sql.Literal(dim), options=options))
                if self.dense == "hnsw":
                    operators = sql.SQL(OPERATORS[self.metric][2])
                    connection.execute(self._sql(HNSW, operators=operators))
        self._known()

    def _create_extension(self, connection: Any) -> None:
        there = connection.execute("SELECT FROM pg_extension WHERE extname = 'vector'").fetchone()
        if there is None:
            try:
                connection.execute("CREATE EXTENSION vector")
            except psycopg.Error as error:
                raise EngineError(
                    f"{self._shown} lacks pgvector, and this user cannot add it ({error}): have an "
                    "administrator of the database run CREATE EXTENSION vector;"
                ) from error

    def _lock(self, connection: Any) -> None:
        connection.execute(self._sql("SELECT FROM {statistics} FOR UPDATE"))

    def _insert(
        self,
        connection: Any,
        passages: Sequence[Passage],
        vectors: Vectors,
        counted: Sequence[Counter[str]],
    ) -> None:
        words = sorted({word for counts in counted for word in counts})
        connection.execute(
            self._sql(
                "INSERT INTO {words} (word) SELECT word FROM unnest(%s::text[]) AS given (word) "
                "WHERE NOT EXISTS (SELECT FROM {words} WHERE {words}.word = given.word)"
            ),
            (words,),
        )
        terms = dict(
            connection.execute(
                self._sql("SELECT word, term FROM {words} WHERE word = ANY (%s)"), (words,)
            ).fetchall()
        )
        rows = [
            row
            for (row,) in connection.execute(
                "SELECT nextval(pg_get_serial_sequence(%s, 'row')) FROM generate_series(1, %s)",
                (self._names["passages"].as_string(), len(passages)),
            )
        ]
        lengths = [counts.total() for counts in counted]
        cursor = connection.cursor()
        for first in range(0, len(passages), BATCH):
            batch = range(first, min(first + BATCH, len(passages)))
            with cursor.copy(self._sql("COPY {passages} FROM STDIN")) as copy:
                for at in batch:
                    copy.write_row(self._record(passages[at], rows[at], lengths[at], vectors[at]))
            with cursor.copy(self._sql("COPY {postings} FROM STDIN")) as copy:
                for at in batch:
                    for word, count in counted[at].items():
                        copy.write_row((terms[word], rows[at], count, lengths[at]))
        self._count(connection, len(passages), sum(lengths))

    def _record(self, passage: Passage, row: int, length: int, vector: Vectors) -> tuple[Any, ...]:
        source = self._encode(passage.source) if self._encode else None
        metadata = json.dumps(dict(passage.metadata))
        kept = None if source is None else json.dumps(source)
        return row, passage.id, passage.text, metadata, kept, length, _literal(vector)

    def _count(self, connection: Any, passages: int, tokens: int) -> None:
        connection.execute(
            self._sql("UPDATE {statistics} SET n = n + %s, tokens = tokens + %s"),
            (passages, tokens),
        )

    def delete(self, ids: Iterable[str]) -> list[str]:
        """Delete passages; return the ids that were there.

        Raises
        ------
        EngineError
            If the database does not answer.
        """
        ids = [*ids]
        if not ids or not self._known():
            return []
        with self._connection() as connection, connection.transaction():
            self._lock(connection)
            there = self._delete(connection, ids)
        return [id for id in dict.fromkeys(ids) if id in there]

    def _delete(self, connection: Any, ids: Sequence[str]) -> set[str]:
        gone = connection.execute(
            self._sql("DELETE FROM {passages} WHERE id = ANY (%s) RETURNING id, row, length"),
            ([*ids],),
        ).fetchall()
        if gone:
            rows = [row for _, row, _ in gone]
            connection.execute(self._sql("DELETE FROM {postings} WHERE row = ANY (%s)"), (rows,))
            self._count(connection, -len(gone), -sum(length for _, _, length in gone))
        return {id for id, _, _ in gone}

    def get(self, ids: Iterable[str]) -> list[Passage]:
        """Return the passages of `ids` that are there, in that order."""
        ids = [*ids]
        if not ids or not self._known():
            return []
        statement = self._sql(
            "SELECT id, content, metadata, source FROM {passages} WHERE id = ANY (%s)"
        )
        with self._connection() as connection:
            rows = connection.execute(statement, (ids,)).fetchall()
        there = {row[0]: self._passage(*row) for row in rows}
        return [there[id] for id in ids if id in there]

    def count(self) -> int:
        """Return the number of passages."""
        if not self._known():
            return 0
        with self._connection() as connection:
            (n,) = connection.execute(self._sql("SELECT n FROM {statistics}")).fetchone()
        return int(n)

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _StoredNeighbours:
    """The chunks of the documents that a query found, read when they are asked for."""

    def __init__(self, engine: PostgresEngine, reader: ChunkReader, where: Where) -> None:
        self._engine, self._reader, self._where = engine, reader, where
        self._read = PassageNeighbours.of([], reader)

    def around(self, seeds: Sequence[Chunk], window: int) -> Sequence[Neighbourhood]:
        """See `shared_core.neighbour_spans.ChunkSource`."""
        names = sorted({seed.document.partition("#")[0] for seed in seeds})
        key = getattr(self._reader, "document", ChunkKeys.document)
        passages, vectors = self._engine.documents(key, names, self._where)
        self._read = PassageNeighbours.of(passages, self._reader, vectors)
        return self._read.around(seeds, window)

    def continuity(self, pairs: Sequence[tuple[Chunk, Chunk]]) -> list[float | None] | None:
        """See `PassageNeighbours.continuity`."""
        return self._read.continuity(pairs)


def _checker(metric: Metric, dim: int) -> DenseSnapshot:
    """Return what checks vectors of a dimension as an index in memory does."""
    return DenseSnapshot(metric, "flat", Buffer(np.zeros((0, dim), np.float32)))


def _literal(vector: Vectors) -> str:
    return "[" + ",".join(map(str, vector.tolist())) + "]"


def _condition(where: Where) -> tuple[Any, dict[str, Any]]:
    """Return a filter as a condition on the metadata, and its values by name."""
    if where is None:
        return sql.SQL("true"), {}
    if isinstance(where, sql.Composable):
        return where, {}
    if not isinstance(where, Mapping):
        raise ValueError(
            f"{where!r} cannot be applied in the database: give a mapping, such as "
            '{"lang": "en"}, or a condition made by psycopg.sql'
        )
    conditions, values = [], dict[str, Any]()
    for at, (key, value) in enumerate(where.items()):
        values |= {f"key{at}": key, f"in{at}": [json.dumps(each) for each in wanted_values(value)]}
        conditions.append(sql.SQL(f"metadata -> %(key{at})s = ANY (%(in{at})s::jsonb[])"))
    return sql.SQL(" AND ").join([sql.SQL("true"), *conditions]), values
