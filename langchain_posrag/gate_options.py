"""A retriever behind the gate: how both of its hosts find, decide and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, Unpack

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import run_in_executor
from pydantic import BaseModel, ConfigDict, Field, InstanceOf, model_validator

from langchain_posrag.documents import DETAIL, copy_metadata, id_of, new_document
from langchain_posrag.retrievers import CAUSRetriever
from shared_core import HybridIndex
from shared_core.gating import ContextGate, RetrievalDecision, Transform, VectorCandidates, identity
from shared_core.gating.candidates import Embed
from shared_core.gating.evidence import Found, cosines, told
from shared_core.gating.fitting import FitArguments, as_queries, fit_gate

RUN = "retrieve_or_not"
"""Name of the run that reports a decision."""


class Gated(NamedTuple):
    """What the gate let through."""

    decision: RetrievalDecision
    documents: list[Document]


class GateOptions(BaseModel):
    """A retriever, and the gate that decides by what it finds.

    Attributes
    ----------
    retriever
        Any retriever. A `CAUSRetriever` over its own index tells the cosine of the nearest
        passage with what it finds. What others find is embedded for it, and the nearest passage
        has to be among it.
    gate
        The fitted gate.
    embeddings
        The model that the gate was fitted with; needed for a retriever that tells no cosines.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    retriever: BaseRetriever
    gate: InstanceOf[ContextGate]
    embeddings: Embeddings | None = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _check_scores(self) -> Self:
        if isinstance(self.retriever, CAUSRetriever) and not self.retriever.include_scores:
            raise ValueError("the gate reads the scores of CAUSRetriever: set include_scores=True")
        return self

    @classmethod
    def from_retriever(
        cls,
        retriever: BaseRetriever,
        embeddings: Embeddings | None = None,
        contexts: Sequence[Document] | None = None,
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
        **fit
            ``pseudo_queries``, ``negatives``, ``policy``, ``threshold``, ``transform`` and
            ``words``, see `shared_core.gating.fitting.fit_gate`.

        Raises
        ------
        ValueError
            If `embeddings` or `contexts` are missing, or the gate cannot be fitted on them.
        EmbeddingMismatchError
            If `embeddings` is not the model of the index.
        """
        given = embeddings is not None
        embeddings = _model_of(retriever, embeddings)
        if contexts is not None:
            ids = [id_of(each) for each in contexts]
            texts = [each.page_content for each in contexts]
            vectors: Any = embeddings.embed_documents(texts)
        elif isinstance(retriever, CAUSRetriever) and isinstance(retriever.index, HybridIndex):
            if given:
                model = embeddings
                retriever.index.verify_embeddings(lambda text: model.embed_documents([text])[0])
            passages, vectors = retriever.index.embedded()
            ids, texts = [each.id for each in passages], [each.text for each in passages]
        else:
            raise ValueError(
                f"{type(retriever).__name__} does not tell its documents: give contexts="
            )
        gate = fit_gate(ids, texts, vectors, _embed(embeddings), **fit)
        return cls(retriever=retriever, gate=gate, embeddings=embeddings)

    @classmethod
    def load(
        cls,
        path: str | Path,
        retriever: BaseRetriever,
        embeddings: Embeddings | None = None,
        *,
        transform: Transform = identity,
    ) -> Self:
        """Read the fit that ``gate.candidates.save`` wrote, and put it in front of a retriever.

        Parameters
        ----------
        path
            The file.
        retriever, embeddings
            As in `from_retriever`.
        transform
            As in `ContextGate`; it is not saved.

        Raises
        ------
        IndexFormatError, CorruptIndexError
            If the file is not a fit, or damaged.
        EmbeddingMismatchError
            If `embeddings` is not the model of the fit.
        ValueError
            If there are no embeddings, or the fit holds no question to try them with.
        """
        embeddings = _model_of(retriever, embeddings)
        candidates = VectorCandidates.load(path, embed=_embed(embeddings))
        gate = ContextGate(candidates=candidates, transform=transform)
        return cls(retriever=retriever, gate=gate, embeddings=embeddings)

    def _find(self, query: str, callbacks: CallbackManager, options: Mapping[str, Any]) -> Gated:
        run = callbacks.on_chain_start(None, {"query": query}, name=RUN)
        try:
            prepared = self.gate.prepare(query)
            documents = self.retriever.invoke(prepared, {"callbacks": run.get_child()}, **options)
            found = _told(documents)
            if found is None:
                embeddings = self._embeddings
                texts = [document.page_content for document in documents]
                vectors = embeddings.embed_documents(texts)
                found = cosines(embeddings.embed_query(prepared), vectors, len(texts)), texts
            decision = self.gate.decide(query, *found)
        except BaseException as error:
            run.on_chain_error(error)
            raise
        run.on_chain_end(decision.explain())
        return _gated(decision, documents)

    async def _afind(
        self, query: str, callbacks: AsyncCallbackManager, options: Mapping[str, Any]
    ) -> Gated:
        run = await callbacks.on_chain_start(None, {"query": query}, name=RUN)
        try:
            prepared = await run_in_executor(None, self.gate.prepare, query)
            child: Any = {"callbacks": run.get_child()}
            documents = await self.retriever.ainvoke(prepared, child, **options)
            found = _told(documents)
            if found is None:
                embeddings = self._embeddings
                texts = [document.page_content for document in documents]
                vectors = await embeddings.aembed_documents(texts)
                query_vector = await embeddings.aembed_query(prepared)
                found = cosines(query_vector, vectors, len(texts)), texts
            decision = self.gate.decide(query, *found)
        except BaseException as error:
            await run.on_chain_error(error)
            raise
        await run.on_chain_end(decision.explain())
        return _gated(decision, documents)

    @property
    def _embeddings(self) -> Embeddings:
        if self.embeddings is None:
            raise ValueError(
                f"{type(self.retriever).__name__} tells no cosines: give embeddings=, the model "
                "that the gate was fitted with"
            )
        return self.embeddings


def _model_of(retriever: BaseRetriever, embeddings: Embeddings | None) -> Embeddings:
    if embeddings is None and isinstance(retriever, CAUSRetriever):
        embeddings = retriever.embeddings
    if embeddings is None:
        raise ValueError(f"{type(retriever).__name__} brings no embeddings: give embeddings=")
    return embeddings


def _told(documents: Sequence[Document]) -> Found | None:
    details = [_detail(document) for document in documents]
    return told(details, [document.page_content for document in documents])


def _detail(document: Document) -> dict[str, Any]:
    """Return what earlier steps have said of a document; the key may be the user's own."""
    detail = document.metadata.get(DETAIL)
    return detail if isinstance(detail, dict) else {}


def _gated(decision: RetrievalDecision, documents: Sequence[Document]) -> Gated:
    if not decision.retrieve:
        return Gated(decision, [])
    explained = []
    for document in documents:
        # What is replaced anyway is left out, since it alone would make the copy a deep one.
        metadata = copy_metadata({**document.metadata, DETAIL: None})
        metadata[DETAIL] = {**_detail(document), "retrieval": decision.explain()}
        explained.append(new_document(document.id, document.page_content, metadata))
    return Gated(decision, explained)


def _embed(embeddings: Embeddings) -> Embed:
    return as_queries(embeddings.embed_query, embeddings.embed_documents)
