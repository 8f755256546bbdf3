"""Child runs of a retriever's run, for those who trace; nobody else pays for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor

from langchain_posrag.documents import document_of
from langchain_posrag.legs import CallOptions
from shared_core import CAUS, Arrangement, Ranking
from shared_core.expanded import ExpandedArrangement

Search = Callable[[CAUS, str, CallOptions], Arrangement]
AsyncSearch = Callable[[CAUS, str, CallOptions], Awaitable[Arrangement]]


def known(found: Arrangement | Exception) -> Search:
    """Return a search that finds, or raises, what a search for many queries has before."""

    def search(caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        if isinstance(found, Exception):
            raise found
        return found

    return search


def aknown(found: Arrangement | Exception) -> AsyncSearch:
    """Do what `known` does, to be awaited."""

    async def search(caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        return known(found)(caus, query, options)

    return search


def traced(
    search: Search,
    run_manager: CallbackManagerForRetrieverRun,
    caus: CAUS,
    query: str,
    options: CallOptions,
) -> Arrangement:
    """Search within the child runs ``dense``, ``sparse`` and ``gate``, if anyone listens."""
    if not run_manager.inheritable_handlers:
        return search(caus, query, options)
    runs = _LegRuns(run_manager, query)
    try:
        found = search(caus, query, options)
    except Exception as error:
        runs.fail(error)
        raise
    runs.end(found)
    return found


async def atraced(
    search: AsyncSearch,
    run_manager: AsyncCallbackManagerForRetrieverRun,
    caus: CAUS,
    query: str,
    options: CallOptions,
) -> Arrangement:
    """Do what `traced` does; the handlers run in a thread, as LangChain has it."""
    if not run_manager.inheritable_handlers:
        return await search(caus, query, options)
    runs = await run_in_executor(None, _LegRuns, run_manager.get_sync(), query)
    try:
        found = await search(caus, query, options)
    except Exception as error:
        await run_in_executor(None, runs.fail, error)
        raise
    await run_in_executor(None, runs.end, found)
    return found


class _LegRuns:
    """The child runs of one search.

    The legs run inside the core, side by side; so the runs of both span the search and the
    embedding of the query. Each ends with the documents of the result in that leg's own order.
    """

    def __init__(self, run_manager: CallbackManagerForRetrieverRun, query: str) -> None:
        self._parent = run_manager
        self._legs = {
            leg: run_manager.get_child(leg).on_retriever_start(None, query, name=leg)
            for leg in ("dense", "sparse")
        }

    def fail(self, error: Exception) -> None:
        for leg in self._legs.values():
            leg.on_retriever_error(error)

    def end(self, found: Arrangement) -> None:
        ranking = found.seeds if isinstance(found, ExpandedArrangement) else found.ranking
        gate = found.gate
        dense = _by_leg(ranking, ranking.dense, ranking.dense_rank)
        sparse = _by_leg(ranking, ranking.sparse, ranking.sparse_rank)
        self._legs["dense"].on_retriever_end(dense)
        self._legs["sparse"].on_retriever_end(sparse)
        run = self._parent.get_child("gate").on_chain_start(None, {"psi": gate.psi}, name="gate")
        run.on_chain_end(
            {
                "opened": gate.opened,
                "reason": gate.reason,
                "placement": found.placement,
                "slots": list(found.slots),
            }
        )


def _by_leg(ranking: Ranking, scores: Sequence[float], ranks: Sequence[int]) -> list[Document]:
    documents = []
    for i in sorted(range(len(ranking)), key=ranks.__getitem__):
        document = document_of(ranking.passages[i])
        document.metadata["score"] = scores[i]
        documents.append(document)
    return documents
