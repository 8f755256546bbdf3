"""What a tracer sees of a search: one run of the retriever, whoever asks."""

import asyncio
from typing import Any

import pytest
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
