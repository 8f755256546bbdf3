"""What a tracer sees."""

import asyncio
import copy
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_posrag import CAUSRetriever


class Tracer(BaseTracer):
    """Keeps the finished root runs."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)


def found_by(run: Run) -> list[Document]:
    return (run.outputs or {})["documents"]


@pytest.fixture(params=["own index", "vector store"])
def traced_retriever(
    request: pytest.FixtureRequest, retriever: CAUSRetriever, documents: list[Document]
) -> CAUSRetriever:
    if request.param == "own index":
        return retriever
    store = InMemoryVectorStore.from_documents(documents, DeterministicFakeEmbedding(size=16))
    return CAUSRetriever.from_vectorstore(store, documents, k=5, psi="always")


@pytest.mark.parametrize("native", [False, True])
def test_legs_and_gate_are_child_runs(traced_retriever: CAUSRetriever, native: bool) -> None:
    tracer = Tracer()
    expected = traced_retriever.invoke("relu layer")
    config: Any = {"callbacks": [tracer], "tags": ["mine"], "run_name": "search"}

    if native:
        found = asyncio.run(traced_retriever.ainvoke("relu layer", config))
    else:
        found = traced_retriever.invoke("relu layer", config)

    (root,) = tracer.roots
    assert found == found_by(root) == expected
    assert (root.name, root.run_type) == ("search", "retriever")
    children = {run.name: run for run in root.child_runs}
    assert set(children) == {"dense", "sparse", "gate"}
    for leg in ("dense", "sparse"):
        ordered = sorted(expected, key=lambda document: document.metadata["posrag"][f"{leg}_rank"])
        assert [d.id for d in found_by(children[leg])] == [document.id for document in ordered]
        scores = [document.metadata["score"] for document in found_by(children[leg])]
        assert scores == [document.metadata["posrag"][leg] for document in ordered]
        assert {leg, "mine"} <= set(children[leg].tags or [])
    assert children["gate"].outputs == {
        "opened": True,
        "reason": "psi='always'",
        "placement": "u_shape",
        "slots": [0, 2, 4, 3, 1],
    }


async def test_a_stream_of_events_can_leave_out_the_legs(traced_retriever: CAUSRetriever) -> None:
    async def found(**options: Any) -> list[list[Document]]:
        events = traced_retriever.astream_events("relu layer", version="v2", **options)
        ends = [event async for event in events if event["event"] == "on_retriever_end"]
        return [event["data"]["output"] for event in ends]

    assert len(await found()) == 3
    assert await found(exclude_tags=["dense", "sparse"]) == [traced_retriever.invoke("relu layer")]


@pytest.mark.parametrize("native", [False, True])
def test_an_error_ends_every_run(traced_retriever: CAUSRetriever, native: bool) -> None:
    tracer = Tracer()
    config: Any = {"callbacks": [tracer]}

    def ask() -> None:
        if native:
            asyncio.run(traced_retriever.ainvoke("relu", config, k=0))
        else:
            traced_retriever.invoke("relu", config, k=0)

    with pytest.raises(ValueError, match="got 0"):
        ask()

    (root,) = tracer.roots
    assert [run.name for run in root.child_runs] == ["dense", "sparse"]
    assert all("got 0" in (run.error or "") for run in (root, *root.child_runs))


class Ended(BaseCallbackHandler):
    """Names of the runs that began, and of those that ended in an error."""

    def __init__(self) -> None:
        self.names: dict[UUID, str | None] = {}
        self.errors: dict[str | None, BaseException] = {}

    def on_retriever_start(
        self, *args: Any, run_id: UUID, name: str | None = None, **kwargs: Any
    ) -> None:
        self.names[run_id] = name

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self.errors[self.names[run_id]] = error


async def test_a_cancelled_search_ends_the_runs_of_both_legs(retriever: CAUSRetriever) -> None:
    """As by a timeout of the caller's."""

    class Hanging(DeterministicFakeEmbedding):
        async def aembed_query(self, text: str) -> list[float]:
            asked.set()
            await asyncio.Event().wait()
            return []

    asked, ended = asyncio.Event(), Ended()
    hanging = retriever.model_copy(update={"embeddings": Hanging(size=16)})
    task = asyncio.create_task(hanging.ainvoke("relu", {"callbacks": [ended]}))
    await asked.wait()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert {"dense", "sparse"} <= {*ended.names.values()}
    for leg in ("dense", "sparse"):
        assert isinstance(ended.errors[leg], asyncio.CancelledError)


