"""Awaited forms: the model is awaited, the loop is free, nothing is left of what was cut off."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.callbacks import CallbackManager, CBEventType
from llama_index.core.schema import TextNode

from llamaindex_posrag import CAUSRetriever
from shared_core import tokenize

from .checks import facts, ids
from .doubles import QUERY, TEXTS, CallbackLog, WordEmbedding, corpus, traced, words


class Awaited(WordEmbedding):
    """A model whose async form alone works; one text fails, and one never comes back."""

    _started: list[str] = PrivateAttr(default_factory=list)
    _ended: list[str] = PrivateAttr(default_factory=list)
    _most: int = PrivateAttr(default=0)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        self._started.append(text)
        self._most = max(self._most, len(self._started) - len(self._ended))
        try:
            await asyncio.sleep(0)
            if "fails" in text:
                raise ConnectionError("the embedding service is gone")
            if "hangs" in text:
                await asyncio.Event().wait()
            return words(text)
        finally:
            self._ended.append(text)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await self._aget_text_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        raise AssertionError("the event loop was held up")

    def _get_query_embedding(self, query: str) -> list[float]:
        raise AssertionError("the event loop was held up")


def built(model: WordEmbedding | None = None, **options: Any) -> CAUSRetriever:
    """Return a retriever over the corpus; the model is put in afterwards."""
    retriever = CAUSRetriever.from_nodes(corpus(), WordEmbedding(), k=5, psi="always", **options)
    if model is not None:
        retriever.embed_model = model
    return retriever


async def cancelled(work: Coroutine[Any, Any, Any], when: Callable[[], bool]) -> None:
    """Cancel a coroutine once `when` is true."""
    task = asyncio.create_task(work)
    while not (when() or task.done()):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_model_is_awaited_and_the_rest_done_in_threads() -> None:
    threads: set[threading.Thread] = set()

    def noting(text: str) -> list[str]:
        threads.add(threading.current_thread())
        return tokenize(text)

    expected = built()
    retriever = CAUSRetriever.from_nodes([], Awaited(), tokenizer=noting, k=5, psi="always")

    async def run() -> None:
        assert len(await retriever.aadd_nodes(corpus())) == 12
        for query in TEXTS:
            assert facts(await retriever.aretrieve(query)) == facts(expected.retrieve(query))
        batch = await retriever.aretrieve_batch([*TEXTS])
        assert list(map(facts, batch)) == list(map(facts, expected.retrieve_batch([*TEXTS])))

    asyncio.run(run())
    assert threads
    assert threading.main_thread() not in threads


def test_cancelled_while_it_adds_everything_is_added() -> None:
    """A thread cannot be stopped halfway; what it leaves is whole, and can be searched."""
    began, go_on = threading.Event(), threading.Event()

    def slowly(text: str) -> list[str]:
        if "slow" in text:
            began.set()
            go_on.wait(60)
        return tokenize(text)

    async def run() -> None:
        try:
            await cancelled(retriever.aadd_nodes(nodes), began.is_set)
        finally:
            go_on.set()

    retriever = built(Awaited(), tokenizer=slowly)
    nodes = [TextNode(id_=id_, text=f"{QUERY} slow {id_}") for id_ in "xy"]
    asyncio.run(run())  # which waits for its threads
    assert len(retriever.index) == 14
    assert {"x", "y"} <= {*ids(asyncio.run(retriever.aretrieve(QUERY)))}


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
def test_a_batch_that_ends_early_ends_all_its_events(how: str) -> None:
    """And no other call to the model goes on behind it."""
    log = CallbackLog()
    retriever = built(model := Awaited(), callback_manager=CallbackManager([log]))
    queries = ["this hangs", "this hangs, too", *(["this fails"] if how == "fails" else [])]

    async def run() -> None:
        if how == "fails":
            with pytest.raises(ConnectionError):
                await retriever.aretrieve_batch(queries)
        else:
            work = retriever.aretrieve_batch(queries)
            await cancelled(work, lambda: len(model._started) == 2)
        assert len(model._started) == len(model._ended) == len(queries)

    with traced() as trace:
        asyncio.run(run())
    assert not trace.spans.open_spans
    # LlamaIndex notes an exception as an event that starts only.
    log.started = [kind for kind in log.started if kind != CBEventType.EXCEPTION]
    assert sorted(log.started) == sorted(log.ended)


@pytest.mark.parametrize(("workers", "most"), [(None, len(TEXTS)), (3, 3)])
def test_a_batch_embeds_as_many_queries_at_once_as_the_model_allows(
    workers: int | None, most: int
) -> None:
    retriever = built(model := Awaited(num_workers=workers))
    asyncio.run(retriever.aretrieve_batch([*TEXTS]))
    assert model._most == most
