"""Milvus: both legs in the database, two requests a query.

The first reads the statistics of the query's words, see `shared_core.engines.sparse_vectors`. The
second searches both legs and returns the vectors of what either finds, which are multiplied here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack
from urllib.parse import urlsplit

import numpy as np

from shared_core._extras import require
from shared_core.arrays import Vectors
from shared_core.engines.collection import CollectionArguments
from shared_core.engines.sparse_vectors import (
    BATCH,
    FIELDS,
    RESERVED,
    WORDS,
    Hit,
    Row,
    SparseVectorEngine,
    Weights,
    key_in,
    product,
    wanted_marks,
)
from shared_core.index.metadata import SIGNS, Where
from shared_core.types import Passage

pymilvus = require("pymilvus", extra="milvus")
grpc = require("grpc", extra="milvus")
Type = pymilvus.DataType

# Sparse vectors of a passage and of a query without a word: Milvus takes no empty ones.
BLANK, NOTHING = {WORDS: 1.0}, {WORDS + 1: 1.0}

LONGEST = 65_535  # bytes of a text that Milvus takes


class MilvusEngine(SparseVectorEngine):
    """Passages in a Milvus collection, which searches both legs itself.

    Every passage of a pool is scored exactly by both legs. Texts have at most 65,535 bytes, and
    collections names of letters, digits and underscores, no digit first.

    Parameters
    ----------
    address
        ``milvus://host:19530``, with ``user:password@`` before the host where that is asked
        for, and ``/database`` behind it if it is not the default one;
        ``milvus:///file.db`` is Milvus Lite.
    collection
        Its name; made, with that of its statistics, when passages are first added.
    api_key
        A token, or ``user:password``.
    tls
        Whether the connection is encrypted. None: if there is a key.
    client
        A ``pymilvus.MilvusClient`` to use instead, which `close` leaves open.
    timeout
        Seconds after which a request is given up.
    mean_length, **options
        As in `SparseVectorEngine`.

    Raises
    ------
    EngineError
        If the database cannot be reached.
    ValueError
        If an option is out of range, or not that of the collection.
    MissingExtraError
        If pymilvus is not installed.
    """

    def __init__(
        self,
        address: str,
        collection: str = "posrag",
        *,
        api_key: str | None = None,
        tls: bool | None = None,
        client: Any = None,
        timeout: float = 10.0,
        mean_length: float | None = None,
        **options: Unpack[CollectionArguments],
    ) -> None:
        super().__init__(collection, mean_length=mean_length, **options)
        self._timeout, self._owns, self._client = timeout, client is None, client
        parts = urlsplit(address)
        host = f"{parts.hostname}:{parts.port or 19530}"
        self.shown = f"milvus://{host if parts.netloc else ''}{parts.path}"
        if client is None:
            api_key = api_key or key_in(parts)
            encrypted = api_key is not None if tls is None else tls
            self._client = self._ask(
                pymilvus.MilvusClient,
                f"http{'s' if encrypted else ''}://{host}" if parts.netloc else parts.path,
                token=api_key or "",
                db_name=parts.path.strip("/") if parts.netloc else "",
            )
        if self._exists(self.statistics):  # the client logs a traceback if they are not in memory
            self._ask(self._load)
        self._known()

    def _load(self, *, timeout: float) -> None:
        """Have the server take into memory what is there, without which it answers nothing."""
        for name in filter(self._exists, (self.statistics, self.collection)):
            self._client.load_collection(name, timeout=timeout)

    def _ask(self, method: Any, *arguments: Any, **options: Any) -> Any:
        try:
            try:
                return method(*arguments, **options, timeout=self._timeout)
            except pymilvus.MilvusException as error:
                if error.code != 101:  # not in memory, as after a restart of Milvus Lite
                    raise
                self._load(timeout=self._timeout)
                return method(*arguments, **options, timeout=self._timeout)
        except (pymilvus.MilvusException, grpc.RpcError) as error:
            raise self._unanswered(self._timeout, error) from error

    def _exists(self, name: str) -> bool:
        return bool(self._ask(self._client.has_collection, name))

    def _make(self, dim: int) -> None:
        integer, text = {"datatype": Type.INT64}, {"datatype": Type.VARCHAR, "max_length": LONGEST}
        json_field, key = {"datatype": Type.JSON}, {"datatype": Type.VARCHAR, "max_length": 36}
        marks = {"datatype": Type.ARRAY, "element_type": Type.INT64, "max_capacity": 4096}
        self._make_one(
            self.statistics,
            {"key": integer, "value": text},
            {"unused": ({"datatype": Type.FLOAT_VECTOR, "dim": 2}, "FLAT")},
        )
        self._make_one(
            self.collection,
            {"key": key, "id": text, "page_content": text, "metadata": json_field}
            | {"source": text, "row": integer, "marks": marks},
            {
                "dense": ({"datatype": Type.FLOAT_VECTOR, "dim": dim}, "FLAT"),
                "sparse": ({"datatype": Type.SPARSE_FLOAT_VECTOR}, "SPARSE_INVERTED_INDEX"),
            },
        )

    def _make_one(self, name: str, fields: dict[str, Any], vectors: dict[str, Any]) -> None:
        schema = self._client.create_schema()
        indexes = self._client.prepare_index_params()
        for field, options in fields.items():
            schema.add_field(field, is_primary=field == "key", **options)
        for field, (options, kind) in vectors.items():
            schema.add_field(field, **options)
            indexes.add_index(field, index_type=kind, metric_type="IP")
        self._ask(
            self._client.create_collection,
            name,
            schema=schema,
            index_params=indexes,
            consistency_level="Strong",
        )

    def _query(self, collection: str, passing: str, fields: list[str]) -> list[dict[str, Any]]:
        return [*self._ask(self._client.query, collection, passing, output_fields=fields)]

    def _read_values(self, keys: Sequence[int]) -> dict[int, Any]:
        rows = self._query(self.statistics, f"key in {[*keys]}", ["value"])
        return {row["key"]: json.loads(row["value"]) for row in rows}

    def _write_values(self, values: Mapping[int, Any]) -> None:
        rows = [
            {"key": key, "value": json.dumps(value), "unused": [0.0, 0.0]}
            for key, value in values.items()
        ]
        self._ask(self._client.upsert, self.statistics, rows)

    def _forget_words(self) -> None:
        self._ask(self._client.delete, self.statistics, filter=f"key < {RESERVED[0]}")

    def _search(
        self, asked: Sequence[Weights], vectors: Sequence[Vectors], depth: int, where: Where
    ) -> list[list[Hit]]:
        legs = {"dense": [*vectors], "sparse": [weights or NOTHING for weights in asked]}
        passing = _condition(where)
        answers = self._ask(
            self._client.hybrid_search,
            self.collection,
            [
                pymilvus.AnnSearchRequest(given, leg, {}, depth, expr=passing)
                for leg, given in legs.items()
            ],
            pymilvus.RRFRanker(),  # only the union is of use
            limit=2 * depth,
            output_fields=[*FIELDS, *legs],
        )
        return [
            [_scored(hit["entity"], weights, vector) for hit in hits]
            for hits, weights, vector in zip(answers, asked, vectors, strict=True)
        ]

    def _fields(self, passage: Passage) -> dict[str, Any]:
        if (size := len(passage.text.encode())) > LONGEST:
            raise ValueError(
                f"the text of passage {passage.id!r} has {size:,} bytes, and Milvus takes "
                f"{LONGEST:,}: split it"
            )
        return super()._fields(passage)

    def _store(self, rows: Sequence[Row]) -> None:
        self._ask(
            self._client.upsert,
            self.collection,
            [
                row.fields
                | {"key": row.key, "source": json.dumps(row.fields["source"])}
                | {"dense": row.vector, "sparse": row.weights or BLANK}
                for row in rows
            ],
        )

    def _erase(self, keys: Sequence[str]) -> None:
        self._ask(self._client.delete, self.collection, ids=[*keys])

    def _fetch(self, keys: Sequence[str]) -> list[Mapping[str, Any]]:
        return [*map(_read, self._query(self.collection, f"key in {[*keys]}", FIELDS))]

    def _scan(self) -> Iterator[list[Mapping[str, Any]]]:
        rows = self._ask(
            self._client.query_iterator, self.collection, batch_size=BATCH, output_fields=["*"]
        )
        while batch := rows.next():
            yield batch
        rows.close()

    def _reweigh(self, rows: Sequence[Mapping[str, Any]], weights: Sequence[Weights]) -> None:
        again = [{**row, "sparse": each or BLANK} for row, each in zip(rows, weights, strict=True)]
        self._ask(self._client.upsert, self.collection, again)

    def _size(self) -> int:
        return int(self._query(self.collection, "", ["count(*)"])[0]["count(*)"])

    def _marked(
        self, marks: Sequence[int], where: Where
    ) -> list[tuple[Mapping[str, Any], Sequence[float]]]:
        conditions = [_one_of(marks), _condition(where)]
        passing = " and ".join(f"({each})" for each in conditions if each)
        rows = self._query(self.collection, passing, [*FIELDS, "dense"])
        return [(_read(row), row["dense"]) for row in rows]


def _read(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a passage as they were given."""
    return {**row, "source": json.loads(row["source"])}


def _scored(row: Mapping[str, Any], weights: Weights, vector: Vectors) -> Hit:
    near = float(np.dot(np.asarray(row["dense"], np.float32), vector))
    return _read(row), near, product(weights, row["sparse"])


def _one_of(marks: Sequence[int]) -> str:
    return f"ARRAY_CONTAINS_ANY(marks, {[*marks]})"


def _condition(where: Where) -> str:
    if isinstance(where, str):
        return where
    marks, ranges = wanted_marks(where, "an expression of Milvus")
    within = (
        f"metadata[{json.dumps(key, ensure_ascii=False)}] {SIGNS[name]} {json.dumps(bound)}"
        for key, bounds in ranges.items()
        for name, bound in bounds.items()
    )
    return " and ".join([*map(_one_of, marks), *within])
