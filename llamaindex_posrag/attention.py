"""The postprocessor that puts nodes where a local model attends to them.

As with every placement, the order reaches the prompt in the response modes that make one prompt
of all nodes: ``compact``, ``tree_summarize`` and ``simple_summarize``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Unpack

from llama_index.core.bridge.pydantic import ConfigDict, Field, PlainSerializer, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from pydantic import BeforeValidator, PlainValidator

from llamaindex_posrag.embedding import plain_text
from llamaindex_posrag.nodes import with_slot
from llamaindex_posrag.postprocessors import FixedOptionsPostprocessor
from shared_core.attention.rounds import AttentionArguments, AttentionPlacer
from shared_core.generation.local_model import LocalModel, ModelLike
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.sensitivity.curve import PositionalCurve, resolve_curve

ModelField = Annotated[
    LocalModel, PlainValidator(LocalModel.of), PlainSerializer(lambda model: model.location)
]

CurveField = Annotated[
    PositionalCurve | None,
    BeforeValidator(lambda given: resolve_curve(given) if isinstance(given, str | Path) else given),
]


class AttentionPlacementArguments(AttentionArguments, total=False):
    """Keyword arguments of `AttentionPlacementPostprocessor` besides the model."""

    curve: PositionalCurve | str | Path | None
    callback_manager: CallbackManager | None


class AttentionPlacementPostprocessor(FixedOptionsPostprocessor):
    """Put nodes where a local model attends to them, in one extra round.

    The model answers the query over the nodes as they come; its attention ranks them, and
    determines which positions are good. Every node comes back as an `ExplainedNode`, with the
    score it came with; its ``posrag`` holds ``rank``, ``slot``, ``score`` (its relevance to the
    model), ``placement`` and ``estimator``. Fewer than two nodes are left in their order.

    Parameters
    ----------
    model
        A `shared_core.HuggingFaceModel`, a pair of a transformers model and its tokenizer, or
        the folder or hub name of one, which is loaded at first use and kept. Only a model given
        by name goes into ``to_dict``.
    estimator
        How relevance is measured: ``"answer"``, the default, ``"producer"``,
        ``"attention_sorting"`` or ``"icr"``.
    placement
        ``"attention_u_shape"``, the default, its control ``"attention_u_shape_reversed"``,
        ``"best_slot_first"`` or ``"relevant_last"``.
    template
        The prompt that the model reads; by default `shared_core.generation.templates.ANSWER`.
    curve
        The model's attention by position: a curve, its file, or the name of the model whose
        curve `posrag attention` has saved. With it there is no round, and only the model's
        tokenizer is used: the nodes keep the ranking they come in, no query is needed, `estimator`
        is ignored, and ``posrag`` holds ``curve``, the name of its model, instead of ``score`` and
        ``estimator``.

    Raises
    ------
    ValueError
        If an option is unknown or out of range, or the placement cannot use a curve. When it runs:
        if there is neither a query nor a curve, a node is empty, or the prompt is longer than the
        model's context.
    GenerationError
        When it runs, if the model cannot be loaded or its attention cannot be read.
    """

    model_config = ConfigDict(extra="forbid")

    model: ModelField = Field(frozen=True)
    estimator: str = Field(default="answer", frozen=True)
    placement: str = Field(default="attention_u_shape", frozen=True)
    template: PromptTemplate = Field(default=ANSWER, frozen=True)
    curve: CurveField = Field(default=None, frozen=True)
    _placer: AttentionPlacer = PrivateAttr()

    def __init__(self, model: ModelLike, **options: Unpack[AttentionPlacementArguments]) -> None:
        super().__init__(model=model, **options)

    def model_post_init(self, context: Any) -> None:
        """Check the options."""
        self._placer = AttentionPlacer(**self._options_of(AttentionPlacer))

    def _processed(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle | None
    ) -> list[NodeWithScore]:
        question = None if query is None else plain_text(query)
        slots = self._placer.place([text_of(node) for node in nodes], question)
        return [with_slot(nodes[at], why) for at, why in slots]


def text_of(node: NodeWithScore) -> str:
    """Return the text of a node that a language model reads."""
    return node.node.get_content(MetadataMode.LLM)
