"""A retriever whose subclass overrides the synchronous search alone."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import run_in_executor

from shared_core.overriding import overrides_alone


async def searched_by_override(
    retriever: BaseRetriever,
    query: str,
    run_manager: AsyncCallbackManagerForRetrieverRun,
    **options: Any,
) -> list[Document] | None:
    """Return what a subclass's own ``_get_relevant_documents`` finds, run in a thread.

    It gets the options that are not None. None if there is no such method, or the class overrides
    the async version as well.
    """
    if not overrides_alone(type(retriever), "_get_relevant_documents", "_aget_relevant_documents"):
        return None
    search: Any = retriever._get_relevant_documents
    found: list[Document] = await run_in_executor(
        None, search, query, run_manager=run_manager.get_sync(), **set_options(**options)
    )
    return found


def set_options(**options: Any) -> dict[str, Any]:
    """Return the options that a call sets: those that are not None."""
    return {name: value for name, value in options.items() if value is not None}
