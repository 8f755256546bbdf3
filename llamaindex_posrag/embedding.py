"""The texts that both legs see, and their vectors: of queries and of nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode, MetadataMode, QueryBundle, QueryType

from shared_core.checking import check_several
from shared_core.gating import unwrapped


def as_bundle(query: QueryType) -> QueryBundle:
    """Return the query as a bundle."""
    return QueryBundle(query) if isinstance(query, str) else query


def as_bundles(queries: Sequence[QueryType]) -> list[QueryBundle]:
    """Return queries as bundles.

    Raises
    ------
    ValueError
        If it is one query instead of several: the letters of a text are not queries.
    """
    check_several(queries, "queries", QueryBundle)
    return [as_bundle(query) for query in queries]


def plain_text(query: QueryBundle) -> str:
    r"""Return the question itself, without the ``"\ninput is ...\n"`` that RetrieverTool adds."""
    return unwrapped(query.query_str).strip()


def embed(model: BaseEmbedding, query: QueryBundle) -> list[float]:
    """Return a query's embedding, or embed its custom strings (their mean) or else its text."""
    if query.embedding is not None:
        return query.embedding
    if query.custom_embedding_strs:
        return model.get_agg_embedding_from_queries(query.custom_embedding_strs)
    return model.get_query_embedding(plain_text(query))


async def aembed(model: BaseEmbedding, query: QueryBundle) -> list[float]:
    """Async version of `embed`."""
    if query.embedding is not None:
        return query.embedding
    if query.custom_embedding_strs:
        return await model.aget_agg_embedding_from_queries(query.custom_embedding_strs)
    return await model.aget_query_embedding(plain_text(query))


async def aembed_queries(model: BaseEmbedding, queries: Sequence[QueryBundle]) -> list[list[float]]:
    """Embed queries at once, at most ``model.num_workers`` at a time if that is set.

    The first error is raised once the other calls are cancelled and have ended.
    """
    free = asyncio.Semaphore(model.num_workers or len(queries))

    async def vector(query: QueryBundle) -> list[float]:
        async with free:
            return await aembed(model, query)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(vector(query)) for query in queries]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def embedded_query(query: QueryBundle) -> str | None:
    """Return the text that `embed` embeds; None for a query that brings its own embedding."""
    if query.embedding is not None:
        return None
    return "\n".join(query.custom_embedding_strs or [plain_text(query)]).strip()


def embedded_text(node: BaseNode) -> str:
    """Return the text of a node that both legs see: what LlamaIndex embeds."""
    return node.get_content(metadata_mode=MetadataMode.EMBED)


def embed_nodes(
    model: BaseEmbedding, nodes: Sequence[BaseNode], *, show_progress: bool = False
) -> list[list[float]]:
    """Return a vector for each node: its embedding if it has one, otherwise the model's.

    Raises
    ------
    ValueError
        If the model returns more or fewer vectors than it got texts.
    """
    given, texts = _given_and_missing(nodes)
    made = model.get_text_embedding_batch(texts, show_progress=show_progress) if texts else []
    return _completed(given, texts, made)


async def aembed_nodes(
    model: BaseEmbedding, nodes: Sequence[BaseNode], *, show_progress: bool = False
) -> list[list[float]]:
    """Async version of `embed_nodes`."""
    given, texts = _given_and_missing(nodes)
    batch = model.aget_text_embedding_batch
    made = await batch(texts, show_progress=show_progress) if texts else []
    return _completed(given, texts, made)


def _given_and_missing(nodes: Sequence[BaseNode]) -> tuple[list[list[float] | None], list[str]]:
    """Return the embedding of each node, and the texts of the nodes without one."""
    given = [node.embedding for node in nodes]
    pairs = zip(nodes, given, strict=True)
    return given, [embedded_text(node) for node, vector in pairs if vector is None]


def _completed(
    given: Sequence[list[float] | None], texts: Sequence[str], made: Sequence[list[float]]
) -> list[list[float]]:
    """Return the given embeddings, with those that were made of the texts in the gaps."""
    if len(made) != len(texts):
        raise ValueError(f"the embedding model made {len(made)} vectors of {len(texts)} texts")
    fresh = iter(made)
    return [next(fresh) if vector is None else vector for vector in given]