class Open(AsyncCallbackHandler):
    """Names of the runs that have begun and not ended; each event is a step in which to cancel."""

    def __init__(self, cancelled_at: int) -> None:
        self.cancelled_at, self.step = cancelled_at, 0
        self.names: dict[UUID, Any] = {}
        self.seen: set[Any] = set()
        self.task: asyncio.Task[Any] | None = None

    async def _begin(self, run_id: UUID, parent_run_id: UUID | None, name: Any) -> None:
        if parent_run_id is not None:  # LangChain itself leaves that of the retriever open
            self.names[run_id] = name
            self.seen.add(name)
            await self._step()

    async def _end(self, run_id: UUID) -> None:
        await self._step()
        self.names.pop(run_id, None)

    async def _step(self) -> None:
        self.step += 1
        if self.step == self.cancelled_at and self.task is not None:
            self.task.cancel()
        await asyncio.sleep(0)

    async def on_retriever_start(self, *args, run_id, parent_run_id=None, name=None, **kwargs):
        await self._begin(run_id, parent_run_id, name)

    async def on_chain_start(self, *args, run_id, parent_run_id=None, name=None, **kwargs):
        await self._begin(run_id, parent_run_id, name)

    async def on_retriever_end(self, *args, run_id, **kwargs):
        await self._end(run_id)

    async def on_chain_end(self, *args, run_id, **kwargs):
        await self._end(run_id)

    async def on_retriever_error(self, *args, run_id, **kwargs):
        await self._end(run_id)


@pytest.mark.parametrize("cancelled_at", range(3, 7))
async def test_cancelled_while_runs_end_a_search_leaves_none_open(
    retriever: CAUSRetriever, cancelled_at: int
) -> None:
    """In the end of the dense leg's run, of the sparse leg's, in the start of the gate's, its end.

    They end after the task has: it does not wait for them.
    """
    handler = Open(cancelled_at)
    handler.task = asyncio.create_task(retriever.ainvoke("relu", {"callbacks": [handler]}))

    with pytest.raises(asyncio.CancelledError):
        await handler.task
    for _ in range(100):
        await asyncio.sleep(0)

    assert handler.seen == {"dense", "sparse", "gate"}
    assert handler.names == {}


async def test_cancelled_twice_a_search_leaves_no_run_open(retriever: CAUSRetriever) -> None:
    """While it embeds, and again while the runs of both legs are ended in that error."""

    class Hanging(DeterministicFakeEmbedding):
        async def aembed_query(self, text: str) -> list[float]:
            asked.set()
            await asyncio.Event().wait()
            return []

    asked, handler = asyncio.Event(), Open(3)
    hanging = retriever.model_copy(update={"embeddings": Hanging(size=16)})
    handler.task = asyncio.create_task(hanging.ainvoke("relu", {"callbacks": [handler]}))
    await asked.wait()
    handler.task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await handler.task
    for _ in range(100):
        await asyncio.sleep(0)

    assert handler.seen == {"dense", "sparse"}
    assert handler.names == {}


def test_an_interrupted_search_ends_the_runs_of_both_legs(retriever: CAUSRetriever) -> None:
    class Interrupted(DeterministicFakeEmbedding):
        def embed_query(self, text: str) -> list[float]:
            raise KeyboardInterrupt

    ended = Ended()
    interrupted = retriever.model_copy(update={"embeddings": Interrupted(size=16)})

    with pytest.raises(KeyboardInterrupt):
        interrupted.invoke("relu", {"callbacks": [ended]})

    for leg in ("dense", "sparse"):
        assert isinstance(ended.errors[leg], KeyboardInterrupt)


