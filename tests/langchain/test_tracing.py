"""What a tracer sees of a search: one run of the retriever, whoever asks."""

import asyncio
import copy
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run

from langchain_posrag import CAUSRetriever


class Tracer(BaseTracer):
    """Keeps the finished root runs."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)


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


@pytest.mark.parametrize("awaited", [False, True])
def test_a_search_is_one_run_that_tells_what_was_found(
    retriever: CAUSRetriever, awaited: bool
) -> None:
    tracer = Tracer()
    config: Any = {"callbacks": [tracer], "tags": ["mine"], "run_name": "search"}
    if awaited:
        asyncio.run(retriever.ainvoke("relu", config))
    else:
        retriever.invoke("relu", config)
    (run,) = tracer.roots
    assert (run.name, run.run_type, run.tags) == ("search", "retriever", ["mine"])
    assert (run.outputs, run.child_runs) == ({"documents": retriever.invoke("relu")}, [])


def test_a_handler_cannot_change_the_index(retriever: CAUSRetriever) -> None:
    class Meddling(BaseCallbackHandler):
        def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
            for document in documents:
                document.metadata["tags"]["kind"].append("changed")

    before = copy.deepcopy(retriever.invoke("relu"))
    retriever.invoke("relu", {"callbacks": [Meddling()]})
    assert retriever.invoke("relu") == before


def test_tracing_parameters_name_the_parts(retriever: CAUSRetriever) -> None:
    assert retriever._get_ls_params() == {
        "ls_retriever_name": "caus",
        "ls_embedding_provider": "DeterministicFakeEmbedding",
    }
