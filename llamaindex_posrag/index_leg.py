"""A vector index of LlamaIndex as the dense leg: its retriever, and the nodes it holds."""

from __future__ import annotations

from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores import SimpleVectorStore


class IndexLeg(BaseRetriever):
    """Wraps a retriever and returns index nodes without following them to their objects.

    LlamaIndex's retrievers follow an `IndexNode` to the object it leads to. A fusing retriever
    does so once, after the fusion: otherwise the node, from BM25, and its object, from the dense
    leg, would be two candidates.

    Parameters
    ----------
    retriever
        Finds the nodes; its `object_map` is not used.
    """

    def __init__(self, retriever: VectorIndexRetriever) -> None:
        self._retriever = retriever
        super().__init__(retriever.callback_manager)

    def search_to(self, depth: int) -> None:
        """Return `depth` nodes from the next query on."""
        self._retriever.similarity_top_k = depth

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._retriever._retrieve(query_bundle)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await self._retriever._aretrieve(query_bundle)

    def _handle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        return nodes

    async def _ahandle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        return nodes


def held_nodes(index: VectorStoreIndex) -> list[BaseNode]:
    """Return the nodes of an index; an empty list if its vector store keeps the text itself.

    Its docstore may hold others: of deleted documents, of other indices, parents of its nodes.
    """
    store = index.vector_store
    if store.stores_text and not index._store_nodes_override:
        return []  # the docstore has its images and index nodes alone
    held = index.index_struct.nodes_dict
    if isinstance(store, SimpleVectorStore):  # which forgets at once what `delete_nodes` deletes
        held = {row: id_ for row, id_ in held.items() if row in store.data.embedding_dict}
    return index.docstore.get_nodes([*dict.fromkeys(held.values())], raise_error=False)
