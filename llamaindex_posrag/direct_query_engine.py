"""A query engine without context."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.llms import LLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import QueryBundle
from llama_index.core.settings import Settings

from shared_core.gating import GatedPrompts, unwrapped

_ALL_OF_IT = PromptTemplate("{asked}")


class DirectQueryEngine(BaseQueryEngine):
    """Ask the model alone: the alternative to retrieval.

    Parameters
    ----------
    llm
        The model.
    prompts
        Its ``direct`` and ``examples`` are used: chain of thought by default.
    streaming
        Whether the answer comes as a stream.
    callback_manager
        Notified of each query.
    """

    def __init__(
        self,
        llm: LLM,
        *,
        prompts: GatedPrompts | None = None,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager or Settings.callback_manager)
        self._llm = llm
        self._prompts = prompts or GatedPrompts()
        self._streaming = streaming

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            prompt = self._prompt(query_bundle)
            response: RESPONSE_TYPE
            if self._streaming:
                response = StreamingResponse(self._llm.stream(_ALL_OF_IT, asked=prompt))
            else:
                response = Response(self._llm.predict(_ALL_OF_IT, asked=prompt))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            prompt = self._prompt(query_bundle)
            response: RESPONSE_TYPE
            if self._streaming:
                tokens = await self._llm.astream(_ALL_OF_IT, asked=prompt)
                response = AsyncStreamingResponse(tokens)
            else:
                response = Response(await self._llm.apredict(_ALL_OF_IT, asked=prompt))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def _prompt(self, query: QueryBundle) -> str:
        return self._prompts.render(unwrapped(query.query_str), None)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}
