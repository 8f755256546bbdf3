"""One filter over every store: told in its language, or held here."""

import asyncio
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_posrag import CAUSRetriever
from shared_core.index.metadata import BOUNDS, Within

from .conftest import Unscored

N = 240
DOCUMENTS = [
    Document(
        f"number {i} {'relu' if i % 7 == 0 else 'pool'}",
        id=f"d{i}",
        metadata={
            "i": i,
            "even": i % 2 == 0,
            "lang": ("en", "de", "fr")[i % 3],
            "mixed": (1, 1.0, True, "1")[i % 4],
            "my-key": i % 5,
        },
    )
    for i in range(N)
]
MEMORY = InMemoryVectorStore.from_documents(DOCUMENTS, DeterministicFakeEmbedding(size=8))
Found = list[tuple[Document, float]]


class Store(Unscored):
    """Keeps what it was asked, and finds by distance what `passes`."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Any]] = []

    def similarity_search_with_score(  # type: ignore[override]
        self, query: str, k: int = 4, filter: Any = None
    ) -> Found:
        self.asked.append((k, filter))
        passes = (lambda metadata: True) if filter is None else self.passes(filter)
        found = MEMORY.similarity_search_with_score(
            query, k, filter=lambda document: passes(document.metadata)
        )
        return [(document, 1 - score) for document, score in found]

    def passes(self, where: Any) -> Callable[[Mapping[str, Any]], bool]:
        raise NotImplementedError


class Chroma(Store):
    """Refuses what chromadb's ``validate_where`` refuses, and tells True from 1."""

    __module__ = "langchain_chroma.vectorstores"

    def get(self) -> dict[str, list[Any]]:
        """As Chroma answers; an image has no text."""
        held = [*DOCUMENTS, Document("", id="image")]
        return {
            "ids": [each.id for each in held],
            "documents": [each.page_content or None for each in held],
            "metadatas": [each.metadata or None for each in held],
        }

    def passes(self, where: Any) -> Callable[[Mapping[str, Any]], bool]:
        if not isinstance(where, dict):
            raise ValueError(f"Expected where to be a dict, got {where}")
        if len(where) != 1:
            raise ValueError(f"Expected where to have exactly one operator, got {where}")
        ((key, value),) = where.items()
        if key in ("$and", "$or"):
            if len(value) <= 1:
                raise ValueError(f"Expected a list with at least two expressions, got {value}")
            parts = [self.passes(part) for part in value]
            every = all if key == "$and" else any
            return lambda metadata: every(part(metadata) for part in parts)
        if not isinstance(value, str | int | float | dict):
            raise ValueError(f"Expected where value to be a str, int, float, got {value}")
        values = [value]
        if isinstance(value, dict):
            ((name, values),) = value.items()
            if name in BOUNDS and isinstance(values, int | float):
                return lambda metadata: metadata.get(key) in Within({name: values})
            kinds = {type(each) for each in values}
            if name != "$in" or len(kinds) != 1 or not kinds <= {str, int, float, bool}:
                raise ValueError(f"Expected a non-empty list of values of one type, got {value}")
        if any(isinstance(each, float) and not math.isfinite(each) for each in values):
            raise ValueError("Invalid where clause")
        return lambda metadata: any(same(metadata.get(key), each) for each in values)


class PGVector(Store):
    """Refuses what langchain-postgres refuses, and tells True from 1; of a list any will do."""

    __module__ = "langchain_postgres.vectorstores"

    def passes(self, where: Any) -> Callable[[Mapping[str, Any]], bool]:
        if not isinstance(where, dict) or not where:
            raise ValueError(f"Invalid type: Expected a dictionary but got {where!r}")
        if [*where] == ["$and"]:
            parts = [self.passes(part) for part in where["$and"]]
            return lambda metadata: all(part(metadata) for part in parts)
        for key, value in where.items():
            if not key.isidentifier():
                raise ValueError(f"Invalid field name: {key}. Expected a valid identifier.")
            if isinstance(value, dict):
                ((name, bound),) = value.items()
                return lambda metadata: metadata.get(key) in Within({name: bound})
            if "NaN" in str(value) or "nan" in str(value):
                raise ValueError("invalid input syntax for type json")
        return lambda metadata: all(
            any(same(metadata.get(key), each) for each in (v if isinstance(v, list) else [v]))
            for key, v in where.items()
        )


class Unknown(Store):
    """Takes one value of each key, or a filter of its own."""

    def passes(self, where: Any) -> Callable[[Mapping[str, Any]], bool]:
        if isinstance(where, Native):
            return lambda metadata: metadata["i"] < where.below
        return lambda metadata: where.items() <= metadata.items()


@dataclass
class Native:
    """A filter that only `Unknown` reads."""

    below: int


def same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and operator.eq(one, other)


TOLD: list[Any] = [
    {"lang": "en", "even": True},
    {"lang": ("de",), "i": {3, 4, 7, 10}},
    {"i": [3, 4.0, 200]},
    {"mixed": ["1", 1.0]},
    {"absent": 1},
    {"i": {"$gte": 30, "$lt": 60}, "lang": "de"},
    {"i": {"$gt": 200}},
]
"""Filters that a store with a language of its own can be told."""

