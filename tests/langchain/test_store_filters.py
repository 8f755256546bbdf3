"""One filter over every store: told in its language, or held here."""

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_posrag import CAUSRetriever

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
    """Keeps what it was asked, and finds by distance; takes one value a key."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Any]] = []

    def similarity_search_with_score(  # type: ignore[override]
        self, query: str, k: int = 4, filter: Any = None
    ) -> Found:
        self.asked.append((k, filter))
        found = MEMORY.similarity_search_with_score(
            query, k, filter=lambda document: self.passes(document.metadata, filter or {})
        )
        return [(document, 1 - score) for document, score in found]

    def passes(self, metadata: dict[str, Any], where: Any) -> bool:
        return bool(where.items() <= metadata.items())


class Chroma(Store):
    """Known by its name; lets everything through."""

    __module__ = "langchain_chroma.vectorstores"

    def get(self) -> dict[str, list[Any]]:
        """As Chroma answers; an image has no text."""
        held = [*DOCUMENTS, Document("", id="image")]
        return {
            "ids": [each.id for each in held],
            "documents": [each.page_content or None for each in held],
            "metadatas": [each.metadata or None for each in held],
        }

    def passes(self, metadata: dict[str, Any], where: Any) -> bool:
        return True


class PGVector(Chroma):
    """Known by its name, too."""

    __module__ = "langchain_postgres.vectorstores"


class Milvus(Chroma):
    """Known by its name, too; its filter has another name."""

    __module__ = "langchain_milvus.vectorstores.milvus"
    __qualname__ = "Milvus"
    enable_dynamic_field, fields = False, ("pk", "text", "vector", *DOCUMENTS[0].metadata)

    def similarity_search_with_score(  # type: ignore[override]
        self, query: str, k: int = 4, expr: str | None = None
    ) -> Found:
        return super().similarity_search_with_score(query, k, expr)


def one_of(key: str, *values: Any) -> dict[str, Any]:
    return {key: {"$in": [*values]}}


TOLD: list[tuple[dict[str, Any], Any, Any, Any]] = [
    (
        {"lang": ["en"], "even": True},
        {"$and": [one_of("lang", "en"), {"$or": [one_of("even", True), one_of("even", 1)]}]},
        {"lang": ["en"], "even": [True, 1]},
        {"lang": "en", "even": True},
    ),
    (
        {"i": [3, 4.0, 200]},
        {"$or": [one_of("i", 3, 200), one_of("i", 4.0)]},
        {"i": [3, 4.0, 200]},
        None,
    ),
    (
        {"mixed": ["1", 1.0]},
        {"$or": [one_of("mixed", "1"), one_of("mixed", 1.0), one_of("mixed", True)]},
        {"mixed": ["1", 1.0, True]},
        None,
    ),
    (
        {"i": {"$gte": 30, "$lt": 60}, "lang": ("de",)},
        {"$and": [one_of("lang", "de"), {"i": {"$gte": 30}}, {"i": {"$lt": 60}}]},
        {"$and": [{"lang": ["de"]}, {"i": {"$gte": 30}}, {"i": {"$lt": 60}}]},
        None,
    ),
    ({"my-key": 2}, one_of("my-key", 2), None, {"my-key": 2}),
]
"""Filters, and what Chroma, pgvector (both tell True from 1) and an unknown store are told."""

NOT_TOLD: list[Any] = [
    {},
    lambda metadata: metadata["i"] > 225,
    lambda metadata: False,
    {"i": [None, 5]},
    {"i": float("nan")},
    {"i": []},
]


def shown(where: Any) -> str:
    return "function" if callable(where) else str(where)


@pytest.mark.parametrize("where", [*(where for where, *_ in TOLD), *NOT_TOLD], ids=shown)
@pytest.mark.parametrize("kind", [Chroma, Milvus, Store])
async def test_a_filter_holds_over_any_store(kind: type[Store], where: Any) -> None:
    """As over LangChain's own, which takes a function."""
    options: dict[str, Any] = {"k": 3, "fetch_k": 5, "alpha": 0.9, "include_scores": False}
    one = CAUSRetriever.from_vectorstore(kind(), DOCUMENTS, higher_is_better=False, **options)
    other = CAUSRetriever.from_vectorstore(MEMORY, DOCUMENTS, **options)
    expected = other.invoke("number relu", filter=where)
    assert await other.ainvoke("number relu", filter=where) == expected
    assert one.invoke("number relu", filter=where) == expected
    assert await one.ainvoke("number relu", filter=where) == expected


