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


@pytest.mark.parametrize("awaited", [False, True])
async def test_bad_queries_fail_alone(documents: list[Document], awaited: bool) -> None:
    """And none is left out, which would shift the answers of those behind it.

    Each is a run of its own, with its config and its result or error.
    """
    retriever = CAUSRetriever.from_documents(documents, FailsOn(size=16))
    queries, tracer = ["relu", "raise", "nan", "none", "pool"], Tracer()
    configs: Any = [{"callbacks": [tracer], "run_name": f"r{at}"} for at in range(5)]
    found: list[Any] = (
        await retriever.abatch(queries, configs, return_exceptions=True)
        if awaited
        else retriever.batch(queries, configs, return_exceptions=True)
    )
    assert [found[0], found[4]] == [retriever.invoke("relu"), retriever.invoke("pool")]
    assert isinstance(found[1], ConnectionError)
    assert all(isinstance(each, ValueError) for each in found[2:4])
    runs = sorted(tracer.roots, key=lambda run: run.name)
    assert [run.inputs["query"] for run in runs] == queries
    assert [bool(run.error) for run in runs] == [False, True, True, True, False]
    assert [runs[at].outputs["documents"] for at in (0, 4)] == [found[0], found[4]]


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


def run_through(method: Callable[..., Any]) -> Callable[..., Any]:
    """Run a coroutine method from beginning to end."""
    return lambda *args, **kwargs: asyncio.run(method(*args, **kwargs))


def fail() -> None:
    raise ConnectionError("no model today")


@pytest.mark.parametrize("batch", [CAUSRetriever.batch, run_through(CAUSRetriever.abatch)])
def test_a_batch_stops_at_the_first_failure_unless_told_to_go_on(
    documents: list[Document], batch: Callable[..., Any]
) -> None:
    """A rejected key is not tried for every query; told to go on, each is tried by itself.

    Nor does Ctrl-C wait until every query has been embedded.
    """
    queries = [f"{number} layers" for number in range(200)]
    stops: list[tuple[Any, Any]] = [(fail, ConnectionError)]
    if batch is CAUSRetriever.batch:
        stops.append((lambda: os.kill(os.getpid(), signal.SIGINT), KeyboardInterrupt))
    for happens, raised in stops:
        model = Counting(happens)
        with pytest.raises(raised):
            batch(CAUSRetriever.from_documents(documents, model), queries, {"max_concurrency": 4})
        assert 5 <= len(model.asked) < 100
    model = Counting(fail)
    found = batch(CAUSRetriever.from_documents(documents, model), queries, return_exceptions=True)
    assert len(found) == 200 <= len(model.asked) < 300
    assert not any(isinstance(each, Exception) for each in found)


async def test_max_concurrency_limits_the_embedding(documents: list[Document]) -> None:
    """In threads, of which each of two waits for the other, and awaited; answers keep order."""

    class Meeting(DeterministicFakeEmbedding):
        def embed_query(self, text: str) -> list[float]:
            together.wait(timeout=60)
            return super().embed_query(text)

        async def aembed_query(self, text: str) -> list[float]:
            running.add(text)
            most.append(len(running))
            await asyncio.sleep(0)
            running.discard(text)
            return super().embed_query(text)

    running: set[str] = set()
    most: list[int] = []
    together = threading.Barrier(2)
    retriever = CAUSRetriever.from_documents(documents, Meeting(size=16))
    usual = CAUSRetriever.from_documents(documents, DeterministicFakeEmbedding(size=16))
    found = retriever.batch(WORDS, {"max_concurrency": 2})
    assert found == await retriever.abatch(WORDS, {"max_concurrency": 2})
    assert found == [usual.invoke(query) for query in WORDS]
    limited = max(most)
    await retriever.abatch(WORDS)
    assert limited == 2 < max(most)
