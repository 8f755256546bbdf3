"""A step from documents to documents, in a pipe or in a compression pipeline."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable, run_in_executor
from typing_extensions import override

from langchain_posrag.options import refuse_arguments


class DocumentStep(
    RunnableSerializable[Sequence[Document], list[Document]],
    BaseDocumentCompressor,
    BaseDocumentTransformer,
):
    """Takes documents and returns documents, slot by slot; its options are its fields."""

    @abstractmethod
    def _processed(self, documents: Sequence[Document]) -> list[Document]: ...

    async def _aprocessed(self, documents: Sequence[Document]) -> list[Document]:
        return await run_in_executor(None, self._processed, documents)

    @override
    def invoke(
        self, input: Sequence[Document], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return new documents by slot."""
        refuse_arguments(self, kwargs)
        return self._call_with_config(self._processed, input, config)

    @override
    async def ainvoke(
        self, input: Sequence[Document], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Async version of `invoke`."""
        refuse_arguments(self, kwargs)
        return await self._acall_with_config(self._aprocessed, input, config)

    @override
    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """Return new documents by slot."""
        refuse_arguments(self, kwargs)
        return self._processed(documents)

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return new documents by slot; the query is ignored."""
        return self._processed(documents)