@pytest.mark.parametrize(("where", "chroma", "pgvector", "unknown"), TOLD, ids=str)
def test_a_store_is_told_in_its_own_language(
    where: dict[str, Any], chroma: Any, pgvector: Any, unknown: Any
) -> None:
    """One of no known language gets single values; what cannot be told is filtered here."""
    for store, told in ((Chroma(), chroma), (PGVector(), pgvector), (Store(), unknown)):
        retriever = CAUSRetriever.from_vectorstore(store, DOCUMENTS, higher_is_better=False)
        retriever.invoke("relu", filter=where)
        assert store.asked[0] == (50, told)


@pytest.mark.parametrize(
    ("where", "told"),
    [
        (
            {"lang": ["en", "dé"], "i": {"$gte": 3, "$lt": 9}},
            'lang in ["en", "dé"] and i >= 3 and i < 9',
        ),
        ({"i": 3.5}, None),
        ({"even": True}, None),
        ({"my-key": 2}, None),
        ({"nowhere": 2}, None),
        ("i > 230", "i > 230"),
    ],
    ids=str,
)
def test_milvus_is_told_in_its_own_language(where: Any, told: str | None) -> None:
    """By an expression; as `expr`, also one of the user's own."""
    store = Milvus()
    retriever = CAUSRetriever.from_vectorstore(store, DOCUMENTS, higher_is_better=False)
    retriever.invoke("relu", filter=where)
    assert store.asked[0] == (50, told)


def test_a_mapping_that_joins_conditions_is_the_stores_own() -> None:
    """Chroma gets it as it is, and only what it finds comes back; a store in memory has none."""
    store, either = Chroma(), {"$or": [{"lang": "en"}, {"i": 7}]}
    retriever = CAUSRetriever.from_vectorstore(store, DOCUMENTS, k=9, fetch_k=2, alpha=0.0)
    assert len(retriever.invoke("relu", filter=either)) == 9
    retriever.invoke("relu", filter={"i": {"$ne": 7}})
    assert store.asked == [(9, either), (9, {"i": {"$ne": 7}})]
    with pytest.raises(ValueError, match=r"'\$or'.*name all keys in one mapping"):
        CAUSRetriever.from_vectorstore(MEMORY, DOCUMENTS).invoke("relu", filter=either)
    with pytest.raises(ValueError, match=r"^a filter must be a mapping or a function .* got 'a'$"):
        CAUSRetriever.from_vectorstore(MEMORY, DOCUMENTS).invoke("relu", filter="a")


def test_a_filled_chroma_is_read_for_bm25() -> None:
    filled = CAUSRetriever.from_vectorstore(Chroma(), k=9)
    given = CAUSRetriever.from_vectorstore(Chroma(), DOCUMENTS, k=9)
    assert filled.invoke("relu") == given.invoke("relu")
    assert filled.index.count() == N


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


async def test_what_a_store_raises_is_raised() -> None:
    """Once: it is not searched without the filter, ever deeper."""

    class Down(Store):
        def similarity_search_with_score(self, *args: Any, **kwargs: Any) -> Any:
            self.asked.append((kwargs["k"], kwargs.get("filter")))
            raise TimeoutError("no answer")

    down = Down()
    retriever = CAUSRetriever.from_vectorstore(down, DOCUMENTS, higher_is_better=False)
    for where in ({"lang": "en"}, lambda metadata: True):
        with pytest.raises(TimeoutError, match="no answer"):
            await retriever.ainvoke("relu", filter=where)
    assert len(down.asked) == 2
