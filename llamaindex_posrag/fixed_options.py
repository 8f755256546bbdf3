"""Base of postprocessors whose options cannot change after construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_posrag.events import reranking


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
