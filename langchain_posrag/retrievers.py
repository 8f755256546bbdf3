"""The CAUS retriever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig, run_in_executor
from langchain_core.runnables.config import get_config_list
from langchain_core.runnables.utils import gather_with_concurrency
from typing_extensions import override

from langchain_posrag.documents import documents_of
from langchain_posrag.legs import CallOptions, Embedding, EmbeddingLegs, aattempt, attempt
from langchain_posrag.lifecycle import RetrieverLifecycle
from langchain_posrag.tracing import aknown, atraced, known, traced
from langchain_posrag.vector_store_legs import VectorStoreLegs
from shared_core import Arrangement
from shared_core.index.metadata import Where
from shared_core.overriding import inherits
from shared_core.scoring.fusion import Alpha


class CAUSRetriever(RetrieverLifecycle):
    """Dense and BM25 search side by side, fused, and placed in the prompt if the gate opens.

    Every call may set `k`, `fetch_k`, `alpha` and a metadata `filter` for itself:
    ``retriever.invoke("query", k=3, filter={"lang": "en"})``. A filter is a mapping (equal
    values; a list means any of them) or a function of the metadata, and holds in both legs;
    `from_vectorstore` says what a store makes of it.

    Documents come back as copies with their id. Unless `include_scores` is False they carry the
    fused score, in [0, 1] and higher is better, under ``metadata["score"]`` (a key of that name
    of the user's own stays) and its explanation under ``metadata["posrag"]``. A document that
    comes without an id gets a random one. The explanation belongs to one query; so set it to False
    under LangChain's MultiQueryRetriever, which keeps equal documents once. EnsembleRetriever, or
    whatever else fuses ranks, takes slots for ranks: give ``psi="never"`` there, and place
    behind it with a `PlacementTransformer`.

    With `expand` the k passages that were found take in their neighbours, and what follows each
    other becomes one document: at most k documents come back, each with the id and metadata of
    its best passage and the text of the span. Neighbours pass the filter too.

    Attributes
    ----------
    index
        The passages: a `shared_core.HybridIndex`, or a vector store with a sparse leg beside it,
        from `from_vectorstore`. It is held, never copied or rebuilt.
    embeddings
        Embeds queries and documents for a `HybridIndex`; a vector store has its own.
    fetch_k
        Depth of each leg's search before fusion, >= 1; at least `k` is always fetched.
    expand
        A `shared_core.expansion.NeighbourSpans`; its `order` plays no part, `placement` does.
        None: passages come back as they are.
    chunk_keys
        Metadata keys that tell which chunk of which document a passage is: a
        `shared_core.index.ChunkKeys`. One that tells none has no neighbours.
    k, alpha, fusion, placement, psi, evidence
        As in `shared_core.CAUS`.
    include_scores
        Whether the documents carry their score and explanation.

    Raises
    ------
    ValueError
        If an option is unknown or out of range (pydantic's ``ValidationError`` is one); while
        searching, if the budget of `expand` is smaller than the best passage, the number of a
        chunk is no integer, or two chunks of different text have the same place.
    ProfileNotFoundError
        If `psi` names a profile that is not there.

    Examples
    --------
    >>> from langchain_core.documents import Document
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> documents = [Document("torch.sort sorts a tensor"), Document("torch.load loads a file")]
    >>> model = DeterministicFakeEmbedding(size=8)  # or the one you have
    >>> retriever = CAUSRetriever.from_documents(documents, model, k=2, alpha=0.3, psi="always")
    >>> best, *_ = retriever.invoke("How do I sort a tensor?", alpha=0)
    >>> best.page_content, best.metadata["posrag"]["slot"]
    ('torch.sort sorts a tensor', 0)
    """

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        fetch_k: int | None = None,
        alpha: Alpha | None = None,
        filter: Where = None,
        found: Arrangement | Exception | None = None,
    ) -> list[Document]:
        options = CallOptions(k=k, fetch_k=fetch_k, alpha=alpha, where=filter)
        search = self._legs.search if found is None else known(_reported(found))
        return self._answer(traced(search, run_manager, self.caus, query, options))

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        fetch_k: int | None = None,
        alpha: Alpha | None = None,
        filter: Where = None,
        found: Arrangement | Exception | None = None,
    ) -> list[Document]:
        options = CallOptions(k=k, fetch_k=fetch_k, alpha=alpha, where=filter)
        search = self._legs.asearch if found is None else aknown(_reported(found))
        return self._answer(await atraced(search, run_manager, self.caus, query, options))

    def _answer(self, found: Arrangement) -> list[Document]:
        return documents_of(found, include_scores=self.include_scores)

    @override
    def batch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Answer many queries at once, sooner; the results are those of `invoke`.

        Queries are embedded one by one, up to ``max_concurrency`` at a time. Then each is a run
        of its own, that reports what the common search found for it. A subclass that answers
        single queries in a way of its own answers all of them so, one by one.
        """
        legs = self._legs
        own = inherits(type(self), CAUSRetriever, "invoke", "_get_relevant_documents")
        if len(inputs) < 2 or not own or not isinstance(legs, EmbeddingLegs):
            return super().batch(inputs, config, return_exceptions=return_exceptions, **kwargs)
        configs = get_config_list(config, len(inputs))
        limit = configs[0].get("max_concurrency")
        vectors = legs.embed_many(inputs, limit, go_on=return_exceptions)
        found = legs.search_many(self.caus, inputs, vectors, _call_options(kwargs))

        def answer(item: tuple[str, RunnableConfig, Arrangement | Exception]) -> list[Document]:
            query, config, found = item
            return self.invoke(query, config, found=found, **kwargs)

        report = attempt(answer) if return_exceptions else answer
        answers = [report(item) for item in _tried(inputs, configs, found)]
        return cast("list[list[Document]]", answers)

    @override
    async def abatch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Do what `batch` does, with the embeddings awaited."""
        legs = self._legs
        own = inherits(type(self), CAUSRetriever, "ainvoke", "_aget_relevant_documents")
        if len(inputs) < 2 or not own or not isinstance(legs, EmbeddingLegs):
            return await super().abatch(
                inputs, config, return_exceptions=return_exceptions, **kwargs
            )
        configs = get_config_list(config, len(inputs))
        limit = configs[0].get("max_concurrency")
        embed = Embedding(embeddings=legs.embeddings, go_on=return_exceptions)
        vectors = await gather_with_concurrency(limit, *map(embed.aone, inputs))
        options = _call_options(kwargs)
        found = await run_in_executor(None, legs.search_many, self.caus, inputs, vectors, options)

        async def answer(
            item: tuple[str, RunnableConfig, Arrangement | Exception],
        ) -> list[Document]:
            query, config, found = item
            return await self.ainvoke(query, config, found=found, **kwargs)

        report = aattempt(answer) if return_exceptions else answer
        items = _tried(inputs, configs, found)
        return await gather_with_concurrency(limit, *map(report, items))

    @override
    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        params = LangSmithRetrieverParams(ls_retriever_name="caus")
        if isinstance(self.index, VectorStoreLegs):
            params["ls_vector_store_provider"] = type(self.index.store).__name__
            embeddings = self.index.store.embeddings
        else:
            embeddings = self.embeddings
        if embeddings is not None:
            params["ls_embedding_provider"] = type(embeddings).__name__
        return params


def _tried(
    queries: Sequence[str],
    configs: Sequence[RunnableConfig],
    found: Sequence[Arrangement | Exception | None],
) -> list[tuple[str, RunnableConfig, Arrangement | Exception]]:
    """Drop queries that were never embedded because another failed; they get no run.

    The failed one stays, and raises.
    """
    items = zip(queries, configs, found, strict=True)
    return [(query, config, each) for query, config, each in items if each is not None]


def _reported(found: object) -> Arrangement | Exception:
    """Return what a batch hands to each of its runs, and nobody else to a call."""
    if isinstance(found, Arrangement | Exception):
        return found
    raise TypeError(
        f"found is no option of a call, got found={found!r}; a call may set k, fetch_k, alpha "
        "and filter"
    )


def _call_options(kwargs: Mapping[str, Any]) -> CallOptions:
    """Return what the keyword arguments of a batch set; `invoke` refuses the unknown ones."""
    return CallOptions(
        k=kwargs.get("k"),
        fetch_k=kwargs.get("fetch_k"),
        alpha=kwargs.get("alpha"),
        where=kwargs.get("filter"),
    )
