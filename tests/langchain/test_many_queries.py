"""Batches, threads and coroutines give what one call after the other gives."""

import asyncio
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_classic.retrievers import MultiQueryRetriever
from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    BaseCallbackHandler,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.indexing.base import DeleteResponse
from langchain_core.language_models import FakeListLLM
from langchain_core.runnables import RunnableConfig

from langchain_posrag import CAUSRetriever
from shared_core import HybridIndex

from .conftest import WORDS

QUERIES = [f"{one} and {other} layer" for one in WORDS for other in WORDS]


class FailsOn(DeterministicFakeEmbedding):
    """Raises for one query, and gives NaN for another."""

    def embed_query(self, text: str) -> list[float]:
        if text == "raise":
            raise ConnectionError("no model today")
        vector = super().embed_query(text)
        return [float("nan")] * len(vector) if text == "nan" else vector


class Events(BaseCallbackHandler):
    """Notes which event came for which query."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, object]] = []

    def on_retriever_start(self, serialized, query, *, name, tags, metadata, **kwargs) -> None:
        if name not in ("dense", "sparse"):
            self.seen.append(("start", (name, query, tuple(tags), metadata.get("user"))))

    def on_retriever_end(self, documents, *, parent_run_id, **kwargs) -> None:
        if parent_run_id is None:
            self.seen.append(("end", [document.id for document in documents]))

    def on_retriever_error(self, error, *, parent_run_id, **kwargs) -> None:
        if parent_run_id is None:
            self.seen.append(("error", str(error)))


class OfOneLanguage(CAUSRetriever):
    """Asks in its own words, for what one tenant may see; knows fewer options."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return super()._get_relevant_documents(
            f"{query} layer", run_manager=run_manager, k=k, filter={"lang": "en"}
        )

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return await super()._aget_relevant_documents(
            f"{query} layer", run_manager=run_manager, k=k, filter={"lang": "en"}
        )


class OfOneTenant(CAUSRetriever):
    """Overrides the synchronous methods alone."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return super()._get_relevant_documents(
            query, run_manager=run_manager, k=k, filter={"lang": "en"}
        )

    def add_documents(self, documents: Iterable[Document]) -> list[str]:
        stamped = [
            Document(each.page_content, id=each.id, metadata={"lang": "en"}) for each in documents
        ]
        return super().add_documents(stamped)

    def delete(self, ids: list[str] | None = None) -> DeleteResponse:  # type: ignore[override]
        raise PermissionError("nothing is deleted here")

    def get(self, ids: Sequence[str], /) -> list[Document]:  # type: ignore[override]
        return super().get(ids)[:1]


class Reversing(CAUSRetriever):
    """Changes the query before anything else sees it."""

    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        return super().invoke(" ".join(reversed(input.split())), config, **kwargs)[:2]

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        return (await super().ainvoke(" ".join(reversed(input.split())), config, **kwargs))[:2]


@pytest.fixture
def serial(retriever: CAUSRetriever) -> dict[str, list[Document]]:
    return {query: retriever.invoke(query) for query in QUERIES}


def test_batch_is_invoke(
    retriever: CAUSRetriever, serial: dict[str, list[Document]], monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = []
    pool = HybridIndex.pool

    def counting(index, queries, *args, **kwargs):
        batches.append(len(queries))
        return pool(index, queries, *args, **kwargs)

    monkeypatch.setattr(HybridIndex, "pool", counting)

    assert retriever.batch(QUERIES) == [serial[query] for query in QUERIES]
    assert batches == [len(QUERIES)]


async def test_abatch_is_invoke(
    retriever: CAUSRetriever, serial: dict[str, list[Document]]
) -> None:
    assert await retriever.abatch(QUERIES) == [serial[query] for query in QUERIES]


async def test_a_batch_of_none_and_of_one(retriever: CAUSRetriever) -> None:
    expected = [retriever.invoke("relu")]

    assert retriever.batch([]) == await retriever.abatch([]) == []
    assert retriever.batch(["relu"]) == await retriever.abatch(["relu"]) == expected


async def test_batch_takes_the_arguments_of_invoke(retriever: CAUSRetriever) -> None:
    arguments = {"k": 3, "fetch_k": 4, "alpha": 0.9, "filter": {"lang": "en"}}
    expected = [retriever.invoke(query, **arguments) for query in QUERIES[:5]]

    assert retriever.batch(QUERIES[:5], **arguments) == expected
    assert await retriever.abatch(QUERIES[:5], **arguments) == expected
    with pytest.raises(TypeError, match="kk"):
        retriever.batch(QUERIES[:5], kk=9)
    with pytest.raises(ValueError, match="k must be an integer >= 1, got 0"):
        await retriever.abatch(QUERIES[:5], k=0)


@pytest.mark.parametrize("subclass", [OfOneLanguage, OfOneTenant, Reversing])
async def test_a_batch_is_the_invoke_of_a_subclass(
    subclass: type[CAUSRetriever], documents: list[Document], embeddings: Embeddings
) -> None:
    retriever = subclass.from_documents(documents, embeddings, k=5, psi="always")
    queries = QUERIES[:6]
    expected = [retriever.invoke(query, k=3) for query in queries]

    assert retriever.batch(queries, k=3) == expected
    assert await retriever.abatch(queries, k=3) == expected
    assert [await retriever.ainvoke(query, k=3) for query in queries] == expected


async def test_what_a_subclass_does_synchronously_holds_when_awaited(
    documents: list[Document], embeddings: Embeddings
) -> None:
    """As in LangChain's base classes, whose async methods run the others in a thread."""
    retriever = OfOneTenant.from_documents(documents[:3], embeddings)
    added = [Document("An added text.", id="a"), Document("Another.", id="b")]
    assert await retriever.aadd_documents(added) == ["a", "b"]
    assert [each.metadata for each in await retriever.aget(["a", "b"])] == [{"lang": "en"}]
    assert (await retriever.aupsert([Document("One more.", id="c")]))["succeeded"] == ["c"]
    assert [each.metadata for each in retriever.get(["c"])] == [{"lang": "en"}]
    with pytest.raises(PermissionError):
        await retriever.adelete(["a"])


