"""A retriever that returns no documents for a question outside its corpus."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, var_child_runnable_config
from pydantic import ConfigDict
from typing_extensions import override

from langchain_posrag.gate_options import GateOptions
from langchain_posrag.overridden import searched_by_override, set_options
from shared_core.index.metadata import Where


class GatedRetriever(GateOptions, BaseRetriever):
    """Retrieve, unless the question lies outside the corpus: then return no documents (CAG).

    The decision is in ``metadata["posrag"]["retrieval"]`` of every document, and is what the
    child run ``retrieve_or_not`` ends with, even if there is no document to carry it. A chain
    has to expect an empty list; `ContextAwarenessGate` writes the prompt for both cases.

    Every call may set `k` and `filter` if the retriever behind it takes them, and what is
    ``configurable`` in it.

    Attributes
    ----------
    retriever, gate, embeddings, include_scores
        As in `GateOptions`. `from_retriever` fits the gate, `load` reads one.

    Raises
    ------
    ValueError
        While retrieving, if the query is blank or not a string, or a similarity is not a finite
        number.

    Examples
    --------
    ``GatedRetriever.from_retriever(CAUSRetriever.from_documents(documents, embeddings))``
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    @override
    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the documents that the gate lets through; its retriever gets the config."""
        with _config_for_children(config):
            return super().invoke(input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Async version of `invoke`; the retriever and the embeddings are awaited."""
        with _config_for_children(config):
            return await super().ainvoke(input, config, **kwargs)

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Where = None,
    ) -> list[Document]:
        return self._find(query, run_manager.get_child(), set_options(k=k, filter=filter)).documents

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Where = None,
    ) -> list[Document]:
        by_override = await searched_by_override(self, query, run_manager, k=k, filter=filter)
        if by_override is not None:
            return by_override
        options = set_options(k=k, filter=filter)
        found = await self._afind(query, run_manager.get_child(), options)
        return found.documents


@contextmanager
def _config_for_children(config: RunnableConfig | None) -> Iterator[None]:
    """Let the runs below inherit a config, as LangChain does for chains but not for retrievers."""
    below = ensure_config(config)
    below.pop("run_name", None)  # it and the id are those of this run alone
    below.pop("run_id", None)
    token = var_child_runnable_config.set(below)
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)
