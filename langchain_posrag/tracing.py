"""Child runs of a retriever's run, for those who trace; nobody else pays for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document

from langchain_posrag.documents import document_of
from langchain_posrag.legs import CallOptions
from shared_core import CAUS, Arrangement, Ranking
from shared_core.expanded import ExpandedArrangement

Search = Callable[[CAUS, str, CallOptions], Arrangement]
AsyncSearch = Callable[[CAUS, str, CallOptions], Awaitable[Arrangement]]

_LEGS = ("dense", "sparse")


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
    """Search within the child runs ``dense``, ``sparse`` and ``gate``, if anyone listens.

    The legs run inside the core, side by side; so the runs of both span the search and the
    embedding of the query. Each ends with the documents of the result in that leg's own order.
    """
    if not run_manager.inheritable_handlers:
        return search(caus, query, options)
    runs = [run_manager.get_child(leg).on_retriever_start(None, query, name=leg) for leg in _LEGS]
    try:
        found = search(caus, query, options)
        by_leg = _found(found)
    except BaseException as error:
        for run in runs:
            run.on_retriever_error(error)
        raise
    for run, documents in zip(runs, by_leg, strict=True):
        run.on_retriever_end(documents)
    inputs, outputs = _gate(found)
    run_manager.get_child("gate").on_chain_start(None, inputs, name="gate").on_chain_end(outputs)
    return found


async def atraced(
    search: AsyncSearch,
    run_manager: AsyncCallbackManagerForRetrieverRun,
    caus: CAUS,
    query: str,
    options: CallOptions,
) -> Arrangement:
    """Do what `traced` does; the handlers are awaited where the caller awaits."""
    if not run_manager.inheritable_handlers:
        return await search(caus, query, options)
    runs = [
        await run_manager.get_child(leg).on_retriever_start(None, query, name=leg) for leg in _LEGS
    ]
    try:
        found = await search(caus, query, options)
        by_leg = _found(found)
    except BaseException as error:
        for run in runs:
            await run.on_retriever_error(error)
        raise
    for run, documents in zip(runs, by_leg, strict=True):
        await run.on_retriever_end(documents)
    inputs, outputs = _gate(found)
    gate = await run_manager.get_child("gate").on_chain_start(None, inputs, name="gate")
    await gate.on_chain_end(outputs)
    return found


def _found(arrangement: Arrangement) -> tuple[list[Document], list[Document]]:
    """Return the documents of a result as each leg alone has them, in that leg's own order."""
    ranking = arrangement.ranking
    if isinstance(arrangement, ExpandedArrangement):
        ranking = arrangement.seeds
    return (
        _by_leg(ranking, ranking.dense, ranking.dense_rank),
        _by_leg(ranking, ranking.sparse, ranking.sparse_rank),
    )


def _gate(arrangement: Arrangement) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the gate was given, and what came of it."""
    gate = arrangement.gate
    return {"psi": gate.psi}, {
        "opened": gate.opened,
        "reason": gate.reason,
        "placement": arrangement.placement,
        "slots": list(arrangement.slots),
    }


def _by_leg(ranking: Ranking, scores: Sequence[float], ranks: Sequence[int]) -> list[Document]:
    documents = []
    for i in sorted(range(len(ranking)), key=ranks.__getitem__):
        document = document_of(ranking.passages[i])
        document.metadata["score"] = scores[i]
        documents.append(document)
    return documents