async def test_async_handlers_are_heard(retriever: CAUSRetriever) -> None:
    class Listening(AsyncCallbackHandler):
        async def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
            heard.append(len(documents))

    heard: list[int] = []

    await retriever.ainvoke("relu", {"callbacks": [Listening()]})

    assert heard == [5, 5, 5]


def test_a_handler_cannot_change_the_index(retriever: CAUSRetriever) -> None:
    class Meddling(BaseCallbackHandler):
        def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
            for document in documents:
                document.metadata["tags"]["kind"].append("changed")

    before = copy.deepcopy(retriever.invoke("relu"))

    retriever.invoke("relu", {"callbacks": [Meddling()]})

    assert retriever.invoke("relu") == before


def test_each_query_of_a_batch_is_a_root_run(retriever: CAUSRetriever) -> None:
    tracer = Tracer()

    found = retriever.batch(["relu", "pool"], {"callbacks": [tracer]})

    assert [run.inputs for run in tracer.roots] == [{"query": "relu"}, {"query": "pool"}]
    assert [found_by(run) for run in tracer.roots] == found
    for run in tracer.roots:
        assert [child.name for child in run.child_runs] == ["dense", "sparse", "gate"]


async def test_each_query_of_an_awaited_batch_has_its_child_runs(
    retriever: CAUSRetriever,
) -> None:
    tracer = Tracer()

    await retriever.abatch(["relu", "pool"], {"callbacks": [tracer]})

    for run in tracer.roots:
        assert {child.name for child in run.child_runs} == {"dense", "sparse", "gate"}


class Queueing(AsyncCallbackHandler):
    """Writes through a lock that belongs to the caller's event loop, as a connection would."""

    raise_error = True

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.lock = asyncio.Lock()
        self.events: list[tuple[str, str | None]] = []

    async def write(self, event: str, name: str | None = None) -> None:
        assert asyncio.get_running_loop() is self.loop
        async with self.lock:
            await asyncio.sleep(0.001)  # long enough that others have to wait for the lock
            self.events.append((event, name))

    async def on_retriever_start(self, *args: Any, name: str | None = None, **kwargs: Any) -> None:
        await self.write("start", name)

    async def on_retriever_end(self, *args: Any, **kwargs: Any) -> None:
        await self.write("end")

    async def on_retriever_error(self, *args: Any, **kwargs: Any) -> None:
        await self.write("error")

    async def on_chain_start(self, *args: Any, name: str | None = None, **kwargs: Any) -> None:
        await self.write("start", name)

    async def on_chain_end(self, *args: Any, **kwargs: Any) -> None:
        await self.write("end")


@pytest.mark.parametrize("batch", [False, True])
async def test_async_handlers_run_in_the_callers_loop(
    traced_retriever: CAUSRetriever, batch: bool
) -> None:
    handler, queries = Queueing(), ["relu", "pool", "gru"]
    config: Any = {"callbacks": [handler]}

    if batch:
        await traced_retriever.abatch(queries, config)
    else:
        await asyncio.gather(*(traced_retriever.ainvoke(query, config) for query in queries))

    started = sorted(str(name) for event, name in handler.events if event == "start")
    assert started == sorted(3 * ["CAUSRetriever", "dense", "sparse", "gate"])
    assert [event for event, _ in handler.events].count("end") == len(started)


async def test_errors_are_heard_in_the_callers_loop(traced_retriever: CAUSRetriever) -> None:
    handler = Queueing()

    with pytest.raises(ValueError, match="got 0"):
        await traced_retriever.ainvoke("relu", {"callbacks": [handler]}, k=0)

    assert [event for event, _ in handler.events] == 3 * ["start"] + 3 * ["error"]
