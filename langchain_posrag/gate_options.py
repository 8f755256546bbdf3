"""A retriever behind the gate: options, retrieval and decision of both classes that have one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self, Unpack

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import run_in_executor
from langchain_core.runnables.config import patch_config
from langchain_core.runnables.utils import ConfigurableFieldSpec
from pydantic import ConfigDict, Field, InstanceOf, model_validator

from langchain_posrag.checked_options import CheckedOptions
from langchain_posrag.documents import check_documents
from langchain_posrag.gate_documents import Gated, let_through, read_explanations
from langchain_posrag.gate_fitting import fit_for, load_for, own_retriever
from shared_core.gating import ContextGate, Transform
from shared_core.gating.fitting import FitArguments
from shared_core.gating.found_cosines import Embedded, afound_cosines, found_cosines
from shared_core.types import Tokenizer

RUN = "retrieve_or_not"
"""Name of the run that reports a decision."""


class GateOptions(CheckedOptions):
    """A retriever, and the gate that decides by the documents it finds.

    Attributes
    ----------
    retriever
        Any retriever, also with settings bound to it, in a pipe, or with fallbacks. A
        `CAUSRetriever` over its own index returns the cosine of the question and its nearest
        passage with the documents. Those of others, or of one that rewrites the question, are
        embedded for it, and the nearest passage has to be among them.
    gate
        The fitted gate; its `save` writes the file that `load` reads.
    embeddings
        The model that the gate was fitted with; needed for a retriever that returns no cosines.
    include_scores
        Whether the documents carry the decision and their earlier explanation in their metadata.
        It differs by query: set this to False under LangChain's MultiQueryRetriever, which keeps
        equal documents once. For a `CAUSRetriever` behind the gate it has to stay True: the gate
        reads its scores before it removes them.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    retriever: RetrieverLike
    gate: InstanceOf[ContextGate]
    embeddings: Embeddings | None = Field(default=None, repr=False)
    include_scores: bool = True

    @model_validator(mode="after")
    def _check_scores(self) -> Self:
        own = own_retriever(self.retriever)
        if own is not None and not own.include_scores:
            raise ValueError("the gate reads the scores of CAUSRetriever: set include_scores=True")
        return self

    @classmethod
    def from_retriever(
        cls,
        retriever: RetrieverLike,
        embeddings: Embeddings | None = None,
        contexts: Iterable[Document] | None = None,
        *,
        include_scores: bool = True,
        **fit: Unpack[FitArguments],
    ) -> Self:
        """Fit a gate on what a retriever searches, and put it in front.

        Parameters
        ----------
        retriever
            The retriever.
        embeddings
            The model behind it; by default that of a `CAUSRetriever`.
        contexts
            The documents it searches; by default those in the index of a `CAUSRetriever`, whose
            vectors are then taken as they are.
        include_scores
            As of the class.
        **fit
            ``pseudo_queries``, ``negatives``, ``policy``, ``threshold``, ``transform``,
            ``coverage`` and ``tokenizer``, see `shared_core.gating.fitting.fit_gate`.

        Raises
        ------
        ValueError
            If `embeddings` or `contexts` are missing, `contexts` is one instead of several, one is
            not a Document, or the gate cannot be fitted on them.
        EmbeddingMismatchError
            If `embeddings` is not the model of the index.
        """
        gate, model = fit_for(retriever, embeddings, contexts, **fit)
        return cls(retriever=retriever, gate=gate, embeddings=model, include_scores=include_scores)

    @classmethod
    def load(
        cls,
        path: str | Path,
        retriever: RetrieverLike,
        embeddings: Embeddings | None = None,
        *,
        transform: Transform | None = None,
        tokenizer: Tokenizer | None = None,
        include_scores: bool = True,
    ) -> Self:
        """Read what `ContextGate.save` wrote, and put it in front of a retriever.

        Parameters
        ----------
        path
            The file.
        retriever, embeddings
            As in `from_retriever`.
        transform, tokenizer
            As in `ContextGate.load`: needed if the gate that was saved had one of its own.
        include_scores
            As of the class.

        Raises
        ------
        IndexFormatError, CorruptIndexError
            If the file is not a gate, or damaged.
        EmbeddingMismatchError
            If `embeddings` is not the model of the fit.
        ValueError
            As `ContextGate.load`, and if there are no embeddings.
        """
        gate, model = load_for(path, retriever, embeddings, transform, tokenizer)
        return cls(retriever=retriever, gate=gate, embeddings=model, include_scores=include_scores)

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """Fields that a call may configure: those of the retriever."""
        return self.retriever.config_specs

    def _find(
        self,
        query: str,
        callbacks: CallbackManager,
        options: Mapping[str, Any],
    ) -> Gated:
        """Retrieve with the config of the run around it, and decide."""
        run = callbacks.on_chain_start(None, {"query": query}, name=RUN)
        try:
            prepared = self.gate.prepare(query)
            below = patch_config(None, callbacks=run.get_child())
            documents = check_documents(self.retriever.invoke(prepared, below, **options))
            details, texts = read_explanations(documents)
            embedded = partial(self._embedded, prepared, texts)
            found = found_cosines(prepared, details, texts, embedded)
            decision = self.gate.decide(query, *found)
        except BaseException as error:
            run.on_chain_error(error)
            raise
        run.on_chain_end(decision.explain())
        return let_through(decision, documents, include_scores=self.include_scores)

    async def _afind(
        self,
        query: str,
        callbacks: AsyncCallbackManager,
        options: Mapping[str, Any],
    ) -> Gated:
        """Async version of `_find`; the retriever and the embeddings are awaited."""
        run = await callbacks.on_chain_start(None, {"query": query}, name=RUN)
        try:
            prepared = await run_in_executor(None, self.gate.prepare, query)
            below = patch_config(None, callbacks=run.get_child())
            documents = check_documents(await self.retriever.ainvoke(prepared, below, **options))
            details, texts = read_explanations(documents)
            embedded = partial(self._aembedded, prepared, texts)
            found = await afound_cosines(prepared, details, texts, embedded)
            decision = self.gate.decide(query, *found)
        except BaseException as error:
            await run.on_chain_error(error)
            raise
        await run.on_chain_end(decision.explain())
        return let_through(decision, documents, include_scores=self.include_scores)

    def _embedded(self, query: str, texts: list[str]) -> Embedded:
        model = self._embeddings
        return model.embed_query(query), model.embed_documents(texts)

    async def _aembedded(self, query: str, texts: list[str]) -> Embedded:
        model = self._embeddings
        return await model.aembed_query(query), await model.aembed_documents(texts)

    @property
    def _embeddings(self) -> Embeddings:
        if self.embeddings is None:
            raise ValueError(
                f"{type(self.retriever).__name__} returns no cosines of the question: give "
                "embeddings=, the model that the gate was fitted with"
            )
        return self.embeddings
