"""The texts that both legs see, and their vectors: of queries and of nodes."""

from __future__ import annotations

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
        If it is one query instead of several: the letters of a text are no queries.
    """
    check_several(queries, "queries", QueryBundle)
    return [as_bundle(query) for query in queries]


def plain_text(query: QueryBundle) -> str:
    r"""Return the question itself, without the ``"\ninput is ...\n"`` that RetrieverTool adds."""
    return unwrapped(query.query_str).strip()


def embed(model: BaseEmbedding, query: QueryBundle) -> list[float]:
    """Embed a query: by its own embedding, else its custom strings (their mean), else its text."""
    if query.embedding is not None:
        return query.embedding
    if query.custom_embedding_strs:
        return model.get_agg_embedding_from_queries(query.custom_embedding_strs)
    return model.get_query_embedding(plain_text(query))


async def aembed(model: BaseEmbedding, query: QueryBundle) -> list[float]:
    """Embed a query without blocking the event loop; see `embed`."""
    if query.embedding is not None:
        return query.embedding
    if query.custom_embedding_strs:
        return await model.aget_agg_embedding_from_queries(query.custom_embedding_strs)
    return await model.aget_query_embedding(plain_text(query))


def embedded_query(query: QueryBundle) -> str | None:
    """Return what `embed` embeds, as one text; None of a query that brings its own embedding."""
    if query.embedding is not None:
        return None
    return "\n".join(query.custom_embedding_strs or [plain_text(query)]).strip()


def embedded_text(node: BaseNode) -> str:
    """Text of a node that both legs see: what LlamaIndex embeds."""
    return node.get_content(metadata_mode=MetadataMode.EMBED)


def embed_nodes(
    model: BaseEmbedding, nodes: Sequence[BaseNode], *, show_progress: bool = False
) -> list[list[float]]:
    """Return a vector for each node: its own where it has one, else the model's.

    Raises
    ------
    ValueError
        If the model returns more or fewer vectors than it got texts.
    """
    texts = [embedded_text(node) for node in nodes if node.embedding is None]
    made = model.get_text_embedding_batch(texts, show_progress=show_progress) if texts else []
    if len(made) != len(texts):
        raise ValueError(f"the embedding model made {len(made)} vectors of {len(texts)} texts")
    fresh = iter(made)
    return [next(fresh) if node.embedding is None else node.embedding for node in nodes]