async def test_what_a_subclass_does_synchronously_gets_the_options_of_an_awaited_call(
    documents: list[Document], embeddings: Embeddings
) -> None:
    """All that are set, a filter among them, and no others."""
    heard: list[dict[str, Any]] = []

    class Listening(CAUSRetriever):
        def _get_relevant_documents(
            self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
        ) -> list[Document]:
            heard.append(options)
            return super()._get_relevant_documents(query, run_manager=run_manager, **options)

    retriever = Listening.from_documents(documents, embeddings)
    options = {"k": 2, "fetch_k": 3, "alpha": 0.0, "filter": {"lang": "de"}}
    assert await retriever.ainvoke("layer", **options) == retriever.invoke("layer", **options)
    await retriever.ainvoke("layer", alpha=0.0)
    assert heard == [options, options, {"alpha": 0.0}]


def test_a_subclass_that_changes_nothing_of_a_query_searches_for_all_at_once(
    documents: list[Document], embeddings: Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Named(CAUSRetriever):
        def label(self) -> str:
            return "named"

    retriever, batches, pool = Named.from_documents(documents, embeddings), [], HybridIndex.pool
    expected = [retriever.invoke(query) for query in QUERIES[:3]]
    monkeypatch.setattr(
        HybridIndex,
        "pool",
        lambda *given, **options: batches.append(given) or pool(*given, **options),
    )
    assert retriever.batch(QUERIES[:3]) == expected
    assert len(batches) == 1


async def test_what_a_batch_hands_to_its_runs_is_no_option(retriever: CAUSRetriever) -> None:
    """Given to a call, it is refused as any unknown option."""
    for found in ("x", ValueError("injected")):
        with pytest.raises(TypeError, match="unexpected keyword argument 'found'"):
            retriever.invoke("relu", found=found)
        with pytest.raises(TypeError, match="unexpected keyword argument 'found'"):
            await retriever.ainvoke("relu", found=found)
        with pytest.raises(TypeError, match="unexpected keyword argument 'found'"):
            retriever.batch(["relu", "pool"], found=found)


class Asking(BaseCallbackHandler):
    """Asks retrievers for the query of a run: one when it starts, one when it ends."""

    run_inline = True

    def __init__(self, at_start: CAUSRetriever, at_end: CAUSRetriever) -> None:
        self.at_start, self.at_end, self.found = at_start, at_end, {}

    def on_retriever_start(self, serialized, query, *, run_id, parent_run_id, **kwargs) -> None:
        if parent_run_id is None:
            self.found[run_id] = [query, self.at_start.invoke(query)]

    def on_retriever_end(self, documents, *, run_id, parent_run_id, **kwargs) -> None:
        if parent_run_id is None:
            self.found[run_id].append(self.at_end.invoke(self.found[run_id][0], k=4))


@pytest.mark.parametrize("batch", ["batch", "abatch"])
def test_what_a_run_of_a_batch_asks_itself_is_searched_for(
    retriever: CAUSRetriever, documents: list[Document], embeddings: Embeddings, batch: str
) -> None:
    """A callback gets its own answer, and not the one that the run is to report."""
    other = CAUSRetriever.from_documents(documents, embeddings, k=2)
    asking = Asking(other, retriever)
    config: RunnableConfig = {"callbacks": [asking]}
    ask = retriever.batch if batch == "batch" else run_through(retriever.abatch)
    assert ask(QUERIES[:3], config) == [retriever.invoke(query) for query in QUERIES[:3]]
    assert len(asking.found) == 3
    for query, before, after in asking.found.values():
        assert before == other.invoke(query)
        assert after == retriever.invoke(query, k=4)


@pytest.mark.parametrize("bad", [{"k": 0}, {"kk": 9}])
async def test_bad_arguments_are_returned_as_exceptions(
    retriever: CAUSRetriever, bad: dict[str, int]
) -> None:
    found = retriever.batch(["a", "b"], return_exceptions=True, **bad)
    afound = await retriever.abatch(["a", "b"], return_exceptions=True, **bad)

    assert [type(error) for error in found] == [type(error) for error in afound]
    assert all(isinstance(error, ValueError | TypeError) for error in found)


async def test_one_bad_query_fails_alone(documents: list[Document]) -> None:
    retriever = CAUSRetriever.from_documents(documents, FailsOn(size=16))
    queries = ["relu", "raise", "nan", "pool"]

    found = retriever.batch(queries, return_exceptions=True)
    afound = await retriever.abatch(queries, return_exceptions=True)

    for results in (found, afound):
        assert (results[0], results[3]) == (retriever.invoke("relu"), retriever.invoke("pool"))
        assert isinstance(results[1], ConnectionError)
        assert isinstance(results[2], ValueError)
    with pytest.raises(ConnectionError, match="no model today"):
        retriever.batch(queries)
    with pytest.raises(ConnectionError, match="no model today"):
        await retriever.abatch(queries)


async def test_a_query_that_the_model_gives_no_vector_for_is_refused(
    documents: list[Document],
) -> None:
    """And not left out, which would shift the answers of those behind it."""

    class Swallowing(DeterministicFakeEmbedding):
        def embed_query(self, text: str) -> Any:
            return None if text == "none" else super().embed_query(text)

    retriever = CAUSRetriever.from_documents(documents, Swallowing(size=16))
    queries, refused = ["relu", "none", "pool"], "model returned None for the query 'none'"

    found = retriever.batch(queries, return_exceptions=True)
    afound = await retriever.abatch(queries, return_exceptions=True)

    for results in (found, afound):
        assert (results[0], results[2]) == (retriever.invoke("relu"), retriever.invoke("pool"))
        assert isinstance(results[1], ValueError)
        assert refused in str(results[1])
    with pytest.raises(ValueError, match=refused):
        retriever.batch(queries)
    with pytest.raises(ValueError, match=refused):
        await retriever.abatch(queries)
    with pytest.raises(ValueError, match=refused):
        retriever.invoke("none")
    with pytest.raises(ValueError, match=refused):
        await retriever.ainvoke("none")


async def test_each_query_of_a_batch_is_a_run_of_its_own(documents: list[Document]) -> None:
    retriever = CAUSRetriever.from_documents(documents, FailsOn(size=16), k=2, tags=["mine"])
    queries = ["relu", "raise", "pool"]

    def run(events: Events, user: int) -> dict[str, object]:
        return {"callbacks": [events], "run_name": f"r{user}", "metadata": {"user": user}}

    expected = Events()
    for user, query in enumerate(queries):
        try:
            retriever.invoke(query, run(expected, user))
        except ConnectionError:
            continue
    sync, native = Events(), Events()
    configs = [run(sync, user) for user in range(3)]
    retriever.batch(queries, configs, return_exceptions=True)
    configs = [run(native, user) for user in range(3)]
    await retriever.abatch(queries, configs, return_exceptions=True)

    assert sync.seen == expected.seen
    assert sorted(native.seen, key=repr) == sorted(expected.seen, key=repr)
    assert [event for event, _ in expected.seen] == [
        "start",
        "end",
        "start",
        "error",
        "start",
        "end",
    ]
    assert ("start", ("r1", "raise", ("mine",), 1)) in sync.seen


def test_queries_are_embedded_side_by_side_and_stay_in_order(documents: list[Document]) -> None:
    """Each of two threads waits for the other."""

    class Meeting(DeterministicFakeEmbedding):
        def embed_query(self, text: str) -> list[float]:
            threads.add(threading.get_ident())
            together.wait(timeout=60)
            return super().embed_query(text)

    threads: set[int] = set()
    together = threading.Barrier(2)
    retriever = CAUSRetriever.from_documents(documents, Meeting(size=16))
    usual = CAUSRetriever.from_documents(documents, DeterministicFakeEmbedding(size=16))

    found = retriever.batch(QUERIES[:20], {"max_concurrency": 2})

    assert found == usual.batch(QUERIES[:20], {"max_concurrency": 1})
    assert found == [usual.invoke(query) for query in QUERIES[:20]]
    assert len(threads) == 2


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


def test_a_batch_stops_at_the_first_failure_unless_told_to_go_on(
    documents: list[Document],
) -> None:
    """A rejected key is not tried for every query; and only what was tried has a run."""
    queries = [f"{number} layers" for number in range(200)]
    for batch in (CAUSRetriever.batch, run_through(CAUSRetriever.abatch)):
        model, events = Counting(fail), Events()
        retriever = CAUSRetriever.from_documents(documents, model)
        with pytest.raises(ConnectionError, match="no model today"):
            batch(retriever, queries, {"callbacks": [events], "max_concurrency": 4})
        assert 5 <= len(model.asked) < 100
        assert {what[1] for kind, what in events.seen if kind == "start"} <= {*model.asked}

        model = Counting(fail)
        retriever = CAUSRetriever.from_documents(documents, model)
        found = batch(retriever, queries, return_exceptions=True)
        assert len(found) == len(model.asked) == 200
        assert sum(isinstance(each, Exception) for each in found) == 1


def test_an_interrupt_stops_a_batch(documents: list[Document]) -> None:
    """Ctrl-C does not wait until every query has been embedded."""
    model = Counting(lambda: os.kill(os.getpid(), signal.SIGINT))
    retriever = CAUSRetriever.from_documents(documents, model)
    with pytest.raises(KeyboardInterrupt):
        retriever.batch([f"{number} layers" for number in range(200)])
    assert len(model.asked) < 100


def test_a_model_that_stops_an_iteration_loses_no_answer(documents: list[Document]) -> None:
    """StopIteration, which `map` would take for the end."""

    def stop() -> None:
        raise StopIteration

    with pytest.raises(StopIteration):
        CAUSRetriever.from_documents(documents, Counting(stop)).batch([*"abcdefg"])


async def test_max_concurrency_limits_the_embedding(documents: list[Document]) -> None:
    class Counting(DeterministicFakeEmbedding):
        async def aembed_query(self, text: str) -> list[float]:
            running.add(text)
            most.append(len(running))
            await asyncio.sleep(0)
            running.discard(text)
            return self.embed_query(text)

    running: set[str] = set()
    most: list[int] = []
    retriever = CAUSRetriever.from_documents(documents, Counting(size=16))

    await retriever.abatch(QUERIES[:20], {"max_concurrency": 2})
    limited = max(most)
    await retriever.abatch(QUERIES[:20])

    assert limited == 2 < max(most)


async def test_ainvoke_awaits_the_embedding(documents: list[Document]) -> None:
    class Native(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise AssertionError("the async twin is there")

        def embed_query(self, text: str) -> list[float]:
            raise AssertionError("the async twin is there")

        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            return model.embed_documents(texts)

        async def aembed_query(self, text: str) -> list[float]:
            return model.embed_query(text)

    model = DeterministicFakeEmbedding(size=16)
    native = CAUSRetriever.from_documents([], Native())
    await native.aadd_documents(documents)
    expected = CAUSRetriever.from_documents(documents, model)

    assert await native.ainvoke("relu") == expected.invoke("relu")
    assert await native.abatch(["relu", "pool"]) == expected.batch(["relu", "pool"])


def test_sixteen_threads(retriever: CAUSRetriever, serial: dict[str, list[Document]]) -> None:
    queries = [QUERIES[i % len(QUERIES)] for i in range(1000)]

    def run(_: int) -> int:
        return sum(retriever.invoke(query) != serial[query] for query in queries)

    with ThreadPoolExecutor(16) as threads:
        assert sum(threads.map(run, range(16))) == 0


async def test_a_hundred_coroutines(
    retriever: CAUSRetriever, serial: dict[str, list[Document]]
) -> None:
    queries = QUERIES[:100]

    found = await asyncio.gather(*map(retriever.ainvoke, queries))

    assert found == [serial[query] for query in queries]


def test_without_scores_langchain_keeps_what_several_queries_find_once(
    retriever: CAUSRetriever,
) -> None:
    """With them it does not: each explanation belongs to one query."""
    model = FakeListLLM(responses=["relu layer\nthe relu module"])
    told = MultiQueryRetriever.from_llm(retriever, model)
    plain = MultiQueryRetriever.from_llm(
        retriever.model_copy(update={"include_scores": False}), model
    )

    many = [document.id for document in told.invoke("relu")]
    once = [document.id for document in plain.invoke("relu")]

    assert len(many) > len({*many})
    assert len(once) == len({*once}) == len({*many})
