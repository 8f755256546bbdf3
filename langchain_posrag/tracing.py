"""What a tracer sees of a retriever's run; without one it costs nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document

from langchain_posrag.documents import document_of
from langchain_posrag.finishing import finish
from langchain_posrag.legs import CallOptions
from shared_core import CAUS, Arrangement, Ranking
from shared_core.neighbour_spans.expanded import ExpandedArrangement

Search = Callable[[CAUS, str, CallOptions], Arrangement]
AsyncSearch = Callable[[CAUS, str, CallOptions], Awaitable[Arrangement]]

_LEGS = ("dense", "sparse")


def traced(
    search: Search,
    run_manager: CallbackManagerForRetrieverRun,
    caus: CAUS,
    query: str,
    options: CallOptions,
) -> Arrangement:
    """Search, and report the child runs ``dense``, ``sparse`` and ``gate`` to any tracers.

    The legs run side by side inside the core, so both runs span the search and the embedding of
    the query. Each ends with the documents of the result in the order of its leg.
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
    """Async version of `traced`; the handlers are awaited, too.

    A task that is cancelled meanwhile leaves no run of a leg or of the gate open.
    """
    if not run_manager.inheritable_handlers:
        return await search(caus, query, options)
    runs: list[AsyncCallbackManagerForRetrieverRun] = []
    try:
        for leg in _LEGS:
            child = run_manager.get_child(leg)
            runs.append(await child.on_retriever_start(None, query, name=leg))
        found = await search(caus, query, options)
        by_leg = _found(found)
    except BaseException as error:
        await finish(_end_in_error(runs, error))
        raise
    await finish(_end(runs, by_leg, run_manager, found))
    return found


async def _end(
    runs: Sequence[AsyncCallbackManagerForRetrieverRun],
    by_leg: Sequence[list[Document]],
    run_manager: AsyncCallbackManagerForRetrieverRun,
    found: Arrangement,
) -> None:
    for run, documents in zip(runs, by_leg, strict=True):
        await run.on_retriever_end(documents)
    inputs, outputs = _gate(found)
    gate = await run_manager.get_child("gate").on_chain_start(None, inputs, name="gate")
    await gate.on_chain_end(outputs)


async def _end_in_error(
    runs: Sequence[AsyncCallbackManagerForRetrieverRun], error: BaseException
) -> None:
    for run in runs:
        await run.on_retriever_error(error)


def _found(arrangement: Arrangement) -> tuple[list[Document], list[Document]]:
    """Return the documents of a result with the scores of each leg, in the order of the leg."""
    ranking = arrangement.ranking
    if isinstance(arrangement, ExpandedArrangement):
        ranking = arrangement.seeds
    return (
        _by_leg(ranking, ranking.dense, ranking.dense_rank),
        _by_leg(ranking, ranking.sparse, ranking.sparse_rank),
    )


def _gate(arrangement: Arrangement) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the inputs and outputs of the gate's run."""
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
