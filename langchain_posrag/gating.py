"""The Context Awareness Gate: a Runnable that writes the prompt, and a retriever behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForChainRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.prompt_values import StringPromptValue
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import ensure_config, var_child_runnable_config
from pydantic import ConfigDict, InstanceOf
from typing_extensions import override

from langchain_posrag.retrieval_gate import Gated, RetrievalGate
from shared_core.gating import GatedPrompts, unwrapped


class GatedPrompt(StringPromptValue):
    """A prompt that any model or chain of LangChain takes, with the decision behind it.

    Attributes
    ----------
    text
        The prompt.
    question
        The question in it.
    documents
        The retrieved documents; empty if the question goes to the model without context.
    decision
        `shared_core.gating.RetrievalDecision.explain`: ``retrieve``, ``reason``, ``similarity``
        and the rest.
    """

    question: str
    documents: list[Document]
    decision: dict[str, Any]

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """Return the namespace under which a serialised prompt finds the class."""
        return ["langchain_posrag", "gating"]


class ContextAwarenessGate(RetrievalGate, RunnableSerializable[str, GatedPrompt]):
    """Ask with retrieved context, or without if the question lies outside the corpus (CAG).

    Takes a question and returns the prompt to send: ``gate | llm`` answers both kinds. The prompt
    carries the documents and the decision. The child run ``retrieve_or_not`` ends with the
    decision, too, and contains the run of the retriever. A text that LlamaIndex's RetrieverTool
    has wrapped is unwrapped.

    Attributes
    ----------
    retriever, gate, embeddings, include_scores
        As in `RetrievalGate`. `from_retriever` fits the gate, `load` reads one.
    prompts
        The two prompts: with context, and without (chain of thought by default). They are not part
        of what is saved.

    Raises
    ------
    ValueError
        If an option is unknown. When called: if the question is blank or not a string, or a
        similarity is not a finite number.

    Examples
    --------
    ``gate = ContextAwarenessGate.from_retriever(CAUSRetriever.from_documents(docs, embeddings))``

    ``chain = gate | {"answer": llm | StrOutputParser(), "prompt": RunnablePassthrough()}``, of
    which ``["prompt"].decision`` says why.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    prompts: InstanceOf[GatedPrompts] = GatedPrompts()

    @override
    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GatedPrompt:
        """Decide about one question; keyword arguments go to the retriever."""

        def route(question: str, run_manager: CallbackManagerForChainRun) -> GatedPrompt:
            return self._prompt(question, self._find(question, run_manager.get_child(), kwargs))

        return self._call_with_config(route, input, config)

    @override
    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GatedPrompt:
        """Async version of `invoke`; the retriever and the embeddings are awaited."""

        async def route(question: str, run_manager: AsyncCallbackManagerForChainRun) -> GatedPrompt:
            found = await self._afind(question, run_manager.get_child(), kwargs)
            return self._prompt(question, found)

        return await self._acall_with_config(route, input, config)

    def _prompt(self, question: str, found: Gated) -> GatedPrompt:
        asked = unwrapped(question)
        return GatedPrompt(
            text=self.prompts.render(asked, [each.page_content for each in found.documents]),
            question=asked,
            documents=found.documents,
            decision=found.decision.explain(),
        )


class GatedRetriever(RetrievalGate, BaseRetriever):
    """Retrieve, unless the question lies outside the corpus: then return no documents (CAG).

    The decision is in ``metadata["posrag"]["retrieval"]`` of every document, and is what the
    child run ``retrieve_or_not`` ends with, even if there is no document to carry it. A chain
    has to expect an empty list; `ContextAwarenessGate` writes the prompt for both cases.

    Every call may set the options that the retriever behind it takes, such as `k` and `filter` of
    a `CAUSRetriever`, and what is ``configurable`` in it.

    Attributes
    ----------
    retriever, gate, embeddings, include_scores
        As in `RetrievalGate`. `from_retriever` fits the gate, `load` reads one.

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
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return self._find(query, run_manager.get_child(), options).documents

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return (await self._afind(query, run_manager.get_child(), options)).documents


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
