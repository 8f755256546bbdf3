"""Qdrant: both legs in the database, two requests a query.

The first reads the statistics of the query's words, see `shared_core.engines.sparse_vectors`. The
second prefetches the best of both legs, which Qdrant scores by their dense vectors. Sparse vectors
come along, and are multiplied here: to have Qdrant score the pool by both legs, it would have to
search for it twice.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import starmap
from typing import Any, Unpack
from urllib.parse import urlsplit

from shared_core._extras import require
from shared_core.arrays import Vectors
from shared_core.checking import check_choice
from shared_core.engines.collection import CollectionArguments, Dense
from shared_core.engines.sparse_vectors import (
    BATCH,
    FIELDS,
    RESERVED,
    Hit,
    Row,
    SparseVectorEngine,
    Weights,
    key_in,
    key_of,
    product,
    wanted_marks,
)
from shared_core.engines.store import qdrant_pages
from shared_core.errors import EngineError
from shared_core.index.metadata import Where, Within

qdrant_client = require("qdrant_client", extra="qdrant")
exceptions = require("qdrant_client.http.exceptions", extra="qdrant")
grpc = require("grpc", extra="qdrant")
models = require("qdrant_client.models", extra="qdrant")


class QdrantEngine(SparseVectorEngine):
    """Passages in a Qdrant collection, which searches and scores both legs itself.

    Every passage of a pool is scored exactly by both legs. The points can be read by others:
    ``page_content`` and ``metadata`` in the payload, vectors named ``dense`` and ``sparse``.

    Parameters
    ----------
    address
        ``qdrant://host:6333``, or with a key ``qdrant://:key@host``; ``qdrant:///folder`` and
        ``qdrant://:memory:`` are the client's local mode, which searches in this process, in
        Python.
    collection
        Its name; made, with that of its statistics, when passages are first added.
    api_key, tls
        Of the server. Without `tls`, it is used if there is a key.
    client
        A ``qdrant_client.QdrantClient`` to use instead, which `close` leaves open.
    dense
        ``"flat"``: every vector is compared. ``"hnsw"``: Qdrant's graph proposes passages, and may
        miss some, so that pools are not complete; scores are exact all the same.
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
        If qdrant-client is not installed.
    """

    def __init__(
        self,
        address: str,
        collection: str = "posrag",
        *,
        api_key: str | None = None,
        tls: bool | None = None,
        client: Any = None,
        dense: Dense = "flat",
        timeout: float = 10.0,
        mean_length: float | None = None,
        **options: Unpack[CollectionArguments],
    ) -> None:
        super().__init__(collection, mean_length=mean_length, **options)
        self.exact = check_choice(dense, "dense", Dense) == "flat"
        self._timeout, self._owns = timeout, client is None
        parts = urlsplit(address)
        local: dict[str, Any] = {}
        if parts.netloc == ":memory:":
            local = {"location": ":memory:"}
        elif not parts.netloc and client is None:
            local = {"path": parts.path}
        if local:
            self.shown = address
            client = qdrant_client.QdrantClient(**local, force_disable_check_same_thread=True)
        else:
            self.shown = f"qdrant://{parts.hostname or 'localhost'}:{parts.port or 6333}"
        self._client = client or qdrant_client.QdrantClient(
            host=parts.hostname,
            port=parts.port or 6333,
            https=tls,
            api_key=api_key or key_in(parts),
            timeout=timeout,
            check_compatibility=False,  # a request, whose failure it only warns of
        )
        self._in_python = isinstance(self._client, qdrant_client.QdrantClient) and isinstance(
            self._client._client, qdrant_client.local.qdrant_local.QdrantLocal
        )
        self._alone = threading.RLock() if self._in_python else nullcontext()
        self._known()

    def _ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        try:
            with self._alone:
                return getattr(self._client, method)(*arguments, **options)
        except (exceptions.ResponseHandlingException, grpc.RpcError) as error:
            raise self._unanswered(self._timeout, getattr(error, "source", error)) from error
        except exceptions.UnexpectedResponse as error:
            raise EngineError(f"{self.shown} refuses {method}: {error}") from error

    def _exists(self, name: str) -> bool:
        return bool(self._ask("collection_exists", name))

    def _make(self, dim: int) -> None:
        distance = {"cosine": models.Distance.COSINE, "inner_product": models.Distance.DOT}
        dense = models.VectorParams(size=dim, distance=distance[self.metric])
        sparse = {"sparse": models.SparseVectorParams()}
        self._make_one(self.statistics, {}, sparse)  # whose points have none
        self._make_one(self.collection, {"dense": dense}, sparse)
        if not self._in_python:  # where there are no indexes
            integers = models.PayloadSchemaType.INTEGER
            self._ask("create_payload_index", self.collection, "marks", integers)

    def _make_one(self, name: str, vectors: dict[str, Any], sparse: dict[str, Any]) -> None:
        try:
            self._ask(
                "create_collection", name, vectors_config=vectors, sparse_vectors_config=sparse
            )
        except (EngineError, ValueError):  # of the server, and of the local mode
            if not self._exists(name):
                raise

    def _read_values(self, keys: Sequence[int]) -> dict[int, Any]:
        points = self._ask("retrieve", self.statistics, [*keys])
        return {point.id: point.payload["value"] for point in points}

    def _write_values(self, values: Mapping[int, Any]) -> None:
        points = [
            models.PointStruct(id=key, vector={}, payload={"value": value})
            for key, value in values.items()
        ]
        self._ask("upsert", self.statistics, points)

    def _forget_words(self) -> None:
        others = models.HasIdCondition(has_id=[*RESERVED])
        words = models.FilterSelector(filter=models.Filter(must_not=[others]))
        self._ask("delete", self.statistics, words)

    def _search(
        self, asked: Sequence[Weights], vectors: Sequence[Vectors], depth: int, where: Where
    ) -> list[list[Hit]]:
        passing, requests = _condition(where), []
        exact = models.SearchParams(exact=self.exact)
        params = None if self._in_python else exact  # it searches exactly, and warns of them
        for weights, vector in zip(asked, vectors, strict=True):
            near = {"query": vector.tolist(), "using": "dense", "params": params}
            legs = [near, {"query": _sparse(weights), "using": "sparse"}] if weights else [near]
            requests.append(
                models.QueryRequest(
                    prefetch=[models.Prefetch(**leg, filter=passing, limit=depth) for leg in legs],
                    **near,
                    limit=len(legs) * depth,
                    with_payload=FIELDS,
                    with_vector=["sparse"],
                )
            )
        answers = self._ask("query_batch_points", self.collection, requests)
        return [
            [_scored(point, weights) for point in answer.points]
            for answer, weights in zip(answers, asked, strict=True)
        ]

    def _store(self, rows: Sequence[Row]) -> None:
        points = [
            models.PointStruct(
                id=row.key,
                vector={"dense": row.vector.tolist(), "sparse": _sparse(row.weights)},
                payload=row.fields,
            )
            for row in rows
        ]
        self._ask("upsert", self.collection, points)

    def _erase(self, keys: Sequence[str]) -> None:
        self._ask("delete", self.collection, models.PointIdsList(points=[*keys]))

    def _fetch(self, keys: Sequence[str]) -> list[Mapping[str, Any]]:
        points = self._ask("retrieve", self.collection, [*keys], with_payload=FIELDS)
        return [point.payload for point in points]

    def _scroll(self, **options: Any) -> Iterator[list[Any]]:
        return qdrant_pages(partial(self._ask, "scroll"), self.collection, limit=BATCH, **options)

    def _scan(self) -> Iterator[list[Mapping[str, Any]]]:
        for points in self._scroll(with_payload=["id", "page_content"]):
            yield [point.payload for point in points]

    def _reweigh(self, rows: Sequence[Mapping[str, Any]], weights: Sequence[Weights]) -> None:
        points = [
            models.PointVectors(id=key_of(row["id"]), vector={"sparse": _sparse(each)})
            for row, each in zip(rows, weights, strict=True)
        ]
        if points:
            self._ask("update_vectors", self.collection, points)

    def _size(self) -> int:
        return int(self._ask("count", self.collection, exact=True).count)

    def _marked(
        self, marks: Sequence[int], where: Where
    ) -> list[tuple[Mapping[str, Any], Sequence[float]]]:
        wanted = models.Filter(must=[_one_of(marks), _condition(where)])
        pages = self._scroll(scroll_filter=wanted, with_payload=FIELDS, with_vectors=["dense"])
        return [(point.payload, point.vector["dense"]) for page in pages for point in page]


def _sparse(weights: Weights) -> Any:
    return models.SparseVector(indices=[*weights], values=[*weights.values()])


def _scored(point: Any, weights: Weights) -> Hit:
    sparse = point.vector["sparse"]
    held = dict(zip(sparse.indices, sparse.values, strict=True))
    return point.payload, point.score, product(weights, held)


def _one_of(marks: Sequence[int]) -> Any:
    return models.FieldCondition(key="marks", match=models.MatchAny(any=[*marks]))


def _condition(where: Where) -> Any:
    if isinstance(where, models.Filter):
        return where
    marks, ranges = wanted_marks(where, "a qdrant_client.models.Filter")
    return models.Filter(must=[*map(_one_of, marks), *starmap(_within, ranges.items())])


def _within(key: str, bounds: Within) -> Any:
    path = key if key.isidentifier() else json.dumps(key, ensure_ascii=False)
    named = {name.removeprefix("$"): bound for name, bound in bounds.items()}
    return models.FieldCondition(key=f"metadata.{path}", range=models.Range(**named))
