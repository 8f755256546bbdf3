"""Fit a gate on the documents that a retriever of LangChain searches, or read one from a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Unpack

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import RunnableBinding

from langchain_posrag.documents import check_documents, id_of
from langchain_posrag.retrievers import CAUSRetriever
from shared_core import HybridIndex
from shared_core.arrays import Embed
from shared_core.gating import ContextGate, Transform
from shared_core.gating.fitting import FitArguments, as_queries, fit_gate, fit_index
from shared_core.types import Tokenizer


def own_retriever(retriever: RetrieverLike) -> CAUSRetriever | None:
    """Return the `CAUSRetriever` below any bound settings; None if it is another retriever."""
    inner: object = retriever
    while isinstance(inner, RunnableBinding):
        inner = inner.bound
    return inner if isinstance(inner, CAUSRetriever) else None


def model_of(retriever: RetrieverLike, embeddings: Embeddings | None) -> Embeddings:
    """Return the embeddings, by default those of a `CAUSRetriever`; ValueError without any."""
    if embeddings is None and (own := own_retriever(retriever)) is not None:
        embeddings = own.embeddings
    if embeddings is None:
        raise ValueError(f"{type(retriever).__name__} has no embeddings: give embeddings=")
    return embeddings


def fit_for(
    retriever: RetrieverLike,
    embeddings: Embeddings | None,
    contexts: Iterable[Document] | None,
    **fit: Unpack[FitArguments],
) -> tuple[ContextGate, Embeddings]:
    """Fit a gate, and return it with the model; see `GateOptions.from_retriever`."""
    model, own = model_of(retriever, embeddings), own_retriever(retriever)
    if contexts is not None:
        contexts = check_documents(contexts, "contexts")
        ids = [id_of(each) for each in contexts]
        texts = [each.page_content for each in contexts]
        gate = fit_gate(ids, texts, model.embed_documents(texts), embed_with(model), **fit)
    elif own is not None and isinstance(own.index, HybridIndex):
        verify = None if embeddings is None else lambda text: model.embed_documents([text])[0]
        gate = fit_index(own.index, embed_with(model), verify=verify, **fit)
    else:
        raise ValueError(
            f"{type(retriever).__name__} does not expose its documents: give contexts="
        )
    return gate, model


def load_for(
    path: str | Path,
    retriever: RetrieverLike,
    embeddings: Embeddings | None,
    transform: Transform | None,
    tokenizer: Tokenizer | None,
) -> tuple[ContextGate, Embeddings]:
    """Read a gate, and return it with the model; see `GateOptions.load`."""
    model = model_of(retriever, embeddings)
    gate = ContextGate.load(path, embed=embed_with(model), transform=transform, tokenizer=tokenizer)
    return gate, model


def embed_with(embeddings: Embeddings) -> Embed:
    """Return a function that embeds queries for the core."""
    return as_queries(embeddings.embed_query, embeddings.embed_documents)
