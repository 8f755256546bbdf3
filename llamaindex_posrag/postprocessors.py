"""The postprocessors: one scores nodes by both legs and places the best, the other only places.

Nothing in LlamaIndex sorts after a postprocessor, so the placed order reaches the prompt in the
response modes ``compact``, ``tree_summarize`` and ``simple_summarize`` while the context fits
one window. ``refine`` and ``accumulate`` call the model once per node: there the order of the
nodes means nothing. A postprocessor does not know the response mode.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, TypedDict, Unpack

import numpy as np
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

from llamaindex_posrag.embedding import embedded_text, plain_text
from llamaindex_posrag.events import reranking
from llamaindex_posrag.nodes import explained, placed
from llamaindex_posrag.options import AlphaField, KField, PlacementField, PsiField
from shared_core import CAUS, BM25Index, Passage, Placement
from shared_core.arrays import Scores
from shared_core.checking import check_each
from shared_core.index import PassageIndex, Variant
from shared_core.scoring.fusion import Alpha
from shared_core.sensitivity import Psi
from shared_core.types import Evidence, Fusion, Tokenizer


class FixedOptionsPostprocessor(BaseNodePostprocessor):
    """A postprocessor whose options are read from its fields once, at construction."""

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises the class."""
        return cls.__name__

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        size, name = self._announced_size(nodes), self.class_name()
        with reranking(self.callback_manager, nodes, query_bundle, top_n=size, name=name) as result:
            result.extend(self._processed(nodes, query_bundle))
        return result

    def _processed(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle | None
    ) -> list[NodeWithScore]:
        raise NotImplementedError  # not abstract: LlamaIndex would trace it as a span of its own

    def _announced_size(self, nodes: Sequence[NodeWithScore]) -> int:
        return len(nodes)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, with the options in `update` replaced.

        Pydantic's version sets them unchecked, and keeps attributes derived from the earlier ones.

        Raises
        ------
        ValueError, TypeError
            If an option is out of range or unknown, as in the constructor.
        """
        copied = super().model_copy(deep=deep)
        return type(self)(**{**dict(copied), **update}) if update else copied


class CAUSPostprocessorArguments(TypedDict, total=False):
    """Keyword arguments of `CAUSPostprocessor.from_nodes`."""

    k: int
    alpha: Alpha
    placement: str | Placement
    psi: Psi
    evidence: Evidence
    fusion: Fusion
    higher_is_better: bool
    variant: Variant
    tokenizer: Tokenizer | None


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
        Statistics made by `from_nodes`, with its own variant and tokenizer. Not part of `to_dict`.

    Raises
    ------
    ValueError
        If an option is unknown or out of range.
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
    corpus: PassageIndex | None = Field(default=None, frozen=True, exclude=True, repr=False)
    _caus: CAUS = PrivateAttr()

    @classmethod
    def from_nodes(
        cls, nodes: Iterable[BaseNode], **options: Unpack[CAUSPostprocessorArguments]
    ) -> Self:
        """Build a postprocessor with the BM25 statistics of a whole corpus.

        Parameters
        ----------
        nodes
            The corpus; ids are unique. A node that is not in it is scored by its text.
        **options
            Attributes of the class.

        Raises
        ------
        ValueError
            If two nodes share an id, one is not a node, `nodes` is one node instead of several, or
            an option is unknown or out of range.
        """
        made = cls(**options)
        corpus = PassageIndex(variant=made.variant, tokenizer=made.tokenizer)
        corpus.add(_texts(check_each(nodes, "nodes", BaseNode)))
        return made.model_copy(update={"corpus": corpus})

    def model_post_init(self, context: Any) -> None:
        """Check the options and settle the gate."""
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
        passages = _texts(node.node for node in nodes)
        alpha: float | None = None
        if not text:
            sparse, alpha = np.zeros(len(nodes)), 1.0
        else:
            sparse = self._sparse(text, passages)
            if np.isnan(dense).all():
                alpha = 0.0
        ranking = self._caus.rank(dense if self.higher_is_better else -dense, sparse, alpha=alpha)
        arrangement = self._caus.place(ranking)
        return explained([nodes[at].node for at in arrangement.indices], arrangement)

    def _sparse(self, query: str, passages: Sequence[Passage]) -> Scores:
        if self.corpus is not None:
            return self.corpus.scores(query, passages)
        texts = [passage.text for passage in passages]
        return BM25Index.from_texts(texts, variant=self.variant, tokenizer=self.tokenizer).scores(
            query
        )


def _texts(nodes: Iterable[BaseNode]) -> list[Passage]:
    return [Passage(node.node_id, embedded_text(node)) for node in nodes]


class PlacementPostprocessor(FixedOptionsPostprocessor):
    """Place nodes; their scores are ignored, and left as they are.

    The order in which the nodes come is their ranking, best first, so missing, NaN, negative and
    tied scores need no rule. Nodes that an earlier step has placed are placed by the ranks they
    carry. Every node comes back, as an `ExplainedNode`.

    Parameters
    ----------
    placement
        Name in `shared_core.PLACEMENTS`, or a placement.
    psi
        Position sensitivity of the model: a number, a profile, its path or name, ``"always"`` or
        ``"never"``. ``"always"`` by default, since naming a placement asks for it. None keeps the
        given order; each node's ``posrag`` says why.
    evidence
        ``"point"`` or ``"interval"``; see `shared_core.decide_order`.

    Raises
    ------
    ValueError
        If an option is out of range.
    TypeError
        If an option is unknown.
    ProfileNotFoundError
        If `psi` names a profile that does not exist.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    placement: PlacementField = Field(default="u_shape", frozen=True)
    psi: PsiField = Field(default="always", frozen=True)
    evidence: Evidence = Field(default="point", frozen=True)
    _caus: CAUS = PrivateAttr()

    def __init__(
        self,
        placement: str | Placement = "u_shape",
        *,
        psi: Psi = "always",
        evidence: Evidence = "point",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(
            placement=placement,
            psi=psi,
            evidence=evidence,
            callback_manager=callback_manager or CallbackManager(),
        )

    def model_post_init(self, context: Any) -> None:
        """Check the options and settle the gate."""
        self._caus = CAUS(placement=self.placement, psi=self.psi, evidence=self.evidence)

    def _processed(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle | None
    ) -> list[NodeWithScore]:
        return placed(nodes, self._caus)
