"""The Context Awareness Gate as a Runnable: question in, prompt out, with context or without."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self, Unpack

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.prompt_values import StringPromptValue
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import ConfigDict, InstanceOf
from typing_extensions import override

from langchain_posrag.gate_documents import Gated
from langchain_posrag.gate_fitting import fit_for, load_for
from langchain_posrag.gate_options import GateOptions
from shared_core.gating import ContextGate, GatedPrompts, Transform, unwrapped
from shared_core.gating.fitting import FitArguments
from shared_core.types import Tokenizer


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


class ContextAwarenessGate(GateOptions, RunnableSerializable[str, GatedPrompt]):
    """Ask with retrieved context, or without if the question lies outside the corpus (CAG).

    Takes a question and returns the prompt to send: ``gate | llm`` answers both kinds. The prompt
    carries the documents and the decision. The child run ``retrieve_or_not`` ends with the
    decision, too, and contains the run of the retriever. A text that LlamaIndex's RetrieverTool
    has wrapped is unwrapped.

    Attributes
    ----------
    retriever, gate, embeddings, include_scores
        As in `GateOptions`. `from_retriever` fits the gate, `load` reads one.
    prompts
        The two prompts: with context, and without (chain of thought by default).

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
    @classmethod
    def from_retriever(
        cls,
        retriever: RetrieverLike,
        embeddings: Embeddings | None = None,
        contexts: Iterable[Document] | None = None,
        *,
        prompts: GatedPrompts | None = None,
        include_scores: bool = True,
        **fit: Unpack[FitArguments],
    ) -> Self:
        """Like `GateOptions.from_retriever`, with custom prompts if given."""
        gate_and_model = fit_for(retriever, embeddings, contexts, **fit)
        return cls._in_front_of(retriever, gate_and_model, prompts, include_scores)

    @override
    @classmethod
    def load(
        cls,
        path: str | Path,
        retriever: RetrieverLike,
        embeddings: Embeddings | None = None,
        *,
        transform: Transform | None = None,
        tokenizer: Tokenizer | None = None,
        prompts: GatedPrompts | None = None,
        include_scores: bool = True,
    ) -> Self:
        """Like `GateOptions.load`, with custom prompts if given: they are not saved."""
        gate_and_model = load_for(path, retriever, embeddings, transform, tokenizer)
        return cls._in_front_of(retriever, gate_and_model, prompts, include_scores)

    @classmethod
    def _in_front_of(
        cls,
        retriever: RetrieverLike,
        gate_and_model: tuple[ContextGate, Embeddings],
        prompts: GatedPrompts | None,
        include_scores: bool,
    ) -> Self:
        gate, model = gate_and_model
        return cls(
            retriever=retriever,
            gate=gate,
            embeddings=model,
            prompts=GatedPrompts() if prompts is None else prompts,
            include_scores=include_scores,
        )

    @override
    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GatedPrompt:
        """Decide about one question; keyword arguments go to the retriever."""

        def route(question: str, run_manager: CallbackManagerForChainRun) -> GatedPrompt:
            found = self._find(question, run_manager.get_child(), kwargs)
            return self._prompt(question, found)

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
        passages = [document.page_content for document in found.documents]
        asked = unwrapped(question)
        return GatedPrompt(
            text=self.prompts.render(asked, passages),
            question=asked,
            documents=found.documents,
            decision=found.decision.explain(),
        )
