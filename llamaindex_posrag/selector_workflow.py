"""The retrieval gate as a selector under routers, and as steps of a Workflow."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Self, Unpack

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.bridge.pydantic import Field
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import BaseNode, QueryBundle
from llama_index.core.tools.types import ToolMetadata
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

from llamaindex_posrag.embedding import as_bundle
from llamaindex_posrag.gated_query_engine import GatedQueryEngine, add_decision
from llamaindex_posrag.retrieval_gate import Gated, RetrievalGate, fit_for
from shared_core.gating import ContextGate, RetrievalDecision
from shared_core.gating.fit import FitArguments


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
        self._gate = RetrievalGate(gate, embed_model)
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
        return self._selection(self._gate.decide(query, searched, nodes).decision)

    async def _aselect(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        self._check(choices)
        searched = await asyncio.to_thread(self._gate.prepare, query)
        nodes = await self._retriever.aretrieve(searched)
        return self._selection((await self._gate.adecide(query, searched, nodes)).decision)

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


class WithContext(Event):
    """The query is to be answered with the nodes that were found."""

    query: QueryBundle
    found: Gated


class WithoutContext(Event):
    """The query is to be answered from the model's knowledge."""

    query: QueryBundle
    found: Gated


class GatedWorkflow(Workflow):
    """Decide, then answer with context or without, each in a separate step.

    ``await GatedWorkflow(engine).run(query="...")`` returns the response of
    ``engine.aquery``. Each step may be overridden. In a custom workflow the step is
    ``found = await engine.adecide(query)``, and `Gated.decision` says how to continue.

    Parameters
    ----------
    engine
        Decides and answers.
    timeout
        Seconds that a run may take; None for no limit.
    """

    def __init__(self, engine: GatedQueryEngine, *, timeout: float | None = 120.0) -> None:
        super().__init__(timeout=timeout)
        self.engine = engine

    @step
    async def decide(self, ev: StartEvent) -> WithContext | WithoutContext:
        """Search for ``query``, a text or a bundle, and decide."""
        query = as_bundle(ev.query)
        found = await self.engine.adecide(query)
        kind = WithContext if found.decision.retrieve else WithoutContext
        return kind(query=query, found=found)

    @step
    async def answer_with_context(self, ev: WithContext) -> StopEvent:
        """Answer from the nodes."""
        return StopEvent(result=await self._answer(ev))

    @step
    async def answer_without_context(self, ev: WithoutContext) -> StopEvent:
        """Answer without any."""
        return StopEvent(result=await self._answer(ev))

    async def _answer(self, ev: WithContext | WithoutContext) -> RESPONSE_TYPE:
        response = await self.engine.asynthesize(ev.query, ev.found.nodes)
        return add_decision(response, ev.found.decision)
