"""The gate as a selector: with context, or without."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Self, Unpack

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import BaseNode, QueryBundle
from llama_index.core.tools.types import ToolMetadata

from llamaindex_posrag.gate_decision import NodeGate, fit_for
from shared_core.gating import ContextGate, RetrievalDecision
from shared_core.gating.fitting import FitArguments


class GatedSelection(SelectorResult):
    """One choice, and the decision that led to it; the selection's reason is the decision's.

    Attributes
    ----------
    retrieval
        `shared_core.gating.RetrievalDecision.explain`.
    """

    retrieval: dict[str, Any] = Field(default_factory=dict)


class ContextAwarenessSelector(BaseSelector):
    """Choose between an engine with context and one without, under a RouterQueryEngine (CAG).

    Under a RouterRetriever the choices are retrievers: of this corpus, and of anything else. The
    router puts the selection, with the decision, into ``response.metadata["selector_result"]``.
    The engine that a router chooses searches again; a `GatedQueryEngine` searches once.

    Parameters
    ----------
    retriever
        Searches the nodes that the gate was fitted on.
    gate
        The fitted gate; `from_retriever` fits one.
    embed_model
        The model that the gate was fitted with; needed as in `GatedQueryEngine`.
    context, direct
        Positions of the choice with context, and of the one without; other choices are never
        taken.

    Raises
    ------
    ValueError
        If the positions are equal or negative. When it selects: if there are too few choices, the
        query is blank, or a similarity is not a finite number.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        gate: ContextGate,
        *,
        embed_model: BaseEmbedding | None = None,
        context: int = 0,
        direct: int = 1,
    ) -> None:
        if context == direct or min(context, direct) < 0:
            raise ValueError(
                f"context and direct must be two positions >= 0, got {context} and {direct}"
            )
        self._retriever = retriever
        self._gate = NodeGate(gate, embed_model)
        self._context, self._direct = context, direct

    @classmethod
    def from_retriever(
        cls,
        retriever: BaseRetriever,
        nodes: Iterable[BaseNode] | None = None,
        *,
        embed_model: BaseEmbedding | None = None,
        context: int = 0,
        direct: int = 1,
        **fit: Unpack[FitArguments],
    ) -> Self:
        """Fit a gate on the nodes that a retriever searches, and select by it.

        Parameters
        ----------
        retriever, nodes, embed_model, **fit
            As in `GatedQueryEngine.from_retriever`.
        context, direct
            As in the constructor.
        """
        gate, model = fit_for(retriever, nodes, embed_model, **fit)
        return cls(retriever, gate, embed_model=model, context=context, direct=direct)

    @property
    def gate(self) -> ContextGate:
        """The fitted gate."""
        return self._gate.gate

    def _select(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        self._check(choices)
        searched = self._gate.prepare(query)
        nodes = self._retriever.retrieve(searched)
        return self._selection(self._gate.decide(query, searched, nodes))

    async def _aselect(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        self._check(choices)
        searched = await asyncio.to_thread(self._gate.prepare, query)
        nodes = await self._retriever.aretrieve(searched)
        return self._selection(await self._gate.adecide(query, searched, nodes))

    def _check(self, choices: Sequence[ToolMetadata]) -> None:
        if max(self._context, self._direct) >= len(choices):
            raise ValueError(
                f"the selector chooses between the positions {self._context} (with context) and "
                f"{self._direct} (without), got {len(choices)} choices"
            )

    def _selection(self, decision: RetrievalDecision) -> GatedSelection:
        index = self._context if decision.retrieve else self._direct
        selection = SingleSelection(index=index, reason=decision.reason)
        return GatedSelection(selections=[selection], retrieval=decision.explain())

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """Do nothing: a gate has no prompts."""
