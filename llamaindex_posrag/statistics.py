"""BM25 statistics of a whole corpus of nodes, for scoring the few that a retriever returned."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from llama_index.core.schema import BaseNode

from llamaindex_posrag.embedding import embedded_text
from shared_core import BM25Index
from shared_core.arrays import Bools, Scores
from shared_core.checking import check_each
from shared_core.index.sparse.bm25 import Variant
from shared_core.types import Tokenizer


class NodeStatistics:
    """BM25 over a fixed set of nodes.

    Parameters
    ----------
    nodes
        The corpus; ids are unique.
    variant, tokenizer
        As in `shared_core.BM25Index`.

    Attributes
    ----------
    variant, tokenizer
        As given.

    Raises
    ------
    ValueError
        If two nodes share an id, one is not a node, or `nodes` is one node instead of several.
    """

    def __init__(
        self,
        nodes: Iterable[BaseNode],
        *,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
    ) -> None:
        nodes = check_each(nodes, "nodes", BaseNode)
        self.variant, self.tokenizer = variant, tokenizer
        self._texts = [_digest(node) for node in nodes]
        self._rows: dict[str, int] = {}
        for row, node in enumerate(nodes):
            if self._rows.setdefault(node.node_id, row) != row:
                raise ValueError(f"two nodes share the id {node.node_id!r}")
        self._bm25 = BM25Index.from_texts(
            [embedded_text(node) for node in nodes], variant=variant, tokenizer=tokenizer
        )

    def __contains__(self, node_id: str) -> bool:
        return node_id in self._rows

    def scores(self, query: str, nodes: Sequence[BaseNode]) -> Scores:
        """Return the BM25 score of each node, shape (len(nodes),), higher is better.

        A node that is not in the corpus, or has another text there, as after a postprocessor that
        adds its neighbours, is scored by its text with the corpus's statistics.
        """
        rows = [self._row_of(node) for node in nodes]
        return self._bm25.scores_of(query, rows, lambda at: embedded_text(nodes[at]))

    def search(self, query: str, k: int, allowed: Bools | None = None) -> list[int]:
        """Return the rows of the best `k` nodes that share a token with the query, best first."""
        rows, _ = self._bm25.search(query, k, allowed=allowed)
        return [int(row) for row in rows]

    def _row_of(self, node: BaseNode) -> int | None:
        row = self._rows.get(node.node_id)
        return None if row is None or self._texts[row] != _digest(node) else row


def _digest(node: BaseNode) -> bytes:
    """Return a digest that identifies the text; texts themselves would be kept and pickled."""
    text = node.get_content().encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()
