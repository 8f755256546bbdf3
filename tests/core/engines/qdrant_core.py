"""Qdrant's core in this process, behind the methods of its client that the engine calls."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import qdrant_edge as core
from qdrant_client import models


class CoreClient:
    """One shard a collection. It counts its requests."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.requests = folder, list[str]()
        self._shards: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and callable(getattr(type(self), name, None)):
            self.requests.append(name)
        return super().__getattribute__(name)

    def collection_exists(self, name: str) -> bool:
        return name in self._shards

    def create_collection(
        self, name: str, *, vectors_config: Any, sparse_vectors_config: Any
    ) -> None:
        with self._lock:
            if name in self._shards:
                raise ValueError(f"{name} is there already")
            vectors = {
                each: core.EdgeVectorParams(
                    size=given.size, distance=getattr(core.Distance, given.distance.value)
                )
                for each, given in vectors_config.items()
            }
            sparse = {each: core.EdgeSparseVectorParams() for each in sparse_vectors_config}
            folder = self.folder / str(len(self._shards))
            folder.mkdir()
            config = core.EdgeConfig(vectors=vectors, sparse_vectors=sparse)
            self._shards[name] = core.EdgeShard.create(str(folder), config)

    def create_payload_index(self, name: str, key: str, kind: models.PayloadSchemaType) -> None:
        assert kind == models.PayloadSchemaType.INTEGER
        operation = core.UpdateOperation.create_field_index(key, core.PayloadSchemaType.Integer)
        self._shards[name].update(operation)

    def upsert(self, name: str, points: Sequence[models.PointStruct]) -> None:
        given = [core.Point(_id(each.id), _vectors(each.vector), each.payload) for each in points]
        self._shards[name].update(core.UpdateOperation.upsert_points(given))

    def update_vectors(self, name: str, points: Sequence[models.PointVectors]) -> None:
        given = [core.PointVectors(_id(each.id), _vectors(each.vector)) for each in points]
        self._shards[name].update(core.UpdateOperation.update_vectors(given))

    def delete(self, name: str, selector: Any) -> None:
        if isinstance(selector, models.PointIdsList):
            operation = core.UpdateOperation.delete_points([*map(_id, selector.points)])
        else:
            operation = core.UpdateOperation.delete_points_by_filter(_filter(selector.filter))
        self._shards[name].update(operation)

    def retrieve(self, name: str, ids: Sequence[Any], with_payload: Any = True) -> list[Any]:
        return [*map(_point, self._shards[name].retrieve([*map(_id, ids)], with_payload, False))]

    def scroll(
        self, name: str, *, scroll_filter: Any = None, with_vectors: Any = False, **options: Any
    ) -> tuple[list[Any], Any]:
        passing = scroll_filter and _filter(scroll_filter)
        request = core.ScrollRequest(filter=passing, with_vector=with_vectors, **options)
        points, following = self._shards[name].scroll(request)
        return [*map(_point, points)], following

    def count(self, name: str, *, exact: bool) -> Any:
        return SimpleNamespace(count=self._shards[name].count(core.CountRequest(exact=exact)))

    def query_batch_points(
        self, name: str, requests: Sequence[models.QueryRequest]
    ) -> list[models.QueryResponse]:
        asked = [
            core.QueryRequest(
                each.limit,
                query=_query(each),
                prefetches=[
                    core.Prefetch(
                        leg.limit,
                        query=_query(leg),
                        params=_params(leg),
                        filter=leg.filter and _filter(leg.filter),
                    )
                    for leg in each.prefetch
                ],
                with_payload=each.with_payload,
                with_vector=each.with_vector or False,
                filter=each.filter and _filter(each.filter),
                params=_params(each),
            )
            for each in requests
        ]
        found = self._shards[name].query_batch(core.QueryBatchRequest(asked))
        return [SimpleNamespace(points=[*map(_point, points)]) for points in found]


def _id(id: Any) -> Any:
    return UUID(id) if isinstance(id, str) else id


def _point(point: Any) -> Any:
    return SimpleNamespace(
        id=str(point.id) if isinstance(point.id, UUID) else point.id,
        payload=point.payload,
        vector=getattr(point, "vector", None),
        score=getattr(point, "score", None),
    )


def _vectors(vectors: Any) -> Any:
    return {
        name: core.SparseVector(vector.indices, vector.values)
        if isinstance(vector, models.SparseVector)
        else vector
        for name, vector in vectors.items()
    }


def _query(leg: Any) -> Any:
    vector = leg.query
    if isinstance(vector, models.FusionQuery):
        return core.Fusion.Rrf(60)
    if isinstance(vector, models.SparseVector):
        vector = core.SparseVector(vector.indices, vector.values)
    return core.Query.Nearest(vector, using=leg.using)


def _params(leg: Any) -> Any:
    return leg.params and core.SearchParams(exact=leg.params.exact)


def _filter(given: Any) -> Any:
    if isinstance(given, models.HasIdCondition):
        return core.HasIdCondition({*given.has_id})
    if isinstance(given, models.FieldCondition):
        match, range = given.match, given.range
        return core.FieldCondition(
            given.key,
            match=match and core.MatchAny(match.any),
            range=range and core.RangeFloat(range.gte, range.gt, range.lte, range.lt),
        )
    return core.Filter(
        must=[*map(_filter, given.must or [])], must_not=[*map(_filter, given.must_not or [])]
    )
