"""The postprocessor that scores nodes by both legs, keeps the best and places them.

Where the placed order reaches the prompt: see `llamaindex_posrag.placement_postprocessor`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

from llamaindex_posrag.embedding import embedded_text, plain_text
from llamaindex_posrag.fields import AlphaField, KField, PlacementField, PsiField
from llamaindex_posrag.fixed_options import FixedOptionsPostprocessor
from llamaindex_posrag.nodes import explained
from llamaindex_posrag.statistics import NodeStatistics
from shared_core import CAUS, BM25Index, Placement
from shared_core.index.sparse.bm25 import Variant
from shared_core.scoring.fusion import Alpha
from shared_core.sensitivity import Psi
from shared_core.types import Evidence, Fusion, Tokenizer


class CAUSPostprocessor(FixedOptionsPostprocessor):
    """Fuse the nodes' scores with BM25, keep the best k, and place them if the gate opens.

    The scores that come in are the dense leg. A score that is None or NaN is missing and counts
    as the lowest of the others; negative and tied scores are allowed, and ties keep the given
    order. If every score is missing, the sparse leg alone decides; without a query, or with a
    blank one, the dense leg alone. Infinite scores are refused.

    BM25 sees the text that LlamaIndex embeds. Its statistics are those of the nodes that come
    in, or of a whole corpus with `from_nodes`. Every node comes back as an `ExplainedNode`.

    Attributes
    ----------
    k
        Number of nodes to keep, >= 1.
    alpha
        Weight of the dense leg in [0, 1], or ``"auto"``.
    placement, psi, evidence
        As in `PlacementPostprocessor`.
    fusion
        ``"min_max"`` (CAUS eq. 2) or ``"rrf"``.
    higher_is_better
        False if the incoming scores are distances, as those of FaissVectorStore with an L2
        index; they are then negated first.
    variant
        ``"lucene"`` or ``"okapi"``.
    tokenizer
        Text to tokens, for BM25; `shared_core.tokenize` by default. Not part of `to_dict`.
    corpus
        Statistics made by `from_nodes`. Not part of `to_dict`.

    Raises
    ------
    ValueError
        If an option is unknown or out of range, or a corpus was made with another variant or
        tokenizer.
    ProfileNotFoundError
        If `psi` names a profile that does not exist.

    Examples
    --------
    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> texts = ["torch.load loads a file", "torch.sort sorts a tensor"]
    >>> nodes = [NodeWithScore(node=TextNode(text=text), score=0.5) for text in texts]
    >>> postprocessor = CAUSPostprocessor(k=2, alpha=0.3, psi="always")
    >>> best, *_ = postprocessor.postprocess_nodes(nodes, query_str="How do I sort a tensor?")
    >>> best.node.text, best.posrag["slot"]
    ('torch.sort sorts a tensor', 0)
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    k: KField = Field(default=10, frozen=True)
    alpha: AlphaField = Field(default=0.3, frozen=True)
    placement: PlacementField = Field(default="u_shape", frozen=True)
    psi: PsiField = Field(default=None, frozen=True)
    evidence: Evidence = Field(default="point", frozen=True)
    fusion: Fusion = Field(default="min_max", frozen=True)
    higher_is_better: bool = Field(default=True, frozen=True)
    variant: Variant = Field(default="lucene", frozen=True)
    # Fields, not private attributes: BaseComponent pickles fields only.
    tokenizer: Tokenizer | None = Field(default=None, frozen=True, exclude=True, repr=False)
    corpus: NodeStatistics | None = Field(default=None, frozen=True, exclude=True, repr=False)
    _caus: CAUS = PrivateAttr()

    @classmethod
    def from_nodes(
        cls,
        nodes: Iterable[BaseNode],
        *,
        k: int = 10,
        alpha: Alpha = 0.3,
        placement: str | Placement = "u_shape",
        psi: Psi = None,
        evidence: Evidence = "point",
        fusion: Fusion = "min_max",
        higher_is_better: bool = True,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
    ) -> Self:
        """Build a postprocessor with the BM25 statistics of a whole corpus.

        Parameters
        ----------
        nodes
            The corpus; ids are unique. A node that is not in it is scored by its text.

        Raises
        ------
        ValueError
            If two nodes share an id, one is not a node, `nodes` is one node instead of several, or
            an option is out of range.
        """
        return cls(
            k=k,
            alpha=alpha,
            placement=placement,
            psi=psi,
            evidence=evidence,
            fusion=fusion,
            higher_is_better=higher_is_better,
            variant=variant,
            tokenizer=tokenizer,
            corpus=NodeStatistics(nodes, variant=variant, tokenizer=tokenizer),
        )

    def model_post_init(self, context: Any) -> None:
        """Check the options and settle the gate."""
        corpus = self.corpus
        if corpus is not None and (self.variant, self.tokenizer) != (
            corpus.variant,
            corpus.tokenizer,
        ):
            raise ValueError(
                f"corpus= was made with variant={corpus.variant!r} and tokenizer="
                f"{corpus.tokenizer!r}, got {self.variant!r} and {self.tokenizer!r}: give the "
                "same, or use from_nodes"
            )
        self._caus = CAUS(
            k=self.k,
            alpha=self.alpha,
            fusion=self.fusion,
            placement=self.placement,
            psi=self.psi,
            evidence=self.evidence,
        )

    def _announced_size(self, nodes: Sequence[NodeWithScore]) -> int:
        return self.k

    def _processed(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle | None
    ) -> list[NodeWithScore]:
        text = plain_text(query) if query else ""
        dense = np.array([math.nan if node.score is None else node.score for node in nodes])
        candidates = [node.node for node in nodes]
        alpha: float | None = None
        if not text:
            sparse, alpha = np.zeros(len(nodes)), 1.0
        else:
            sparse = self._sparse(text, candidates)
            if np.isnan(dense).all():
                alpha = 0.0
        ranking = self._caus.rank(dense if self.higher_is_better else -dense, sparse, alpha=alpha)
        arrangement = self._caus.place(ranking)
        return explained([candidates[at] for at in arrangement.indices], arrangement)

    def _sparse(self, query: str, nodes: Sequence[BaseNode]) -> npt.NDArray[np.float64]:
        if self.corpus is not None:
            return self.corpus.scores(query, nodes)
        texts = [embedded_text(node) for node in nodes]
        statistics = BM25Index.from_texts(texts, variant=self.variant, tokenizer=self.tokenizer)
        return statistics.scores(query)
