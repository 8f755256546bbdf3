"""Awaited forms: the model is awaited, the loop is free, nothing is left of what was cut off."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import MockLLM

from llamaindex_posrag import CAUSRetriever, GatedQueryEngine
from shared_core import tokenize

from .checks import facts
from .doubles import TEXTS, WordEmbedding, corpus, traced, words


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
    retriever.embed_model = model or retriever.embed_model
    return retriever


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


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
def test_a_batch_that_ends_early_ends_all_that_it_began(how: str) -> None:
    """No other call to the model goes on behind it, and no span stays open."""
    retriever = built(model := Awaited())
    queries = ["this hangs", "this hangs, too", *(["this fails"] if how == "fails" else [])]

    async def run() -> None:
        task = asyncio.create_task(retriever.aretrieve_batch(queries))
        while len(model._started) < len(queries):
            await asyncio.sleep(0)
        if how != "fails":
            task.cancel()
        with pytest.raises(ConnectionError if how == "fails" else asyncio.CancelledError):
            await task
        assert len(model._started) == len(model._ended) == len(queries)

    with traced() as trace:
        asyncio.run(run())
    assert not trace.spans.open_spans


def test_a_gate_that_is_cancelled_ends_all_that_it_began() -> None:
    engine = GatedQueryEngine.from_retriever(retriever := built(), MockLLM())
    retriever.embed_model = model = Awaited()

    async def run() -> None:
        task = asyncio.create_task(engine.aquery("this hangs"))
        while not model._started:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert model._ended == ["this hangs"]

    with traced() as trace:
        asyncio.run(run())
    assert not trace.spans.open_spans


@pytest.mark.parametrize(("workers", "most"), [(None, len(TEXTS)), (3, 3)])
def test_a_batch_embeds_as_many_queries_at_once_as_the_model_allows(
    workers: int | None, most: int
) -> None:
    retriever = built(model := Awaited(num_workers=workers))
    asyncio.run(retriever.aretrieve_batch([*TEXTS]))
    assert model._most == most
