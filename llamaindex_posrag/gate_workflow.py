"""The gate as steps of a Workflow."""

from __future__ import annotations

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.schema import QueryBundle
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

from llamaindex_posrag.embedding import as_bundle
from llamaindex_posrag.gate_decision import Gated
from llamaindex_posrag.gating import GatedQueryEngine, add_decision


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
