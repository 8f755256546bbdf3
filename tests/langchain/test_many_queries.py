"""Batches as LangChain has them: exceptions returned, runs of their own, limits, interrupts."""

import asyncio
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from langchain_posrag import CAUSRetriever

from .conftest import WORDS
from .test_tracing import Tracer


class FailsOn(DeterministicFakeEmbedding):
    """Raises for one query, gives NaN for another, and nothing for a third."""

    def embed_query(self, text: str) -> Any:
        if text == "raise":
            raise ConnectionError("no model today")
        vector = super().embed_query(text)
        return {"nan": [float("nan")] * len(vector), "none": None}.get(text, vector)


async def test_bad_queries_fail_alone(documents: list[Document]) -> None:
    """And none is left out, which would shift the answers of those behind it."""
    retriever = CAUSRetriever.from_documents(documents, FailsOn(size=16))
    queries: list[Any] = ["relu", "raise", "nan", "none", "pool"]
    expected = [retriever.invoke("relu"), retriever.invoke("pool")]
    for found in (
        retriever.batch(queries, return_exceptions=True),
        await retriever.abatch(queries, return_exceptions=True),
    ):
        assert [found[0], found[4]] == expected
        assert isinstance(found[1], ConnectionError)
        assert all(isinstance(each, ValueError) for each in found[2:4])


async def test_each_query_of_a_batch_is_a_run_of_its_own(documents: list[Document]) -> None:
    """With its config, and its result or its error."""
    retriever = CAUSRetriever.from_documents(documents, FailsOn(size=16), k=2)
    queries, told = ["relu", "raise", "pool"], "ConnectionError('no model today')"
    for awaited in (False, True):
        tracer = Tracer()
        configs: Any = [{"callbacks": [tracer], "run_name": f"r{at}"} for at in range(3)]
        if awaited:
            found = await retriever.abatch(queries, configs, return_exceptions=True)
        else:
            found = retriever.batch(queries, configs, return_exceptions=True)
        runs = sorted(tracer.roots, key=lambda run: run.name)
        assert [(run.name, run.inputs["query"]) for run in runs] == [
            *zip(["r0", "r1", "r2"], queries, strict=True)
        ]
        assert [(run.error or "").startswith(told) for run in runs] == [False, True, False]
        assert [runs[at].outputs["documents"] for at in (0, 2)] == [found[0], found[2]]


class Counting(Embeddings):
    """Notes what it embeds; at the fifth query something happens."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self.happens, self.asked, self.number = happens, [], itertools.count(1)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, float(len(text))] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.asked.append(text)
        time.sleep(0.01)
        if next(self.number) == 5:
            self.happens()
        return [1.0, float(len(text))]


def fail() -> None:
    raise ConnectionError("no model today")


def run_through(method: Callable[..., Any]) -> Callable[..., Any]:
    """Run a coroutine method from beginning to end."""
    return lambda *args, **kwargs: asyncio.run(method(*args, **kwargs))


@pytest.mark.parametrize("batch", [CAUSRetriever.batch, run_through(CAUSRetriever.abatch)])
def test_a_batch_stops_at_the_first_failure_unless_told_to_go_on(
    documents: list[Document], batch: Callable[..., Any]
) -> None:
    """A rejected key is not tried for every query; told to go on, each is tried by itself."""
    queries = [f"{number} layers" for number in range(200)]
    model = Counting(fail)
    with pytest.raises(ConnectionError, match="no model today"):
        batch(CAUSRetriever.from_documents(documents, model), queries, {"max_concurrency": 4})
    assert 5 <= len(model.asked) < 100
    model = Counting(fail)
    retriever = CAUSRetriever.from_documents(documents, model)
    found = batch(retriever, queries, return_exceptions=True)
    assert len(found) == 200 <= len(model.asked) < 300
    assert not any(isinstance(each, Exception) for each in found)


def test_an_interrupt_stops_a_batch(documents: list[Document]) -> None:
    """Ctrl-C does not wait until every query has been embedded."""
    model = Counting(lambda: os.kill(os.getpid(), signal.SIGINT))
    retriever = CAUSRetriever.from_documents(documents, model)
    with pytest.raises(KeyboardInterrupt):
        retriever.batch([f"{number} layers" for number in range(200)])
    assert len(model.asked) < 100


def test_queries_are_embedded_side_by_side_and_stay_in_order(documents: list[Document]) -> None:
    """Each of two threads waits for the other."""

    class Waiting(DeterministicFakeEmbedding):
        def embed_query(self, text: str) -> list[float]:
            together.wait(timeout=60)
            return super().embed_query(text)

    together = threading.Barrier(2)
    retriever = CAUSRetriever.from_documents(documents, Waiting(size=16))
    usual = CAUSRetriever.from_documents(documents, DeterministicFakeEmbedding(size=16))
    found = retriever.batch(WORDS, {"max_concurrency": 2})
    assert found == [usual.invoke(query) for query in WORDS]


async def test_max_concurrency_limits_the_embedding(documents: list[Document]) -> None:
    class Meeting(DeterministicFakeEmbedding):
        async def aembed_query(self, text: str) -> list[float]:
            running.add(text)
            most.append(len(running))
            await asyncio.sleep(0)
            running.discard(text)
            return self.embed_query(text)

    running: set[str] = set()
    most: list[int] = []
    retriever = CAUSRetriever.from_documents(documents, Meeting(size=16))
    await retriever.abatch(WORDS, {"max_concurrency": 2})
    limited = max(most)
    await retriever.abatch(WORDS)
    assert limited == 2 < max(most)
