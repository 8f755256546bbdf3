"""A retriever that returns nothing where nothing it has would help."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict
from typing_extensions import override

from langchain_posrag.gate_options import GateOptions
from shared_core.index.metadata import Where


class GatedRetriever(GateOptions, BaseRetriever):
    """Retrieve, unless the question lies outside the corpus: then return no documents (CAG).

    The decision is in ``metadata["posrag"]["retrieval"]`` of every document, and is what the
    child run ``retrieve_or_not`` ends with, also where there is no document to carry it. A chain
    has to expect an empty list; `ContextAwarenessGate` writes the prompt for both cases.

    Every call may set what the retriever behind it knows of `k` and `filter`, and what is
    ``configurable`` in it.

    Attributes
    ----------
    retriever, gate, embeddings, include_scores
        As in `GateOptions`. `from_retriever` fits the gate, `load` reads one.

    Raises
    ------
    ValueError
        While retrieving, if the query is blank, or a similarity is not a finite number.

    Examples
    --------
    ``GatedRetriever.from_retriever(CAUSRetriever.from_documents(documents, embeddings))``
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    @override
    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Do what any retriever does; the one behind the gate is given the config as well."""
        # LangChain keeps it from what is called below, and with it what is configurable.
        return super().invoke(input, config, called_with=config, **kwargs)

    @override
    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Do what `invoke` does, with the retriever and the embeddings awaited."""
        return await super().ainvoke(input, config, called_with=config, **kwargs)

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Where = None,
        called_with: RunnableConfig | None = None,
    ) -> list[Document]:
        options = _given(k, filter)
        return self._find(query, run_manager.get_child(), options, called_with).documents

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Where = None,
        called_with: RunnableConfig | None = None,
    ) -> list[Document]:
        options = _given(k, filter)
        found = await self._afind(query, run_manager.get_child(), options, called_with)
        return found.documents


def _given(k: int | None, filter: Where) -> dict[str, Any]:
    """Return what the call set; a retriever need not know of what it did not."""
    options: dict[str, Any] = {"k": k, "filter": filter}
    return {name: value for name, value in options.items() if value is not None}
