"""The texts that both legs see, and their vectors: of queries and of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices import utils
from llama_index.core.schema import BaseNode, MetadataMode, QueryBundle, QueryType

from shared_core.checking import check_several
from shared_core.gating import unwrapped


def as_bundle(query: QueryType) -> QueryBundle:
    """Return the query as a bundle.

    Raises
    ------
    ValueError
        If it is neither a text nor a bundle with one.
    """
    bundle = QueryBundle(query) if isinstance(query, str) else query
    if not isinstance(bundle, QueryBundle) or not isinstance(bundle.query_str, str):
        raise ValueError(f"a query must be a text or a QueryBundle, got {query!r:.80}")
    return bundle


def as_bundles(queries: Sequence[QueryType]) -> list[QueryBundle]:
    """Return queries as bundles.

    Raises
    ------
    ValueError
        If it is one query instead of several (the letters of a text are not queries), or one is
        neither a text nor a bundle.
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
        If the model returns fewer vectors than it got texts.
    """
    return _in_order(utils.embed_nodes(nodes, model, show_progress), nodes)


async def aembed_nodes(
    model: BaseEmbedding, nodes: Sequence[BaseNode], *, show_progress: bool = False
) -> list[list[float]]:
    """Async version of `embed_nodes`."""
    return _in_order(await utils.async_embed_nodes(nodes, model, show_progress), nodes)


def _in_order(vectors: Mapping[str, list[float]], nodes: Sequence[BaseNode]) -> list[list[float]]:
    if len(vectors) < len({node.node_id for node in nodes}):
        raise ValueError(f"the embedding model gave {len(vectors)} vectors for {len(nodes)} nodes")
    return [vectors[node.node_id] for node in nodes]
