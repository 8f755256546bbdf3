"""A retriever behind the retrieval gate: options, fit and decision of both Runnables with one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypedDict, Unpack

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import RunnableBinding, run_in_executor
from langchain_core.runnables.config import patch_config
from langchain_core.runnables.utils import ConfigurableFieldSpec
from pydantic import Field, InstanceOf

from langchain_posrag.documents import (
    DETAIL,
    check_documents,
    check_query,
    copy_of,
    detail_of,
    id_of,
)
from langchain_posrag.options import CheckedOptions
from langchain_posrag.retrievers import CAUSRetriever
from shared_core.gating import ContextGate, GatedPrompts, RetrievalDecision, Transform
from shared_core.gating.fit import FitArguments, fit_behind
from shared_core.gating.gate import Embedder, Found
from shared_core.types import Tokenizer

RUN = "retrieve_or_not"
"""Name of the run that reports a decision."""


class Gated(NamedTuple):
    """A decision, and the documents that the gate let through."""

    decision: RetrievalDecision
    documents: list[Document]


class GateArguments(TypedDict, total=False):
    """Keyword arguments of a host besides its retriever, its gate and the embeddings."""

    include_scores: bool
    prompts: GatedPrompts


class FitGateArguments(GateArguments, FitArguments, total=False):
    """Keyword arguments of `RetrievalGate.from_retriever` besides what it searches."""


class RetrievalGate(CheckedOptions):
    """A retriever, and the gate that decides by the documents it finds.

    Attributes
    ----------
    retriever
        Any retriever, also with settings bound to it, in a pipe, or with fallbacks. A
        `CAUSRetriever` over its own index returns the cosine of the question and its nearest
        passage with the documents. Those of others, of one without ``include_scores``, or of one
        that rewrites the question, are embedded for it, and the nearest passage has to be among
        them.
    gate
        The fitted gate; its `save` writes the file that `load` reads.
    embeddings
        The model that the gate was fitted with; needed for a retriever that returns no cosines,
        unless it is a `CAUSRetriever`.
    include_scores
        Whether the documents carry the decision and their earlier explanation in their metadata.
        It differs by query: set this to False under LangChain's MultiQueryRetriever, which keeps
        equal documents once.
    """

    retriever: RetrieverLike
    gate: InstanceOf[ContextGate]
    embeddings: Embeddings | None = Field(default=None, repr=False)
    include_scores: bool = True

    @classmethod
    def from_retriever(
        cls,
        retriever: RetrieverLike,
        embeddings: Embeddings | None = None,
        contexts: Iterable[Document] | None = None,
        **options: Unpack[FitGateArguments],
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
        **options
            ``pseudo_queries``, ``negatives``, ``policy``, ``threshold``, ``transform``,
            ``coverage`` and ``tokenizer`` (by default that of a `CAUSRetriever`), see
            `shared_core.gating.fit.fit_gate`; and attributes of the class.

        Raises
        ------
        ValueError
            If `embeddings` or `contexts` are missing, `contexts` is one instead of several, one is
            not a Document, or the gate cannot be fitted on them.
        EmbeddingMismatchError
            If `embeddings` is not the model of the index.
        """
        given: dict[str, Any] = {**options}
        fit: Any = {name: given.pop(name) for name in FitArguments.__annotations__ if name in given}
        model, own = model_of(retriever, embeddings), _own(retriever)
        passages = None
        if contexts is not None:
            contexts = check_documents(contexts, "contexts")
            texts = [each.page_content for each in contexts]
            passages = [*map(id_of, contexts)], texts, model.embed_documents(texts)
        gate = fit_behind(
            None if own is None else own.index,
            passages,
            embedder_of(model),
            verify=embeddings is not None,
            missing=f"{type(retriever).__name__} does not expose its documents: give contexts=",
            **fit,
        )
        return cls(retriever=retriever, gate=gate, embeddings=model, **given)

    @classmethod
    def load(
        cls,
        path: str | Path,
        retriever: RetrieverLike,
        embeddings: Embeddings | None = None,
        *,
        transform: Transform | None = None,
        tokenizer: Tokenizer | None = None,
        **options: Unpack[GateArguments],
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
        **options
            Attributes of the class.

        Raises
        ------
        IndexFormatError, CorruptIndexError
            If the file is not a gate, or damaged.
        EmbeddingMismatchError
            If `embeddings` is not the model of the fit.
        ValueError
            As `ContextGate.load`, and if there are no embeddings.
        """
        model = model_of(retriever, embeddings)
        embed = embedder_of(model).queries
        gate = ContextGate.load(path, embed=embed, transform=transform, tokenizer=tokenizer)
        given: dict[str, Any] = {**options}
        return cls(retriever=retriever, gate=gate, embeddings=model, **given)

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """Fields that a call may configure: those of the retriever."""
        return self.retriever.config_specs

    def _find(self, query: str, callbacks: CallbackManager, options: Mapping[str, Any]) -> Gated:
        """Retrieve with the config of the run around it, and decide."""
        run = callbacks.on_chain_start(None, {"query": query}, name=RUN)
        try:
            searched = self.gate.prepare(check_query(query))
            below = patch_config(None, callbacks=run.get_child())
            documents = check_documents(self.retriever.invoke(searched, below, **options))
            decision = self.gate.decide_found(_found(query, searched, documents), self._embedder)
        except BaseException as error:
            run.on_chain_error(error)
            raise
        run.on_chain_end(decision.explain())
        return self._let_through(decision, documents)

    async def _afind(
        self, query: str, callbacks: AsyncCallbackManager, options: Mapping[str, Any]
    ) -> Gated:
        """Async version of `_find`; the retriever, the embeddings and the handlers are awaited.

        A task that is cancelled meanwhile leaves no run open, as LangChain shields their ends.
        """
        run = await callbacks.on_chain_start(None, {"query": query}, name=RUN)
        try:
            searched = await run_in_executor(None, self.gate.prepare, check_query(query))
            below = patch_config(None, callbacks=run.get_child())
            documents = check_documents(await self.retriever.ainvoke(searched, below, **options))
            found = _found(query, searched, documents)
            decision = await self.gate.adecide_found(found, self._embedder)
        except BaseException as error:
            await run.on_chain_error(error)
            raise
        await run.on_chain_end(decision.explain())
        return self._let_through(decision, documents)

    def _embedder(self) -> Embedder:
        return embedder_of(model_of(self.retriever, self.embeddings))

    def _let_through(self, decision: RetrievalDecision, documents: Sequence[Document]) -> Gated:
        """Return copies of the documents if the decision is to retrieve, or none.

        They carry the decision next to their earlier explanation; without `include_scores` no
        explanation at all, and no score that came with one.
        """
        if not decision.retrieve:
            return Gated(decision, [])
        through = [copy_of(each, told=self.include_scores) for each in documents]
        if self.include_scores:
            for each in through:
                told = {**detail_of(each), "retrieval": decision.explain()}
                each.metadata[DETAIL] = told
        return Gated(decision, through)


def model_of(retriever: RetrieverLike, embeddings: Embeddings | None) -> Embeddings:
    """Return the embeddings, by default those of a `CAUSRetriever`; ValueError without any."""
    own = _own(retriever)
    found = own.embeddings if embeddings is None and own is not None else embeddings
    if found is None:
        raise ValueError(
            f"{type(retriever).__name__} has no embeddings: give embeddings=, the model of its "
            "passages that the gate is fitted with"
        )
    return found


def _own(retriever: RetrieverLike) -> CAUSRetriever | None:
    """Return the `CAUSRetriever` below any bound settings; None if it is another retriever."""
    inner: object = retriever
    while isinstance(inner, RunnableBinding):
        inner = inner.bound
    return inner if isinstance(inner, CAUSRetriever) else None


def embedder_of(model: Embeddings) -> Embedder:
    """Return the functions of a model."""
    return Embedder(
        query=model.embed_query,
        texts=model.embed_documents,
        aquery=model.aembed_query,
        atexts=model.aembed_documents,
    )


def _found(query: str, searched: str, documents: Sequence[Document]) -> Found:
    return Found(
        query=query,
        searched=searched,
        embedded=searched,
        details=[detail_of(each) for each in documents],
        texts=[each.page_content for each in documents],
    )
