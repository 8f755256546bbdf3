"""The postprocessors: one scores nodes by both legs and places the best, the other only places.

Nothing in LlamaIndex sorts after a postprocessor, so the placed order reaches the prompt in the
response modes ``compact``, ``tree_summarize`` and ``simple_summarize`` while the context fits
one window. ``refine`` and ``accumulate`` call the model once per node: there the order of the
nodes means nothing. A postprocessor does not know the response mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Self, Unpack

from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import FieldSerializationInfo, ValidationInfo, field_serializer, field_validator

from llamaindex_posrag.embedding import embedded_text, plain_text
from llamaindex_posrag.nodes import NodeChunks, as_passages, explained, explanation, with_slot
from shared_core import CAUS, PassageIndex, Placement
from shared_core.checking import check_each
from shared_core.index import Variant
from shared_core.metadata import as_similarities
from shared_core.options import OrderArguments, RescoringArguments, check_option, encode_options
from shared_core.placement.order_gate import Psi
from shared_core.scoring.fusion import Alpha
from shared_core.types import Fusion, OrderRule, Tokenizer

dispatcher = get_dispatcher(__name__)

OPTIONS = tuple(field.name for field in fields(CAUS))


class FixedOptionsPostprocessor(BaseNodePostprocessor):
    """A postprocessor whose options are read from its fields once, at construction.

    It announces each call and its end, also after an error, to the dispatcher.
    """

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises the class."""
        return cls.__name__

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        top_n, name = getattr(self, "k", len(nodes)), self.class_name()
        result: list[NodeWithScore] = []
        start = ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=top_n, model_name=name)
        dispatcher.event(start)
        try:
            result = self._processed(nodes, query_bundle)
        finally:
            dispatcher.event(ReRankEndEvent(nodes=result))
        return result

    def _processed(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle | None
    ) -> list[NodeWithScore]:
        raise NotImplementedError  # not abstract: LlamaIndex would trace it as a span of its own

    def _options_of(self, method: type) -> dict[str, Any]:
        """Return the fields that are options of a dataclass of the core."""
        names = (each.name for each in fields(method))
        return {name: getattr(self, name) for name in names if name in type(self).model_fields}

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


class CAUSFieldsPostprocessor(FixedOptionsPostprocessor):
    """A postprocessor whose fields are options of `CAUS`, which checks, encodes and decodes them.

    None of pydantic's coercions applies, such as True to 1.
    """

    _caus: CAUS = PrivateAttr()

    @field_validator(*OPTIONS, mode="plain", check_fields=False)
    @classmethod
    def _check_option(cls, value: Any, field: ValidationInfo) -> Any:
        return check_option(str(field.field_name), value)

    @field_serializer(*OPTIONS, check_fields=False)
    def _encode_option(self, value: Any, field: FieldSerializationInfo) -> Any:
        name = str(field.field_name)
        return encode_options({name: value})[name]

    def model_post_init(self, context: Any) -> None:
        """Check the options together, and settle the gate."""
        self._caus = CAUS(**self._options_of(CAUS))


class PlacementArguments(OrderArguments, total=False):
    """Keyword arguments of `PlacementPostprocessor` besides the placement."""

    callback_manager: CallbackManager


class CAUSPostprocessorArguments(RescoringArguments, total=False):
    """Keyword arguments of `CAUSPostprocessor.from_nodes`."""

    callback_manager: CallbackManager
    higher_is_better: bool
    variant: Variant
    tokenizer: Tokenizer | None