NOT_TOLD: list[Any] = [
    lambda metadata: metadata["i"] > 225,
    lambda metadata: False,
    {"i": [None, 5]},
    {"i": float("nan")},
    {"i": []},
]


def shown(where: Any) -> str:
    return "function" if callable(where) else str(where)


def answers(retriever: CAUSRetriever, where: Any) -> list[Document]:
    """What `invoke` and `ainvoke` return; they have to agree."""
    found = retriever.invoke("number relu", filter=where)
    assert asyncio.run(retriever.ainvoke("number relu", filter=where)) == found
    return found


@pytest.mark.parametrize("where", [{}, {"my-key": 2}, *TOLD, *NOT_TOLD], ids=shown)
@pytest.mark.parametrize("kind", [Chroma, PGVector, Unknown])
def test_a_filter_holds_over_any_store(kind: type[Store], where: Any) -> None:
    """As over LangChain's own, which takes a function."""
    options: dict[str, Any] = {"k": 3, "fetch_k": 5, "alpha": 0.9, "include_scores": False}
    one = CAUSRetriever.from_vectorstore(kind(), DOCUMENTS, higher_is_better=False, **options)
    other = CAUSRetriever.from_vectorstore(MEMORY, DOCUMENTS, **options)
    assert answers(one, where) == answers(other, where)


def test_a_filled_chroma_is_read_for_bm25() -> None:
    filled = CAUSRetriever.from_vectorstore(Chroma(), k=9)
    given = CAUSRetriever.from_vectorstore(Chroma(), DOCUMENTS, k=9)
    assert filled.invoke("relu") == given.invoke("relu")
    assert filled.index.count() == N


@pytest.mark.parametrize("where", TOLD, ids=str)
@pytest.mark.parametrize("kind", [Chroma, PGVector])
def test_a_store_that_is_told_is_asked_once(kind: type[Store], where: Any) -> None:
    store = kind()
    CAUSRetriever.from_vectorstore(store, DOCUMENTS).invoke("relu", filter=where)
    ((k, told),) = store.asked
    assert k == 50
    assert told is not None


def test_a_store_that_is_not_told_is_asked_until_enough_passes() -> None:
    store = Chroma()
    retriever = CAUSRetriever.from_vectorstore(store, DOCUMENTS, k=5, fetch_k=10)

    best_first = [hit.metadata["i"] for hit, _ in store.similarity_search_with_score("relu", N)]

    def asked(step: int) -> list[int]:
        """How deep the store is asked where every `step`-th of what it finds passes."""
        passing = {*best_first[::step]}
        store.asked.clear()
        retriever.invoke("relu", filter=lambda metadata: metadata["i"] in passing)
        assert {told for _, told in store.asked} == {None}
        return [k for k, _ in store.asked]

    assert asked(1) == [10]
    assert asked(3) == [10, 40]
    assert asked(16) == [10, 40, 160]
    assert asked(60) == [10, 40, 160, 640]


def test_a_store_of_another_language_gets_single_values_as_they_are() -> None:
    store = Unknown()
    retriever = CAUSRetriever.from_vectorstore(store, DOCUMENTS, higher_is_better=False, k=3)

    for where, told in (
        ({"lang": "en"}, {"lang": "en"}),
        ({"lang": ["en"]}, {"lang": "en"}),
        ({"lang": ["en", "de"]}, None),
        (lambda metadata: metadata["lang"] == "en", None),
    ):
        store.asked.clear()
        retriever.invoke("relu", filter=where)
        assert store.asked[0][1] == told


async def test_a_filter_of_the_stores_own_goes_to_it_as_it_is() -> None:
    store, native = Unknown(), Native(below=9)
    retriever = CAUSRetriever.from_vectorstore(store, DOCUMENTS, higher_is_better=False, k=20)
    found = retriever.invoke("relu", filter=native)
    assert sorted(document.metadata["i"] for document in found) == [*range(9)]
    assert await retriever.ainvoke("relu", filter=native) == found
    assert store.asked == [(50, native)] * 2


async def test_what_a_store_raises_is_raised() -> None:
    """Once: it is not searched without the filter, ever deeper."""

    class Down(Unknown):
        def similarity_search_with_score(self, *args: Any, **kwargs: Any) -> Any:
            self.asked.append((kwargs["k"], kwargs.get("filter")))
            raise TimeoutError("no answer")

    down = Down()
    retriever = CAUSRetriever.from_vectorstore(down, DOCUMENTS, higher_is_better=False)
    for where in ({"lang": "en"}, lambda metadata: True):
        with pytest.raises(TimeoutError, match="no answer"):
            await retriever.ainvoke("relu", filter=where)
    assert len(down.asked) == 2


def test_an_error_of_the_filter_itself_stays_one() -> None:
    retriever = CAUSRetriever.from_vectorstore(Chroma(), DOCUMENTS)
    with pytest.raises(KeyError, match="absent"):
        retriever.invoke("relu", filter=lambda metadata: metadata["absent"] > 1)
