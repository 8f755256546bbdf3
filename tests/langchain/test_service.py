"""A retriever in a service: the user's functions see the request, and no request waits for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import ContextVar
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_posrag import CAUSRetriever
from langchain_posrag.sparse_leg import SparseLeg
from shared_core.index import ChunkKeys
from shared_core.index.sparse import view as sparse_view

tenant: ContextVar[str] = ContextVar("tenant", default="nobody")

TENANTS = [
    Document(f"mark {n}", id=str(n), metadata={"tenant": "acme" if n % 2 else "other"})
    for n in range(20)
]


def versions(version: int) -> list[Document]:
    return [Document(f"mark v{version}", id=f"q{n}", metadata={"v": version}) for n in range(5)]


def ends(function: Callable[[], object]) -> bool:
    """Return whether a function returns in another thread while this one waits for it."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(60)
    return not thread.is_alive()


@pytest.fixture(params=["own index", "vector store"])
def tenants_retriever(request: pytest.FixtureRequest, embeddings: Embeddings) -> CAUSRetriever:
    if request.param == "own index":
        return CAUSRetriever.from_documents(TENANTS, embeddings, k=20)
    store = InMemoryVectorStore.from_documents(TENANTS, embeddings)
    return CAUSRetriever.from_vectorstore(store, TENANTS, k=20)


@pytest.mark.parametrize("method", ["invoke", "ainvoke", "batch", "abatch"])
def test_a_filter_sees_the_context_of_the_request(
    tenants_retriever: CAUSRetriever, method: str
) -> None:
    seen = []

    def mine(metadata: Mapping[str, Any]) -> bool:
        seen.append(tenant.get())
        return bool(metadata["tenant"] == tenant.get())

    ask = getattr(tenants_retriever, method)
    given = ["mark", "mark 3"] if "batch" in method else "mark"
    token = tenant.set("acme")
    try:
        if method.startswith("a"):
            found = asyncio.run(ask(given, filter=mine))
        else:
            found = ask(given, filter=mine)
    finally:
        tenant.reset(token)

    each = found if "batch" in method else [found]
    assert [len(documents) for documents in each] == [10] * len(each)
    assert {document.metadata["tenant"] for documents in each for document in documents} == {"acme"}
    assert {*seen} == {"acme"}


def test_a_filter_may_wait_for_a_writer() -> None:
    """As one does that takes the application's lock, which the writer holds."""
    leg = SparseLeg.from_documents(versions(0))
    ended = []

    def allowed(metadata: Mapping[str, Any]) -> bool:
        ended.append(ends(lambda: leg.add([Document("mark", id="new")])))
        return True

    assert len(leg.search("mark", 10, allowed)) == 5
    assert ended == [True] * 5
    assert len(leg.search("mark", 10, None)) == 6


@pytest.mark.parametrize("asked", ["search", "scores"])
def test_a_query_does_not_wait_for_the_tokenizer_of_another(asked: str) -> None:
    def split(text: str) -> list[str]:
        if text == "slow mark":
            ended.append(ends(lambda: leg.search("mark", 10, None)))
        return text.split()

    ended: list[bool] = []
    leg = SparseLeg.from_documents(versions(0), tokenizer=split)
    found = leg.search("mark", 10, None)
    if asked == "search":
        assert leg.search("slow mark", 10, None) == found
    else:
        assert leg.scores("slow mark", found).tolist() == leg.scores("mark", found).tolist()
    assert ended == [True]


def test_a_query_does_not_wait_for_a_writer_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """One tokenizer is busy, and a change that drops rows has to come after it."""
    monkeypatch.setattr(sparse_view, "COMPACT", 1)
    begun, go_on = threading.Event(), threading.Event()

    def split(text: str) -> list[str]:
        if text == "slow":
            begun.set()
            assert go_on.wait(60)
        return text.split()

    leg = SparseLeg.from_documents(versions(0), tokenizer=split)
    with ThreadPoolExecutor(2) as threads:
        checking = threads.submit(leg.check, [Document("slow")])
        assert begun.wait(60)
        deleting = threads.submit(leg.delete, versions(0)[:4])
        wait([deleting], timeout=0.2)  # until it waits for the tokenizer
        searched = ends(lambda: leg.search("mark", 10, None))
        go_on.set()
        checking.result()
        deleting.result()
    assert searched
    assert len(leg.search("mark", 10, None)) == 1


def test_a_search_sees_the_state_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though a filter changes the leg, and the change numbers the rows anew."""
    monkeypatch.setattr(sparse_view, "COMPACT", 1)
    leg = SparseLeg.from_documents([Document("other", id="p"), *versions(0)])

    def allowed(metadata: Mapping[str, Any]) -> bool:
        if "v" in metadata and not changed:
            changed.append(True)
            leg.add([Document("mark mark", id="r"), *versions(1), Document("mark mark", id="s")])
        return "v" in metadata

    changed: list[bool] = []
    found = leg.search("mark", 10, allowed)
    assert [(passage.id, passage.metadata) for passage in found] == [
        (document.id, document.metadata) for document in versions(0)
    ]
    assert len(leg.search("mark", 10, None)) == 7


def test_queries_see_one_version_while_another_replaces_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sparse_view, "COMPACT", 1)
    leg, done = SparseLeg.from_documents(versions(0)), threading.Event()
    filters: list[Any] = [None, lambda metadata: metadata["v"] >= 0, {"v": list(range(400))}]

    def read() -> set[tuple[int, int]]:
        seen = set()
        while not done.is_set():
            for where in filters:
                found = leg.search("mark", 100, where)
                seen.add((len(found), len({passage.metadata["v"] for passage in found})))
                assert (leg.scores("mark", found) > 0).all()
                leg.neighbours(ChunkKeys(), where)
        return seen

    with ThreadPoolExecutor(3) as threads:
        reading = [threads.submit(read) for _ in range(3)]
        try:
            for version in range(1, 400):
                leg.add(versions(version))
        finally:
            done.set()
        assert [future.result() for future in reading] == [{(5, 1)}] * 3


class Noting:
    """Metadata that notes in which thread they are copied."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def __deepcopy__(self, memo: object) -> Noting:
        self.threads.add(threading.get_ident())
        return self


async def test_documents_are_copied_beside_the_event_loop() -> None:
    noting = Noting()
    documents = [Document("mark", id="a", metadata={"noting": noting}), Document("b", id="b")]
    retriever = CAUSRetriever.from_documents([], DeterministicFakeEmbedding(size=4))

    assert await retriever.aadd_documents(documents) == ["a", "b"]

    assert noting.threads
    assert threading.get_ident() not in noting.threads
