"""PostgreSQL with pgvector: both legs in the database, one statement and one round trip a query.

A collection is four tables: passages with their vectors; words; postings, which say how often a
passage holds a word, and how long it is; and one row of statistics. Each transaction that writes
changes that row, so that what a reader sees has the statistics that belong to it. It does so last:
the row is locked briefly. Only those who write the same ids wait for each other.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from typing import Any, Unpack

import numpy as np

from shared_core._extras import require
from shared_core.arrays import Vectors
from shared_core.checking import check_choice, check_count
from shared_core.engines.collection import (
    CollectionArguments,
    CollectionEngine,
    Dense,
    Found,
    filtered,
)
from shared_core.errors import EngineError
from shared_core.index.metadata import SIGNS, Where
from shared_core.types import Passage

psycopg = require("psycopg", extra="postgres")
psycopg_pool = require("psycopg_pool", extra="postgres")
sql = psycopg.sql

IDLE = 1.0
"""Seconds without an answer after which a connection is checked before it is used."""

BATCH = 500
"""Passages that one statement writes, so that none takes too long."""

OPERATORS = {
    "cosine": ("<=>", "1 - ", "vector_cosine_ops"),
    "inner_product": ("<#>", "-", "vector_ip_ops"),
}
"""Of pgvector: how rows are ordered, what makes a score of it, and the operators of a graph."""

HNSW = "CREATE INDEX ON {passages} USING hnsw (embedding {operators})"

TABLES = """
CREATE TABLE {passages} (
    row bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE, content text NOT NULL, metadata jsonb NOT NULL, source json,
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

CREATING = "GRANT USAGE, CREATE ON SCHEMA {schema} TO {user};"

USING = """GRANT USAGE ON SCHEMA {schema} TO {user};
GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {user};
GRANT USAGE ON {sequence} TO {user};"""

COPY = sql.SQL("COPY {} FROM STDIN")

NEW_WORDS = """
INSERT INTO {words} (word) SELECT word FROM unnest(%s::text[]) AS given (word)
WHERE NOT EXISTS (SELECT FROM {words} WHERE {words}.word = given.word) ORDER BY word
ON CONFLICT DO NOTHING RETURNING term
"""
"""Those that are there would each use up a number; another writer may add one meanwhile."""

CLASHES = (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected)
"""What one of two is told that write the same ids at once."""

LOCK = "SELECT pg_advisory_xact_lock{}(hashtext(%s))"
"""Held to the end of a transaction: beside others by who shares it, else alone."""

GONE = ("08", "57")
"""Classes of errors by which a server is not there, or has had enough: connections, operators."""

LONGEST = 500
"""Most characters of a word; an index holds 2,704 bytes, and longer ones are kept as a hash."""

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
    SELECT row FROM scored WHERE {among} ORDER BY score DESC, row LIMIT %(depth)s
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

AMONG = "row IN (SELECT row FROM {passages} WHERE {passing})"
"""Only where there is a filter: to look up every matching passage takes as long as to score it."""


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


class PostgresEngine(CollectionEngine):
    """Passages in a PostgreSQL database, which searches and scores both legs itself.

    Every passage of a pool is scored exactly by both legs, from one snapshot, with the statistics
    of that moment. Writes are transactions: all or nothing.

    Parameters
    ----------
    address
        ``postgresql://user:password@host:port/database``, or what else libpq understands.
    collection
        First part of the names of its tables, which are made when passages are first added: a
        name of at most 60 bytes.
    schema
        Where the tables are.
    dense
        ``"flat"``: every vector is compared. ``"hnsw"``: pgvector's graph proposes passages, and
        may miss some, so that pools are not complete; scores are exact all the same.
    ef
        Candidates that the graph keeps in view (``hnsw.ef_search``): at least the depth of a
        search, and the more, the fewer it misses. More than 1,000 count as 1,000, pgvector's most.
    pool_size
        Most connections.
    timeout
        Seconds after which connecting, or a statement, is given up.
    **options
        As in `CollectionEngine`: `metric`, `k1`, `b`, `tokenizer`, `encode_source`,
        `decode_source`.

    Raises
    ------
    EngineError
        If the database cannot be reached, or refuses.
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
        dense: Dense = "flat",
        ef: int = 100,
        pool_size: int = 4,
        timeout: float = 10.0,
        **options: Unpack[CollectionArguments],
    ) -> None:
        super().__init__(collection, **options)
        self.dense = check_choice(dense, "dense", Dense)
        ef = min(check_count(ef, "ef"), 1000)  # of more, pgvector would take its default
        self._schema = schema
        self._tables = {
            each: sql.Identifier(schema, f"{collection}_{each}")
            for each in ("passages", "words", "postings", "statistics")
        }
        self._names = {  # as they stand in a statement with values, where %% is a %
            each: sql.SQL(name.as_string().replace("%", "%%"))
            for each, name in self._tables.items()
        }
        shown = _parsed(address)
        self.shown = "postgresql://{}:{}/{}".format(
            shown.get("host", "localhost"), shown.get("port", 5432), shown.get("dbname", "")
        )
        self._timeout = timeout
        connecting = {
            "autocommit": True,
            "connect_timeout": max(2, int(timeout)),
            "options": f"{shown.get('options', '')} -c statement_timeout={int(timeout * 1000)} "
            r"-c default_transaction_isolation=read\ committed "
            f"-c jit=off -c hnsw.ef_search={ef} -c hnsw.iterative_scan=strict_order",
        }
        try:
            psycopg.connect(address, **connecting).close()
        except psycopg.OperationalError as error:  # a pool says only that it has waited
            raise self._unanswered(timeout, error) from error
        self._pool = psycopg_pool.ConnectionPool(
            address,
            min_size=0,
            max_size=check_count(pool_size, "pool_size"),
            timeout=timeout,
            reconnect_timeout=timeout,
            open=True,
            check=_check_idle,
            connection_class=type("Connection", (_Impatient,), {"patience": timeout + 1}),
            kwargs=connecting,
        )
        self._known()

    @contextmanager
    def _connection(self, rights: str = USING) -> Iterator[Any]:
        """Yield a connection for what takes these rights."""
        try:
            with self._pool.connection() as connection:
                yield connection
        except psycopg.errors.InsufficientPrivilege as error:
            granted = sql.SQL(rights).format(
                user=sql.Identifier(connection.info.user),
                schema=sql.Identifier(self._schema),
                tables=sql.SQL(", ").join(self._tables.values()),
                sequence=sql.Identifier(self._schema, f"{self.collection}_passages_row_seq"),
            )
            raise EngineError(
                f"{self.shown} refuses ({error.diag.message_primary}): have an administrator of "
                f"the database run {granted.as_string()}"
            ) from error
        except psycopg.Error as error:
            lost = isinstance(error, psycopg.OperationalError)
            if lost and (error.sqlstate or GONE[0])[:2] in GONE:
                raise self._unanswered(self._timeout, error) from error
            why = error.diag.message_primary or error
            raise EngineError(f"{self.shown} refuses: {why}") from error

    def _rows(self, statement: str, values: Any = (), **parts: Any) -> list[Any]:
        """Return the rows of one statement."""
        with self._connection() as connection:
            rows: list[Any] = connection.execute(self._sql(statement, **parts), values).fetchall()
        return rows

    def _saved_options(self) -> dict[str, Any] | None:
        with self._connection() as connection:
            if not self._is_there(connection):
                return None
        ((saved,),) = self._rows("SELECT options FROM {statistics}")
        return dict(saved)

    def _is_there(self, connection: Any) -> bool:
        # to_regclass would not see what another client has made since it was first asked
        statement = "SELECT FROM pg_tables WHERE schemaname = %s AND tablename = %s::name"
        named = (self._schema, f"{self.collection}_statistics")
        return connection.execute(statement, named).fetchone() is not None

    def _options(self, dim: int) -> dict[str, Any]:
        return super()._options(dim) | {"dense": self.dense}

    def _sql(self, text: str, **parts: Any) -> Any:
        return sql.SQL(text).format(**self._names, **parts)

    def _pools(
        self, words: Sequence[Counter[str]], vectors: Sequence[Vectors], depth: int, where: Where
    ) -> list[Found]:
        passing, values = _condition(where)
        order, sign, _ = OPERATORS[self.metric]
        among = self._sql(AMONG, passing=passing) if where else passing
        parts = {"order": sql.SQL(order), "sign": sql.SQL(sign), "passing": passing}
        statement = self._sql(POOL, among=among, **parts)
        slope, base = self.bm25.length_norm(1.0)
        values |= {"slope": slope, "base": base, "depth": depth}
        asked = [
            values
            | {"words": [*counts], "counts": [*map(float, counts.values())]}
            | {"vector": _literal(vector)}
            for counts, vector in zip(map(_stored, words), vectors, strict=True)
        ]
        with self._connection() as connection:
            if len(asked) == 1:
                found = [connection.execute(statement, asked[0]).fetchall()]
            else:
                with connection.transaction(), connection.pipeline():
                    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    cursors = [connection.execute(statement, each) for each in asked]
                found = [cursor.fetchall() for cursor in cursors]
        return [self._found(rows) for rows in found]

    def _found(self, rows: Sequence[Sequence[Any]]) -> Found:
        passages = [self._decoded(*row[:4]) for row in rows]
        dense, sparse = [row[4] for row in rows], [row[5] for row in rows]
        return Found(passages, dense, sparse, complete=self.dense == "flat")

    def _documents(
        self, key: str, names: Sequence[str], where: Where
    ) -> tuple[list[Passage], Vectors]:
        """Return the passages whose metadata have one of `names` under `key`, and their vectors."""
        passing, values = _condition(where)
        rows = self._rows(
            "SELECT id, content, metadata, source, embedding::text FROM {passages} "
            "WHERE metadata ->> %(key)s = ANY (%(names)s) AND {passing} ORDER BY row",
            values | {"key": key, "names": [*names]},
            passing=passing,
        )
        vectors = np.array([json.loads(row[4]) for row in rows], np.float32)
        return [self._decoded(*row[:4]) for row in rows], vectors

    def _create(self, dim: int) -> None:
        with self._connection(CREATING) as connection, connection.transaction():
            connection.execute(LOCK.format(""), ("posrag",))
            if not self._is_there(connection):
                self._create_extension(connection)
                options = sql.Literal(json.dumps(self._options(dim)))
                connection.execute(self._sql(TABLES, dim=sql.Literal(dim), options=options), ())
                if self.dense == "hnsw":
                    operators = sql.SQL(OPERATORS[self.metric][2])
                    connection.execute(self._sql(HNSW, operators=operators), ())

    def _create_extension(self, connection: Any) -> None:
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.Error as error:
            raise EngineError(
                f"{self.shown} lacks pgvector, and this user cannot add it ({error}): have an "
                "administrator of the database run CREATE EXTENSION vector;"
            ) from error

    def _write(
        self, passages: Sequence[Passage], vectors: Vectors, counted: Sequence[Counter[str]]
    ) -> None:
        counted = [*map(_stored, counted)]
        words = sorted({word for counts in counted for word in counts})
        self._rows(NEW_WORDS, (words,))  # by itself, so that others wait for it only briefly
        known = self._rows("SELECT word, term FROM {words} WHERE word = ANY (%s)", (words,))
        insert = partial(self._insert, passages, vectors, counted, dict(known))
        self._change([passage.id for passage in passages], insert)

    def _remove(self, ids: Sequence[str]) -> set[str]:
        return self._change(ids, lambda connection: (0, 0))

    def _change(self, ids: Sequence[str], insert: Callable[[Any], tuple[int, int]]) -> set[str]:
        """Delete passages and insert others; return the ids that were there.

        Of two that write the same ids one begins anew, and then writes while nobody else does.
        """
        with self._connection() as connection:
            for sharing, clashes in (("_shared", CLASHES), ("", ())):
                with suppress(*clashes), connection.transaction():
                    connection.execute(LOCK.format(sharing), (f"{self.collection} writes",))
                    gone = self._delete(connection, ids)
                    passages, tokens = insert(connection)
                    connection.execute(
                        self._sql("UPDATE {statistics} SET n = n + %s, tokens = tokens + %s"),
                        (passages - len(gone), tokens - sum(gone.values())),
                    )
                    break
        return {*gone}

    def _insert(
        self,
        passages: Sequence[Passage],
        vectors: Vectors,
        counted: Sequence[Counter[str]],
        terms: Mapping[str, int],
        connection: Any,
    ) -> tuple[int, int]:
        """Insert passages, and return how many there are, and how many words they have."""
        numbered = connection.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'row')) FROM generate_series(1, %s)",
            (self._tables["passages"].as_string(), len(passages)),
        )
        rows = [row for (row,) in numbered]
        lengths = [counts.total() for counts in counted]
        cursor = connection.cursor()
        order = sorted(range(len(passages)), key=lambda at: passages[at].id)  # as all writers do
        batches = [order[first : first + BATCH] for first in range(0, len(order), BATCH)]
        for batch in batches:
            with cursor.copy(COPY.format(self._tables["passages"])) as copy:
                for at in batch:
                    copy.write_row(self._record(passages[at], rows[at], lengths[at], vectors[at]))
        for batch in batches:
            with cursor.copy(COPY.format(self._tables["postings"])) as copy:
                for at in batch:
                    for word, count in counted[at].items():
                        copy.write_row((terms[word], rows[at], count, lengths[at]))
        return len(passages), sum(lengths)

    def _record(self, passage: Passage, row: int, length: int, vector: Vectors) -> tuple[Any, ...]:
        source = self._encoded(passage)
        metadata = json.dumps(dict(passage.metadata))
        kept = None if source is None else json.dumps(source)
        return row, passage.id, passage.text, metadata, kept, length, _literal(vector)

    def _delete(self, connection: Any, ids: Sequence[str]) -> dict[str, int]:
        """Delete passages, and return the lengths of those that were there by id."""
        gone = connection.execute(
            self._sql("DELETE FROM {passages} WHERE id = ANY (%s) RETURNING row, id, length"),
            ([*ids],),
        ).fetchall()
        rows = [row for row, _, _ in gone]
        connection.execute(self._sql("DELETE FROM {postings} WHERE row = ANY (%s)"), (rows,))
        return {id: length for _, id, length in gone}

    def _read(self, ids: Sequence[str]) -> list[Passage]:
        columns = "SELECT id, content, metadata, source FROM {passages} WHERE id = ANY (%s)"
        return [self._decoded(*row) for row in self._rows(columns, ([*ids],))]

    def _ids(self) -> list[str]:
        return [id for (id,) in self._rows("SELECT id FROM {passages}")]

    def _size(self) -> int:
        ((n,),) = self._rows("SELECT n FROM {statistics}")
        return int(n)

    def _statistics(self) -> dict[str, Any]:
        statement = "SELECT n, tokens, (SELECT count(*) FROM {words}) FROM {statistics}"
        ((n, tokens, words),) = self._rows(statement)
        return {"mean_length": tokens / max(n, 1), "words": words}

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        self._pool.close()


def _parsed(address: str) -> dict[str, Any]:
    """Return the parts of an address; ValueError, which shows no secret, if it has none."""
    server, _, path = address.partition("://")[2].partition("?")[0].partition("/")
    try:
        if server.count("@") > 1 or "@" in path:
            raise psycopg.ProgrammingError("there is a @ too many, or behind a /")
        return dict(psycopg.conninfo.conninfo_to_dict(address))
    except psycopg.ProgrammingError as error:
        why = str(error).partition(":")[0]
        raise ValueError(
            f"the address of the database cannot be read ({why}): it is as postgresql://user:"
            "password@host:port/database, where %40 stands for a @ in the password, %2F for a /"
        ) from None


def _stored(counts: Counter[str]) -> Counter[str]:
    """Return the counts of words as the database names them."""
    return Counter(
        {
            word if len(word) <= LONGEST else sha256(word.encode()).hexdigest(): count
            for word, count in counts.items()
        }
    )


def _literal(vector: Vectors) -> str:
    return "[" + ",".join(map(str, vector.tolist())) + "]"


def _condition(where: Where) -> tuple[Any, dict[str, Any]]:
    """Return a filter as a condition on the metadata, and its values by name."""
    if isinstance(where, sql.Composable):
        return sql.SQL(where.as_string().replace("%", "%%")), {}
    accepted, ranges = filtered(where, "a condition made by psycopg.sql")
    passing, values = [sql.SQL("true")], dict[str, Any]()
    for at, (key, wanted) in enumerate(accepted.items()):
        values |= {f"key{at}": key, f"in{at}": [json.dumps(each) for each in wanted]}
        passing.append(sql.SQL(f"metadata -> %(key{at})s = ANY (%(in{at})s::jsonb[])"))
    for at, (key, bounds) in enumerate(ranges.items(), len(accepted)):
        compared = " && ".join(f"@ {SIGNS[name]} {json.dumps(bounds[name])}" for name in bounds)
        values |= {f"key{at}": key, f"in{at}": f"strict $ ? ({compared})"}
        passing.append(sql.SQL(f"jsonb_path_exists(metadata -> %(key{at})s, %(in{at})s::jsonpath)"))
    return sql.SQL(" AND ").join(passing), values