class CAUSPostprocessor(CAUSFieldsPostprocessor):
    """Fuse the nodes' scores with BM25, keep the best k, and place them if the gate opens.

    The scores that come in are the dense leg. A score that is None or NaN is missing and counts
    as the lowest of the others; negative and tied scores are allowed, and ties keep the given
    order. If every score is missing, BM25 alone decides; without a query, or with a blank one, the
    scores alone. Infinite scores are refused.

    BM25 sees the text that LlamaIndex embeds. Its statistics are those of the nodes that come
    in, or of a whole corpus with `from_nodes`. Every node comes back as an `ExplainedNode`.

    Attributes
    ----------
    k
        Number of nodes to keep, >= 1.
    alpha
        Weight of the dense leg in [0, 1]. None: that of the fusion, see `shared_core.rank`.
    placement, psi, rule, hit_rates
        As in `CAUS`.
    fusion
        ``"theoretical_min"``, ``"min_max"`` (CAUS eq. 2) or ``"rrf"``.
    distinct, per_source
        Leave out near-duplicates of a better node, and more than so many of one source document;
        see `CAUS`.
    higher_is_better
        False if the incoming scores are distances, as those of FaissVectorStore with an L2
        index; they are then negated first.
    variant
        ``"lucene"`` or ``"okapi"``.
    tokenizer
        Text to tokens, for BM25 and `distinct`; `shared_core.tokenize` by default. Not part of
        `to_dict`.
    corpus
        Statistics made by `from_nodes`, with its own variant and tokenizer. Not part of `to_dict`.

    Raises
    ------
    ValueError
        If an option is unknown or out of range.
    ProfileNotFoundError
        If `psi` names a profile that does not exist.

    Warns
    -----
    UserWarning
        If the scores only rise, as distances do, and `higher_is_better` is True.

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

    model_config = ConfigDict(extra="forbid")

    k: int = Field(default=10, frozen=True)
    alpha: Alpha = Field(default=None, frozen=True)
    placement: str | Placement = Field(default="auto", frozen=True)
    psi: Psi = Field(default=None, frozen=True)
    rule: OrderRule = Field(default="gain", frozen=True)
    hit_rates: Sequence[float] | None = Field(default=None, frozen=True)
    fusion: Fusion = Field(default="theoretical_min", frozen=True)
    distinct: float | None = Field(default=None, frozen=True)
    per_source: int | None = Field(default=None, frozen=True)
    higher_is_better: bool = Field(default=True, frozen=True)
    variant: Variant = Field(default="lucene", frozen=True)
    # Fields, not private attributes: BaseComponent pickles fields only.
    tokenizer: Tokenizer | None = Field(default=None, frozen=True, exclude=True, repr=False)
    corpus: PassageIndex | None = Field(default=None, frozen=True, exclude=True, repr=False)

    @classmethod
    def from_nodes(
        cls, nodes: Iterable[BaseNode], **options: Unpack[CAUSPostprocessorArguments]
    ) -> Self:
        """Build a postprocessor with the BM25 statistics of a whole corpus.

        Parameters
        ----------
        nodes
            The corpus; the nodes that come in need not be among them.
        **options
            Attributes of the class.

        Raises
        ------
        ValueError
            If `nodes` is one node instead of several, one is not a node, or an option is unknown or
            out of range.
        """
        texts = map(embedded_text, check_each(nodes, "nodes", BaseNode))
        made = cls(**options)
        corpus = PassageIndex.from_texts(texts, variant=made.variant, tokenizer=made.tokenizer)
        return made.model_copy(update={"corpus": corpus})

    def _processed(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle | None
    ) -> list[NodeWithScore]:
        scores, details = [each.score for each in nodes], [explanation(node) for node in nodes]
        dense = as_similarities(scores, details, higher_is_better=self.higher_is_better)
        arrangement = self._caus.rescore(
            plain_text(query) if query else "",
            dense,
            as_passages(nodes),
            corpus=self.corpus,
            variant=self.variant,
            tokenizer=self.tokenizer,
            reader=NodeChunks(self._caus.chunk_keys),
        )
        return explained([nodes[at].node for at in arrangement.indices], arrangement)


class PlacementPostprocessor(CAUSFieldsPostprocessor):
    """Place nodes; their scores are ignored, and left as they are.

    The order in which the nodes come is their ranking, best first, so missing, NaN, negative and
    tied scores need no rule. It warns if that is the order in which an earlier step placed them:
    place once, with ``psi="never"`` in the step before. Every node comes back, as an
    `ExplainedNode`.

    Parameters
    ----------
    placement
        Name in `shared_core.PLACEMENTS`, or a placement.
    psi
        Position sensitivity of the model: a number, a profile, its path or name, ``"always"`` or
        ``"never"``. ``"always"`` by default, since naming a placement asks for it. None keeps the
        given order; each node's ``posrag`` says why.
    rule, hit_rates
        How a profile decides; see `shared_core.decide_order`.

    Raises
    ------
    ValueError
        If an option is unknown or out of range.
    ProfileNotFoundError
        If `psi` names a profile that does not exist.
    """

    model_config = ConfigDict(extra="forbid")

    placement: str | Placement = Field(default="u_shape", frozen=True)
    psi: Psi = Field(default="always", frozen=True)
    rule: OrderRule = Field(default="gain", frozen=True)
    hit_rates: Sequence[float] | None = Field(default=None, frozen=True)

    def __init__(
        self, placement: str | Placement = "u_shape", **options: Unpack[PlacementArguments]
    ) -> None:
        super().__init__(placement=placement, **options)

    def _processed(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle | None
    ) -> list[NodeWithScore]:
        caus, details = self._caus, [explanation(node) for node in nodes]
        placed = caus.place_given(as_passages(nodes), details, NodeChunks(caus.chunk_keys))
        return [with_slot(nodes[why["rank"]], why) for why in placed]
